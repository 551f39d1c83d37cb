#!/bin/bash
# scripts/check-all.sh [JOBS]: what `make check-all` runs beyond `make check`: slow tests, the unit tests under the address,
# undefined-behaviour and thread sanitizers, a clang build, other kernel paths, a fuzz smoke of every reader, installation,
# cross builds and a clean root. The last line is the sum of all; a step that cannot run here says why and counts as skipped.
set -uo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-2}
log=$(mktemp)
trap 'rm -f "$log" "$log".*' EXIT
started=$SECONDS
step() { # name, seconds at most, command...
    local name=$1 limit=$2 from=$SECONDS status; shift 2
    timeout --kill-after=10 "$limit" "$@" >"$log.step" 2>&1 </dev/null
    status=$?
    if [ $status = 0 ]; then echo "ok - all.$name ($((SECONDS - from)) s)"; echo "1 passed, 0 failed, 0 skipped" >>"$log"
    elif [ $status = 77 ]; then echo "ok - all.$name # SKIP $(tail -n 1 "$log.step")"; echo "0 passed, 0 failed, 1 skipped" >>"$log"
    else echo "not ok - all.$name (status $status)"; tail -n 40 "$log.step" | sed 's/^/# /'; echo "0 passed, 1 failed, 0 skipped" >>"$log"; fi
}
tests() { # label, command...: a runner that ends with its own sum
    local label=$1; shift
    echo "== $label"
    "$@" >"$log.tests" 2>&1 </dev/null
    grep -E '^(not ok|#)|# SKIP|without a closing' "$log.tests"
    tail -n 1 "$log.tests"
    tail -n 1 "$log.tests" | grep -E '^[0-9]+ passed' >>"$log" || echo "0 passed, 1 failed, 0 skipped" >>"$log"
}
programs() { # build folder, names...
    local folder=$1; shift
    for name in "$@"; do echo "$folder/tests/unit/test_$name"; done
}
unit=()
for source in tests/unit/test_*.c; do name=$(basename "$source" .c); unit+=("${name#test_}"); done
threaded=(threads loader session session_resume shards tokenizer optimizer scorer muon submission)
kernels=(kernels model scorer reference session graph_model)

[ -n "${FRONTIER_DUCKDB:-}" ] || scripts/get-duckdb.sh
[ -z "${FRONTIER_DUCKDB:-}" ] && [ -f build/duckdb/libduckdb.so ] && export FRONTIER_DUCKDB=$PWD/build/duckdb/libduckdb.so
step build 600 make -s -j"$jobs" all unit build/tests/cli/schema_check
slow=()
for source in tests/slow/test_*.c; do slow+=("build/tests/slow/$(basename "$source" .c)"); done
step build-slow 300 make -s -j"$jobs" "${slow[@]}"
TEST_TIMEOUT=900 tests "slow tests" scripts/run-tests.sh -j "$jobs" "${slow[@]}"

step build-asan 900 make -s -j"$jobs" MODE=asan unit
tests "address sanitizer" env ASAN_OPTIONS=detect_leaks=1 TEST_TIMEOUT=600 scripts/run-tests.sh -j "$jobs" $(programs build/asan "${unit[@]}")
step build-ubsan 900 make -s -j"$jobs" MODE=ubsan unit
tests "undefined-behaviour sanitizer" env TEST_TIMEOUT=600 scripts/run-tests.sh -j "$jobs" $(programs build/ubsan "${unit[@]}")
step build-tsan 900 make -s -j"$jobs" MODE=tsan $(programs build/tsan "${threaded[@]}")
tests "thread sanitizer" env TEST_TIMEOUT=600 scripts/run-tests.sh -j "$jobs" $(programs build/tsan "${threaded[@]}")

for path in ref avx2; do
    tests "kernels: $path" env FRONTIER_KERNELS=$path TEST_TIMEOUT=600 scripts/run-tests.sh -j "$jobs" $(programs build "${kernels[@]}")
done
if command -v clang >/dev/null; then step build-clang 900 make -s -j"$jobs" CC=clang BUILD=build/clang all unit examples
else echo "ok - all.build-clang # SKIP clang is missing"; echo "0 passed, 0 failed, 1 skipped" >>"$log"; fi

step fuzz-seeds 120 scripts/fuzz-seeds.sh build/fuzz-seeds
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    step "build-$name" 300 make -s MODE=asan "build/asan/tests/fuzz/$name"
    step "$name" 120 bash -c "cd build/asan && tests/fuzz/$name --seconds ${FUZZ_SECONDS:-8} ../fuzz-seeds/${name#fuzz_}/*"
done
for script in test-page test-cross test-world-tasks test-core clean-root; do [ -x "scripts/$script.sh" ] && step "$script" 900 "scripts/$script.sh"; done
echo "check-all took $((SECONDS - started)) s"
awk '/passed/ { p += $1; f += $3; s += $5 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }' "$log"
