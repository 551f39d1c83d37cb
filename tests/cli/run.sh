#!/bin/bash
# tests/cli/run.sh [NAME...]: golden tests of the command. Each tests/cli/NAME.sh runs in a scratch folder of its own
# with `frontier` on PATH; its stdout and stderr (kept apart) must equal NAME.stdout and NAME.stderr after the
# filters below, which blank what may differ between machines. BLESS=1 rewrites the expectations.
# Variables for scripts: TOP = the repository, FRONTIER_SHARED = outside data or empty.
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
export TOP FRONTIER_SHARED=${FRONTIER_SHARED:-$( [ -d "$TOP/../shared/data" ] && cd "$TOP/../shared" && pwd )}
export PATH="$TOP/${BUILD:-build}:$TOP/${BUILD:-build}/tests/cli:$PATH" LC_ALL=C TERM=dumb
passed=0 failed=0 skipped=0
filter() {
    sed -E -e "s#$TOP#TOP#g" -e "s#$scratch#SCRATCH#g" -e 's/[0-9]+(\.[0-9]+)? (s|ms|m [0-9]+ s)\b/TIME/g' \
        -e '/^frontier: stopping cleanly/d' -e '/^[a-z ]+ +[0-9]+ %, left /d' # progress shows only on a slow machine
}
scripts=("$TOP"/tests/cli/*.sh)
for script in "${scripts[@]}"; do
    name=$(basename "$script" .sh)
    [ "$name" = run ] && continue
    if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
    scratch=$(mktemp -d)
    (cd "$scratch" && timeout 240 bash "$script" >"$scratch/.stdout" 2>"$scratch/.stderr")
    status=$?
    filter <"$scratch/.stdout" >"$scratch/.out"
    filter <"$scratch/.stderr" >"$scratch/.err"
    if [ $status = 77 ]; then
        skipped=$((skipped + 1)); echo "ok - cli.$name # SKIP $(tail -n 1 "$scratch/.stdout")"
    elif [ "${BLESS:-0}" = 1 ] && [ $status = 0 ]; then
        cp "$scratch/.out" "$TOP/tests/cli/$name.stdout"
        if [ -s "$scratch/.err" ]; then cp "$scratch/.err" "$TOP/tests/cli/$name.stderr"; else rm -f "$TOP/tests/cli/$name.stderr"; fi
        passed=$((passed + 1)); echo "blessed cli.$name"
    elif [ $status = 0 ] && diff -u "$TOP/tests/cli/$name.stdout" "$scratch/.out" >"$scratch/.diff" 2>&1 &&
        diff -u "$( [ -f "$TOP/tests/cli/$name.stderr" ] && echo "$TOP/tests/cli/$name.stderr" || echo /dev/null)" "$scratch/.err" >>"$scratch/.diff" 2>&1; then
        passed=$((passed + 1)); echo "ok - cli.$name"
    else
        failed=$((failed + 1)); echo "not ok - cli.$name (status $status)"; head -n 40 "$scratch/.diff" 2>/dev/null | sed 's/^/# /'; tail -n 5 "$scratch/.err" | sed 's/^/# /'
    fi
    rm -rf "$scratch"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
