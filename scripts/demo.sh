#!/bin/bash
# scripts/demo.sh: from a fresh machine to a trained, scored, sampled model and a page about it, in a few minutes.
# Everything it makes lies under demo/; running it again starts over.
set -euo pipefail
cd "$(dirname "$0")/.."
sh scripts/deps.sh
make -s -j"$(nproc)" all
F=build/frontier
out=${DEMO_DIR:-demo}
seconds=${DEMO_SECONDS:-60}
mkdir -p "$out"
say() { printf '\n== %s\n' "$*"; }

say "1 of 5: the built-in corpus, about one made-up world"
$F data world --out "$out/world" --bytes 20MB --force
say "2 of 5: train for $seconds seconds against the charged clock, then score"
rm -rf "$out/run"
$F train --data "$out/world" --recipe recipes/demo.toml --budget "${seconds}s" --out "$out/run"
say "3 of 5: score again from the checkpoint alone"
$F eval bpb "$out/run" --data "$out/world"
say "4 of 5: a sample: the model continues 'The'"
$F sample "$out/run" --prompt "The" --tokens 80 --temperature 0.7
say "5 of 5: a page about the run"
$F report "$out/run" --sample 120
say "what came of it"
$F info "$out/run"
$F data info "$out/world" | grep floor
cat <<END

next:
  $F data import --out data/mine YOUR-FILE.txt && $F train --data data/mine --budget 10m --out runs/mine
  $F sample $out/run --prompt "Dear" --tokens 100
  $F train --data $out/world --program baseline --recipe recipes/demo.toml --budget 60s --out runs/baseline
END
