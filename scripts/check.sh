#!/bin/bash
# scripts/check.sh [JOBS]: what `make check` runs: build without warnings, the folder law, unit tests, examples, the
# command's golden tests, the README's commands. The last line is the sum of all.
set -uo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-2}
export BUILD=build
log=$(mktemp)
trap 'rm -f "$log"' EXIT
step() { # name, command...: a check that is one yes or no
    local name=$1; shift
    if "$@" >"$log.step" 2>&1; then echo "ok - check.$name"; echo "1 passed, 0 failed, 0 skipped" >>"$log"
    else echo "not ok - check.$name"; tail -n 30 "$log.step" | sed 's/^/# /'; echo "0 passed, 1 failed, 0 skipped" >>"$log"; fi
    rm -f "$log.step"
}
tests() { # a runner that ends with its own sum; one that dies before it counts as a failure
    "$@" 2>&1 | tee "$log.tests"
    tail -n 1 "$log.tests" | grep -E '^[0-9]+ passed, ' >>"$log" ||
        { echo "not ok - $1 ended without its closing line"; echo "0 passed, 1 failed, 0 skipped" >>"$log"; }
    rm -f "$log.tests"
}

make -s -j"$jobs" all unit examples benches fuzzers slow build/tests/cli/schema_check 2>&1 | tail -n 40
[ "${PIPESTATUS[0]}" = 0 ] || { echo "not ok - the build failed"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
[ "${CI:-}" = true ] && [ -z "${FRONTIER_DUCKDB:-}" ] && scripts/get-duckdb.sh
[ -z "${FRONTIER_DUCKDB:-}" ] && [ -f build/duckdb/libduckdb.so ] && export FRONTIER_DUCKDB=$PWD/build/duckdb/libduckdb.so
step layers sh scripts/check-layers.sh
step style sh scripts/check-style.sh
programs=()
for source in tests/unit/test_*.c; do programs+=("build/tests/unit/$(basename "$source" .c)"); done
tests scripts/run-tests.sh -j "$jobs" "${programs[@]}"
for example in examples/*.c; do step "example-$(basename "$example" .c)" "build/examples/$(basename "$example" .c)"; done
if make -s nki-headers >/dev/null 2>&1; then
    step nki make -s -j"$jobs" nki
    tests env PYTHONPATH=build/python PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-python3}" python/tests/run.py
    tests env PYTHONPATH=build/python PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-python3}" python/tests/run.py kernels/tests
    step kernels-table env PYTHONPATH=build/python PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-python3}" kernels/report.py --check
else
    echo "ok - check.nki # SKIP Python's headers are not installed: apt-get install python3-dev python3-numpy"
    echo "0 passed, 0 failed, 1 skipped" >>"$log"
fi
tests tests/cli/run.sh
step deps scripts/test-deps.sh
step install scripts/test-install.sh
step readme scripts/readme-test.sh
awk '/passed/ { p += $1; f += $3; s += $5 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }' "$log"
