#!/bin/bash
# scripts/readme-test.sh: every command of README.md is run, in order, in a scratch copy. Budgets are shortened, YOUR-FILE.txt
# is made, and `make check` is not started from within itself; nothing else is changed.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git ls-files -z | xargs -0 cp --parents -t "$work"
cp -r "$top/build" "$work/build" # object files and programs keep their times, so nothing is compiled again
cd "$work"
awk 'BEGIN { srand(3); n = split("the a of and river stone old bird house door king song night winter sails sleeps sings opens falls near under over", w, " ")
    for (i = 0; i < 60000; i++) { printf "%s%s", w[1 + int(rand() * n)], i % 12 == 11 ? ".\n" : " "; if (i % 240 == 239) printf "\n" } }' >YOUR-FILE.txt
sed -n '/^```sh$/,/^```$/p' README.md | grep -v '^```' | grep -v '^make check$' |
    sed -E 's/--budget [0-9]+m/--budget 4s/' >commands
[ "$(wc -l <commands)" -ge 8 ] || { echo "README.md has lost its commands"; exit 1; }
while IFS= read -r command; do
    [ -n "$command" ] || continue
    DEMO_SECONDS=4 NO_INSTALL=1 bash -c "$command" >output 2>&1 </dev/null || { tail -n 20 output; echo "README command failed: $command"; exit 1; }
done <commands
