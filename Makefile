# Frontier. `make help` lists what there is; sources are found by folder, so a new file needs no edit here.
#   MODE=release|debug|asan|ubsan|tsan   each builds into its own folder
#   CC=gcc|clang|...   WERROR=0 for compilers newer than ours   NO_INSTALL=1 never installs anything

MODE    ?= release
CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))
BUILD   ?= $(if $(filter release,$(MODE)),build,build/$(MODE))
PREFIX  ?= /usr/local
DESTDIR ?=
WERROR  ?= 1
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)

FLAGS_release := -O2
FLAGS_debug   := -O0 -g3
FLAGS_asan    := -O1 -g -fsanitize=address -fno-omit-frame-pointer
FLAGS_ubsan   := -O1 -g -fsanitize=undefined -fno-sanitize-recover=all
FLAGS_tsan    := -O1 -g -fsanitize=thread

WARN := -Wall -Wextra -Wshadow -Wpointer-arith -Wundef -Wvla -Wformat=2 -Wstrict-prototypes \
        -Wmissing-prototypes -Wwrite-strings -fno-common $(if $(filter 1,$(WERROR)),-Werror)
CFLAGS_ALL := -std=c11 -D_GNU_SOURCE -g -ffp-contract=off -fPIC -pthread $(FLAGS_$(MODE)) $(WARN) -Iinclude -Isrc $(CFLAGS)
# Found at build time, header and library, for the processor compiled for; a command that needs one that was not found says so
# and names its package.
has        = $(if $(filter yes,$(shell echo 'int main(void) { return 0; }' | \
             $(CC) $(CFLAGS) -include $(1) -x c - -l$(2) $(LDFLAGS) -o /dev/null >/dev/null 2>&1 && echo yes)),1)
ifeq ($(call has,curl/curl.h,curl),1)
CFLAGS_ALL += -DFR_HAVE_CURL
FOUND_LIBS += -lcurl
endif
ifeq ($(call has,microhttpd.h,microhttpd),1)
CFLAGS_ALL += -DFR_HAVE_MICROHTTPD
FOUND_LIBS += -lmicrohttpd
endif
LIBS       := -ldnnl -lpcre2-8 -ljansson -lzstd -lz -lsodium $(FOUND_LIBS) -lm -ldl -pthread $(LDFLAGS)
COMMIT     := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
VERSION    := $(shell sed -n 's/.*FR_VERSION "\(.*\)"/\1/p' include/frontier/version.h)

ARCH := $(shell $(CC) -dumpmachine | cut -d- -f1)
LIB_SOURCES := $(wildcard src/*/*.c src/*/*/*.c)
# Vector kernels only exist for their processor; they are compiled with its flags and chosen at run time.
ifeq ($(ARCH),x86_64)
LIB_SOURCES += $(wildcard src/cpu/kernels/avx2/*.c src/cpu/kernels/avx512/*.c src/neuron/kernels/avx2/*.c src/neuron/kernels/avx512/*.c)
endif
LIB_OBJECTS := $(LIB_SOURCES:%.c=$(BUILD)/%.o)
# bench/ holds measuring code of the command, and programs of its own named bench_*.c.
CLI_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard cli/*.c) $(filter-out bench/bench_%,$(wildcard bench/*.c)))
UNIT_TESTS  := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
SLOW_TESTS  := $(patsubst tests/slow/%.c,$(BUILD)/tests/slow/%,$(wildcard tests/slow/test_*.c))
FUZZERS     := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
BENCHES     := $(patsubst bench/%.c,$(BUILD)/bench/%,$(wildcard bench/bench_*.c))
EXAMPLES    := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))

all: $(BUILD)/frontier $(BUILD)/libfrontier-cli.a

$(BUILD)/src/neuron/%.o:             KERNEL_FLAGS := $(if $(filter release,$(MODE)),-O3) -fno-math-errno -fno-trapping-math
$(BUILD)/src/cpu/kernels/avx2/%.o $(BUILD)/src/neuron/kernels/avx2/%.o:     KERNEL_FLAGS := -O3 -mavx2 -mfma -mf16c
$(BUILD)/src/cpu/kernels/avx512/%.o $(BUILD)/src/neuron/kernels/avx512/%.o: KERNEL_FLAGS := -O3 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprefer-vector-width=512
# Updates are plain loops over floats: four at a time, with the same bits (nobody reads errno or exception flags).
$(BUILD)/src/train/%.o:              KERNEL_FLAGS := $(if $(filter release,$(MODE)),-O3) -fno-math-errno -fno-trapping-math
# Rows of the NeuronCore: one source of loops, compiled for each width of registers; the same bits from all.
$(BUILD)/src/neuron/rows/%.o:        KERNEL_FLAGS := $(if $(filter release,$(MODE)),-O3) -fno-math-errno -fno-trapping-math
ifeq ($(ARCH),x86_64)
$(BUILD)/src/neuron/rows/rows_avx2.o:   KERNEL_FLAGS += -mavx2
$(BUILD)/src/neuron/rows/rows_avx512.o: KERNEL_FLAGS += -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512
endif
$(BUILD)/bench/%.o:                   KERNEL_FLAGS := -Icli
$(BUILD)/cli/version.o:              KERNEL_FLAGS := -DFR_COMMIT='"$(COMMIT)"'

# The commit is part of every receipt: a new one rebuilds the file that names it.
$(BUILD)/cli/version.o: $(BUILD)/commit
$(BUILD)/commit: FORCE
	@mkdir -p $(@D); echo $(COMMIT) | cmp -s - $@ || echo $(COMMIT) >$@

# The model file of exported folders, as C strings.
$(BUILD)/generated/model/formats/modeling_frontier.inc: src/model/formats/modeling_frontier.py
	@mkdir -p $(@D)
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$$/\\n",/' $< >$@
$(BUILD)/src/model/formats/modeling.o: $(BUILD)/generated/model/formats/modeling_frontier.inc
$(BUILD)/src/model/formats/modeling.o: KERNEL_FLAGS := -I$(BUILD)/generated

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(KERNEL_FLAGS) -MMD -MP -c $< -o $@

$(BUILD)/libfrontier.a: $(LIB_OBJECTS)
	@rm -f $@
	ar qcs $@ $^

$(BUILD)/libfrontier-cli.a: $(CLI_OBJECTS)
	@rm -f $@
	ar qcs $@ $^

$(BUILD)/frontier: $(CLI_OBJECTS) $(BUILD)/libfrontier.a
	$(CC) $(CFLAGS_ALL) -rdynamic $(CLI_OBJECTS) $(BUILD)/libfrontier.a $(LIBS) -o $@

link = $(CC) $(CFLAGS_ALL) $^ $(LIBS) -o $@
$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/libfrontier.a ; $(link)
$(BUILD)/tests/slow/%: $(BUILD)/tests/slow/%.o $(BUILD)/libfrontier.a ; $(link)
$(BUILD)/bench/%: $(BUILD)/bench/%.o $(BUILD)/libfrontier.a ; $(link)
$(BUILD)/examples/%: $(BUILD)/examples/%.o $(BUILD)/libfrontier.a ; $(link)
$(BUILD)/tests/cli/schema_check: $(BUILD)/tests/cli/schema_check.o ; $(link)
# A fuzz target is an ordinary program here: it replays files, or mutates them for a while (tests/fuzz/replay.c).
# `make fuzz` builds the same targets with libFuzzer.
$(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/replay.o $(BUILD)/libfrontier.a ; $(link)

# ---- the Python package --------------------------------------------------------------------------------------

# One extension on the stable ABI (3.11 and later) from python/_core, src/neuron and the base files they use. Python's own
# interface takes char * where it means const char *, hence no -Wwrite-strings there.
PYTHON       ?= python3
PYTHON_INCLUDE = $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_paths()["include"])' 2>/dev/null)
NKI_OBJECTS  := $(patsubst %.c,$(BUILD)/%.o,$(wildcard python/_core/*.c))
NKI_PACKAGE  := $(BUILD)/python/frontier_nki
NKI_SCRIPTS  := $(wildcard python/frontier_nki/*.py python/frontier_nki/*/*.py python/frontier_nki/*/*/*.py python/frontier_nki/*/*/*/*.py)
NKI_FILES    := $(NKI_SCRIPTS:python/%=$(BUILD)/python/%) $(patsubst machines/%,$(NKI_PACKAGE)/machines/%,$(wildcard machines/trn*.toml))

$(BUILD)/python/_core/%.o: KERNEL_FLAGS = -isystem $(PYTHON_INCLUDE) -Wno-write-strings
$(NKI_PACKAGE)/_core.abi3.so: $(NKI_OBJECTS) $(BUILD)/libfrontier.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -shared -Wl,--exclude-libs,ALL -Wl,--as-needed -Wl,--gc-sections $(NKI_OBJECTS) $(BUILD)/libfrontier.a $(LIBS) -o $@
$(NKI_PACKAGE)/machines/%: machines/%
	@mkdir -p $(@D); cp $< $@
$(BUILD)/python/%.py: python/%.py
	@mkdir -p $(@D); sed 's/@VERSION@/$(VERSION)/' $< >$@

nki-headers:
	@[ -f "$(PYTHON_INCLUDE)/Python.h" ] || { echo "frontier: make nki needs Python's headers ($(PYTHON) has none): apt-get install python3-dev python3-numpy" >&2; exit 4; }
nki: nki-headers
	+@$(MAKE) -s $(NKI_PACKAGE)/_core.abi3.so $(NKI_FILES) $(BUILD)/frontier
	@$(PYTHON) scripts/wheel.py $(BUILD) $(VERSION)

# What scripts link with.
libraries:
	@echo '$(LIBS)'

unit: $(UNIT_TESTS)
examples: $(EXAMPLES)
benches: $(BENCHES)
fuzzers: $(FUZZERS)
slow: $(SLOW_TESTS)

.PHONY: all nki nki-headers unit examples benches fuzzers slow FORCE clean help deps deps-all check check-all demo install uninstall fuzz bench-peers format-check
.PRECIOUS: $(BUILD)/%.o

# ---- tests -------------------------------------------------------------------------------------------------

check:
	@NO_INSTALL=$(NO_INSTALL) CI=$(CI) sh scripts/deps.sh </dev/null
	+@scripts/check.sh $(JOBS)

check-all:
	@NO_INSTALL=$(NO_INSTALL) CI=$(CI) sh scripts/deps.sh --all </dev/null
	+@scripts/check-all.sh $(JOBS)

fuzz:
	+@scripts/fuzz.sh

# ---- for people --------------------------------------------------------------------------------------------

demo:
	@scripts/demo.sh

deps:
	@sh scripts/deps.sh
deps-all:
	@sh scripts/deps.sh --all

bench-peers: all
	@scripts/bench-peers.sh

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/frontier $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include/frontier \
	  $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/frontier/recipes \
	  $(DESTDIR)$(PREFIX)/share/frontier/schema $(DESTDIR)$(PREFIX)/share/frontier/baseline $(DESTDIR)$(PREFIX)/share/frontier/machines
	install -m 755 $(BUILD)/frontier $(DESTDIR)$(PREFIX)/bin/frontier
	install -m 644 $(BUILD)/libfrontier.a $(BUILD)/libfrontier-cli.a $(DESTDIR)$(PREFIX)/lib/frontier/
	install -m 644 include/frontier/*.h $(DESTDIR)$(PREFIX)/include/frontier/
	install -m 644 recipes/*.toml $(DESTDIR)$(PREFIX)/share/frontier/recipes/
	install -m 644 machines/*.toml $(DESTDIR)$(PREFIX)/share/frontier/machines/
	install -m 644 docs/schema/*.json $(DESTDIR)$(PREFIX)/share/frontier/schema/
	install -m 644 baseline/train.c baseline/recipe.toml baseline/README.md $(DESTDIR)$(PREFIX)/share/frontier/baseline/
	[ ! -f $(NKI_PACKAGE)/_core.abi3.so ] || { install -d $(DESTDIR)$(PREFIX)/lib/frontier/python && cp -r $(NKI_PACKAGE) $(DESTDIR)$(PREFIX)/lib/frontier/python/; }
	$(BUILD)/frontier help --man > $(DESTDIR)$(PREFIX)/share/man/man1/frontier.1
	$(BUILD)/frontier help --completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/frontier
	printf 'prefix=%s\nlibdir=$${prefix}/lib/frontier\nincludedir=$${prefix}/include\n\nName: frontier\nDescription: train language models against the clock\nVersion: %s\nCflags: -I$${includedir}\nLibs: -L$${libdir} -lfrontier $(LIBS)\n' \
	  '$(PREFIX)' '$(VERSION)' > $(DESTDIR)$(PREFIX)/lib/pkgconfig/frontier.pc

uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/lib/frontier $(DESTDIR)$(PREFIX)/include/frontier $(DESTDIR)$(PREFIX)/share/frontier
	rm -f $(DESTDIR)$(PREFIX)/bin/frontier $(DESTDIR)$(PREFIX)/lib/pkgconfig/frontier.pc $(DESTDIR)$(PREFIX)/share/man/man1/frontier.1 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions/frontier

clean:
	rm -rf build

help:
	@echo "make            build the command at build/frontier"
	@echo "make demo       corpus, 60 s of training, score, sample and a report, from nothing"
	@echo "make deps       install what the build needs (prints its plan, asks on a terminal)"
	@echo "make check      set-up and tests, under 10 minutes on 2 cores"
	@echo "make check-all  adds sanitizers and slow tiers"
	@echo "make fuzz       fuzz every reader of files with libFuzzer (FUZZ_SECONDS=60 each)"
	@echo "make nki        the Python package of the simulated NeuronCore, and its wheel, in build/python"
	@echo "make examples benches    build the examples and benchmarks"
	@echo "make bench-peers         this trainer beside others, on this machine"
	@echo "make install PREFIX=/usr/local DESTDIR=   and uninstall"
	@echo "make MODE=debug|asan|ubsan|tsan           builds into build/MODE"

-include $(shell find $(BUILD) -type f -name '*.d' 2>/dev/null)
