#!/bin/bash
# scripts/test-cross.sh: another processor, and this one without its vector units, build and pass unit tests on the
# reference kernels. aarch64: cross compiler, the libraries' arm64 packages unpacked into a temporary folder (nothing is installed),
# qemu-user. Plain x86-64: the ordinary build under qemu's baseline processor. Exit 77 says what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD jobs=$(nproc)
skip() { echo "$1"; [ "${status:-0}" = 0 ] || exit 1; exit 77; } # a failure so far stays a failure
quick="error memory strings config schedule graph_build graph_numbers graph_plan ops_gradient ops_forward tokenizer_files
    tokenizer_reference recipe safetensors adamw scalars world"
names() { for name in $quick; do [ -f "tests/unit/test_$name.c" ] && echo "$1/tests/unit/test_$name"; done; return 0; }
run_all() { # folder, emulator...
    local folder=$1 failed=0; shift
    for test in $(names "$folder"); do
        timeout 300 "$@" "$test" >"$work/out" 2>&1 || { failed=1; echo "$test under $1:"; grep -E '^(#|not ok)' "$work/out" | head -n 5; tail -n 2 "$work/out"; }
    done
    return $failed
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

if command -v qemu-x86_64 >/dev/null; then
    make -s -j"$jobs" $(names build)
    qemu-x86_64 -cpu qemu64 build/frontier --version | grep 'kernels ref' || { echo "a processor without AVX did not get the reference kernels"; status=1; }
    run_all build qemu-x86_64 -cpu qemu64 || status=1
else
    skip "qemu-user is missing: make deps-all"
fi

command -v aarch64-linux-gnu-gcc >/dev/null || skip "gcc-aarch64-linux-gnu is missing: make deps-all"
command -v qemu-aarch64 >/dev/null || skip "qemu-user is missing: make deps-all"
mkdir -p "$work"/{lists/partial,cache/archives/partial,state,debs,sysroot}
: >"$work/status"
apt="-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State=$work/state -o Dir::State::lists=$work/lists -o Dir::State::status=$work/status -o Dir::Cache=$work/cache -o APT::Sandbox::User=root"
apt-get $apt update -q >"$work/apt" 2>&1 || { tail -n 2 "$work/apt"; skip "the package lists of arm64 cannot be had here"; }
packages="libdnnl-dev libdnnl2 libpcre2-dev libpcre2-8-0 libjansson-dev libjansson4 libzstd-dev libzstd1 zlib1g-dev zlib1g libsodium-dev
    libsodium23 libgomp1 libstdc++6 libgcc-s1 ocl-icd-libopencl1 libc6"
(cd "$work/debs" && apt-get $apt download -q $packages) >"$work/apt" 2>&1 || { tail -n 2 "$work/apt"; skip "the arm64 packages cannot be had here"; }
for deb in "$work"/debs/*.deb; do dpkg -x "$deb" "$work/sysroot"; done
library="$work/sysroot/usr/lib/aarch64-linux-gnu"
make -s -j"$jobs" CC=aarch64-linux-gnu-gcc BUILD=build/aarch64 CFLAGS="-isystem $work/sysroot/usr/include -isystem $work/sysroot/usr/include/aarch64-linux-gnu" \
    LDFLAGS="-L$library -L$work/sysroot/lib/aarch64-linux-gnu -Wl,-rpath-link,$library:$work/sysroot/lib/aarch64-linux-gnu" build/aarch64/frontier $(names build/aarch64)
arm="qemu-aarch64 -L $work/sysroot"
[ -e "$work/sysroot/lib/ld-linux-aarch64.so.1" ] || arm="qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=$library"
$arm build/aarch64/frontier --version | grep 'kernels' || status=1
run_all build/aarch64 $arm || status=1
[ $status = 0 ] && echo "aarch64 and plain x86-64 pass"
exit $status
