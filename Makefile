# Frontier. `make help` lists what there is; sources are found by folder, so a new file needs no edit here.
#   MODE=release|debug|asan|ubsan|tsan   each builds into its own folder
#   CC=gcc|clang   WERROR=1 (default in checks)   NO_INSTALL=1 never installs anything

MODE    ?= release
CC      ?= gcc
BUILD   ?= $(if $(filter release,$(MODE)),build,build/$(MODE))
PREFIX  ?= /usr/local
WERROR  ?= 1

FLAGS_release := -O2
FLAGS_debug   := -O0 -g3
FLAGS_asan    := -O1 -g -fsanitize=address -fno-omit-frame-pointer
FLAGS_ubsan   := -O1 -g -fsanitize=undefined -fno-sanitize-recover=all
FLAGS_tsan    := -O1 -g -fsanitize=thread

WARN := -Wall -Wextra -Wshadow -Wpointer-arith -Wundef -Wvla -Wformat=2 -Wstrict-prototypes \
        -Wmissing-prototypes -Wwrite-strings -fno-common $(if $(filter 1,$(WERROR)),-Werror)
CFLAGS_ALL := -std=c11 -D_GNU_SOURCE -g -ffp-contract=off -fPIC -pthread $(FLAGS_$(MODE)) $(WARN) -Iinclude -Isrc $(CFLAGS)
LIBS       := -ldnnl -lpcre2-8 -ljansson -lzstd -lz -lsodium -lm -pthread $(LDFLAGS)

ARCH := $(shell $(CC) -dumpmachine | cut -d- -f1)
LIB_SOURCES := $(wildcard src/*/*.c src/*/*/*.c)
# Vector kernels only exist for their processor; they are compiled with its flags and chosen at run time.
ifeq ($(ARCH),x86_64)
LIB_SOURCES += $(wildcard src/cpu/kernels/avx2/*.c src/cpu/kernels/avx512/*.c)
endif
LIB_OBJECTS := $(LIB_SOURCES:%.c=$(BUILD)/%.o)
CLI_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard cli/*.c))
UNIT_TESTS  := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
BENCHES     := $(patsubst bench/%.c,$(BUILD)/bench/%,$(wildcard bench/*.c))
EXAMPLES    := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))

all: $(BUILD)/frontier

$(BUILD)/src/cpu/kernels/avx2/%.o:   KERNEL_FLAGS := -O3 -mavx2 -mfma -mf16c
$(BUILD)/src/cpu/kernels/avx512/%.o: KERNEL_FLAGS := -O3 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprefer-vector-width=512

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(KERNEL_FLAGS) -MMD -MP -c $< -o $@

$(BUILD)/libfrontier.a: $(LIB_OBJECTS)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/frontier: $(CLI_OBJECTS) $(BUILD)/libfrontier.a
	$(CC) $(CFLAGS_ALL) -rdynamic $(CLI_OBJECTS) $(BUILD)/libfrontier.a $(LIBS) -o $@

$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/libfrontier.a
	$(CC) $(CFLAGS_ALL) $^ $(LIBS) -o $@
$(BUILD)/bench/%: $(BUILD)/bench/%.o $(BUILD)/libfrontier.a
	$(CC) $(CFLAGS_ALL) $^ $(LIBS) -o $@
$(BUILD)/examples/%: $(BUILD)/examples/%.o $(BUILD)/libfrontier.a
	$(CC) $(CFLAGS_ALL) $^ $(LIBS) -o $@

unit: $(UNIT_TESTS)
clean:
	rm -rf build

.PHONY: all unit clean
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
