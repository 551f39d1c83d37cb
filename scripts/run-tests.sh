#!/bin/bash
# scripts/run-tests.sh [-j N] PROGRAM...: run test programs, show what failed and what was skipped, and end with
# one line "N passed, N failed, N skipped" summed over all of them. A program that dies without its own
# closing line counts as one failure: a crash must never look like silence.
set -u
jobs=1
if [ "${1:-}" = -j ]; then jobs=$2; shift 2; fi
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export logs
run_one() {
    name=$(basename "$1")
    start=$(date +%s.%N)
    timeout "${TEST_TIMEOUT:-300}" "$1" >"$logs/$name.log" 2>&1
    echo $? >"$logs/$name.status"
    echo "$(date +%s.%N) - $start" | awk '{printf "%.1f\n", $1-$3}' >"$logs/$name.seconds"
}
export -f run_one
printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'run_one {}'
passed=0 failed=0 skipped=0
for program in "$@"; do
    name=$(basename "$program")
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$logs/$name.log" | tail -n 1)
    status=$(cat "$logs/$name.status" 2>/dev/null || echo 99)
    read -r p _ f _ s _ <<<"${line:-0 passed, 1 failed, 0 skipped}"
    if [ "$status" != 0 ] && [ "$f" = 0 ]; then f=1; echo "not ok - $name ended with status $status"; fi
    [ -z "$line" ] && { echo "not ok - $name ended with status $status without a closing line"; tail -n 15 "$logs/$name.log" | sed 's/^/    /'; }
    grep -E '^(not ok|# )|# SKIP' "$logs/$name.log"
    printf '%-28s %4d passed %3d failed %3d skipped %8s s\n' "$name" "$p" "$f" "$s" "$(cat "$logs/$name.seconds" 2>/dev/null)"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
