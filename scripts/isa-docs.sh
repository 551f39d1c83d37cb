#!/bin/sh
# Writes the pages of docs/isa from the tables the simulator works from (`frontier nki isa --markdown`, `nki rules`), so
# that the manual cannot say anything else than the code does. tests/cli/isa-docs.sh compares the folder with a fresh one:
# after a change to an instruction or a rule, run this and commit what changed.
#
#   usage: scripts/isa-docs.sh [FOLDER]     FOLDER defaults to docs/isa of the repository; `frontier` may be on PATH
set -e
top=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$top/docs/isa}
PATH="$top/${BUILD:-build}:$PATH"
mkdir -p "$out"
rm -f "$out"/*.md
{
    echo "# Instructions of the simulated NeuronCore"
    echo
    echo "Made by \`scripts/isa-docs.sh\` from the instruction table; \`frontier nki isa NAME\` prints the same page. N is the"
    echo "number of elements per partition, cycles are those of the engine named. A cost marked \"guess\" has no public source;"
    echo "every time that used one says so. What a kernel may not do is in [rules](rules.md)."
    echo
    echo "| instruction | does | engines | from | cost |"
    echo "|---|---|---|---|---|"
} >"$out/README.md"
frontier nki isa | while read -r name summary; do
    page=$out/$name.md
    frontier nki isa --markdown "$name" >"$page"
    engines=$(sed -n 's/^Engines: \(.*\)\. NeuronCore v.*$/\1/p' "$page")
    generation=$(sed -n 's/^Engines: .*\. NeuronCore \(v[0-9]*\) and later\.$/\1/p' "$page")
    cost=documented
    grep -q 'This is a guess\.' "$page" && cost=guess
    printf '| [%s](%s.md) | %s | %s | %s | %s |\n' "$name" "$name" "$(echo "$summary" | sed 's/|/\\|/g')" "$engines" \
        "$generation" "$cost" >>"$out/README.md"
done
{
    echo "# Rules of the simulated NeuronCore"
    echo
    echo "What \`frontier nki rules\` prints: each rule, the usual fix, and lines that break it (the tests run them)."
    echo
    echo '```text'
    frontier nki rules
    echo '```'
} >"$out/rules.md"
