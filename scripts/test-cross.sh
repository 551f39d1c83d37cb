#!/bin/bash
# scripts/test-cross.sh: is Frontier right on processors other than the one it was written on?
#   aarch64   cross-built and run under qemu-aarch64: no x86 kernels exist there, so every claim rests on the plain C ones.
#   qemu64    the ordinary x86-64 build under an emulated processor without AVX: run-time choice must avoid wide registers.
# The arm64 libraries are unpacked into build/aarch64/sysroot from this machine's package source, with package lists of
# their own, so the machine's package manager is left as it is. Only quick tests run: emulation is tens of times slower.
# Exit 77 names what is missing. A half that cannot run skips the script only after the other half has been tried.
set -uo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-2}
names=(optimizer tokenizer_split world tokenizer ops_gradient rng safetensors scalars strings error memory json recipe
    graph_build ops_forward adamw schedule) # the slow ones first
skipped=
log=$(mktemp)
trap 'rm -f "$log"' EXIT
stop() { echo "$1"; tail -n 30 "$log"; exit 1; }

emulate() { # build folder, emulator words...: the tests, each behind a small launcher that run-tests.sh can start
    local folder=$1 launchers=$1/emulated name; shift
    local programs=()
    mkdir -p "$launchers"
    for name in "${names[@]}"; do
        printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$*" "$PWD/$folder/tests/unit/test_$name" >"$launchers/test_$name"
        chmod +x "$launchers/test_$name"
        programs+=("$launchers/test_$name")
    done
    TEST_TIMEOUT=240 scripts/run-tests.sh -j "$jobs" "${programs[@]}" >"$log" 2>&1 || stop "tests fail under: $*"
    echo "$*: $(tail -n 1 "$log")"
}
targets() { printf "$1/tests/unit/test_%s\n" "${names[@]}"; }

fetch_sysroot() { # folder: arm64 packages and what they need, unpacked
    local apt=$1.apt deb
    [ -e "$1/complete" ] && return 0
    rm -rf "$1" "$apt"
    mkdir -p "$1" "$apt/state/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/status"
    local own=(-q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$apt/state" -o "Dir::State::status=$apt/status"
        -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User= -o Debug::NoLocking=1)
    apt-get "${own[@]}" update >"$log" 2>&1 || return 1
    apt-get "${own[@]}" -y --no-install-recommends --download-only install libdnnl-dev libpcre2-dev libjansson-dev \
        libzstd-dev zlib1g-dev libsodium-dev >"$log" 2>&1 || return 1
    for deb in "$apt"/cache/archives/*.deb; do dpkg -x "$deb" "$1" || return 1; done
    rm -rf "$apt" "$1/etc" "$1/usr/share" "$1/var"
    : >"$1/complete"
}

cross_half() {
    command -v aarch64-linux-gnu-gcc >/dev/null || { skipped="aarch64-linux-gnu-gcc is missing: make deps-all"; return; }
    command -v qemu-aarch64 >/dev/null || { skipped="qemu-aarch64 is missing: make deps-all"; return; }
    command -v apt-get >/dev/null || { skipped="no apt-get to fetch arm64 libraries with"; return; }
    local sysroot=$PWD/build/aarch64/sysroot
    fetch_sysroot "$sysroot" || { skipped="the package source gives no arm64 libraries: $(tail -n 1 "$log")"; return; }
    # shellcheck disable=SC2046
    make -s -j"$jobs" BUILD=build/aarch64 CC=aarch64-linux-gnu-gcc CFLAGS="--sysroot=$sysroot" \
        build/aarch64/frontier $(targets build/aarch64) >"$log" 2>&1 || stop "the aarch64 build fails"
    emulate build/aarch64 qemu-aarch64 -L "$sysroot"
    qemu-aarch64 -L "$sysroot" build/aarch64/frontier --version >"$log" 2>&1 || stop "frontier --version fails on aarch64"
}

plain_half() {
    [ "$(uname -m)" = x86_64 ] || { skipped="${skipped:+$skipped; }this is no x86-64 machine"; return; }
    command -v qemu-x86_64 >/dev/null || { skipped="${skipped:+$skipped; }qemu-x86_64 is missing: make deps-all"; return; }
    # shellcheck disable=SC2046
    make -s -j"$jobs" all $(targets build) >"$log" 2>&1 || stop "the build fails"
    emulate build qemu-x86_64 -cpu qemu64
    qemu-x86_64 -cpu qemu64 build/frontier doctor >"$log" 2>&1 # doctor's answer may be no; its words count
    grep -i 'kernels' "$log" | head -n 2
}

cross_half
plain_half
[ -z "$skipped" ] || { echo "$skipped"; exit 77; }
