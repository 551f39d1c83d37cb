#!/bin/bash
# scripts/test-world-tasks.sh [STEPS]: the demo's model, trained as many steps as a quiet machine does in 60 s, must have learned at
# least two of the world's six tasks: accuracy above what answering without reading scores, by two standard errors.
set -euo pipefail
cd "$(dirname "$0")/.."
F=${BUILD:-build}/frontier steps=${1:-900} least=${LEAST:-2}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$F" data world --out "$work/world" --bytes 20MB >/dev/null 2>&1
"$F" train --data "$work/world" --recipe recipes/demo.toml --clock virtual:1 --budget "${steps}s" --out "$work/run" --unscored >/dev/null 2>&1
"$F" eval core "$work/run" --bundle "$work/world/core" --json 2>/dev/null | tail -n 1 | grep -o '"world_[a-z]*":{[^}]*}' |
    awk -v least="$least" '{
        name = $0; sub(/^"/, "", name); sub(/".*/, "", name)
        for (n = split($0, part, /[{,}]/); n > 0; n--) { split(part[n], pair, ":"); gsub(/"/, "", pair[1]); value[pair[1]] = pair[2] }
        error = sqrt(value["guess"] * (1 - value["guess"]) / value["n"]) # of one who answers without reading
        if (value["stderr"] > error) error = value["stderr"]
        ahead = (value["accuracy"] - value["guess"]) / error
        printf "%-14s %.3f, without reading %.3f: %+.1f standard errors\n", name, value["accuracy"], value["guess"], ahead
        learned += ahead > 2
    }
    END { printf "%d of %d tasks learned\n", learned, NR; exit !(NR == 6 && learned >= least) }'
