#!/bin/bash
# scripts/fuzz.sh: fuzz every reader of files with libFuzzer and ASAN, FUZZ_SECONDS (60) each. Needs clang.
set -eu
cd "$(dirname "$0")/.."
command -v clang >/dev/null || { echo "clang is missing: make deps-all" >&2; exit 4; }
make -s -j"$(nproc)" all
seeds=${FUZZ_SEEDS:-build/fuzz-seeds}
scripts/fuzz-seeds.sh "$seeds"
make -s -j"$(nproc)" CC=clang BUILD=build/fuzz WERROR=0 CFLAGS="-fsanitize=address,fuzzer-no-link" build/fuzz/libfrontier.a
# shellcheck disable=SC2086
libraries=$(make -s CC=clang libraries)
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    clang -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=address,fuzzer -Iinclude -Isrc "$source" build/fuzz/libfrontier.a \
        $libraries -o "build/fuzz/$name"
    mkdir -p "build/fuzz/corpus-$name"
    echo "== $name"
    (cd build/fuzz && ASAN_OPTIONS=detect_leaks=1 "./$name" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=20 -rss_limit_mb=4096 -print_final_stats=0 -verbosity=0 \
        "corpus-$name" "../../$seeds/${name#fuzz_}")
done
echo "every target came through"
