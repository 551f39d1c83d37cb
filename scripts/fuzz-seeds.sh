#!/bin/bash
# scripts/fuzz-seeds.sh FOLDER: small real files for every fuzz target, made by the command itself; FOLDER/<target>/.
set -eu
cd "$(dirname "$0")/.."
out=$1 F=${BUILD:-build}/frontier
mkdir -p "$out"/{recipe,tokenizer_json,shard,safetensors,import_line,made}
cp recipes/*.toml "$out/recipe/"
"$F" data world --out "$out/made/world" --bytes 60KB --vocab 300 --force >/dev/null 2>&1
cp "$out/made/world/tokenizer.json" "$out/tokenizer_json/"
cp "$out/made/world/valid-00000.tok" "$out/shard/"
cp "$out"/made/world/core/eval_data/world/*.jsonl "$out/made/"
head -n 1 -q "$out"/made/*.jsonl >"$out/import_line/a"
printf '{"text":"caf\\u00e9 \\ud83d\\ude00 \\n","id":[1,2.5e3,null,true,{"text":"inner"}]}\n' >"$out/import_line/b"
"$F" train --data "$out/made/world" --recipe recipes/baseline.toml --set model.depth=1 --set model.width=32 --set model.head_dim=16 \
    --set model.context=32 --set optim.batch_tokens=256 --set optim.shards=2 --clock virtual:1 --set clock.max_steps=1 --unscored \
    --out "$out/made/run" >/dev/null 2>&1
cp "$out/made/run/model.safetensors" "$out/safetensors/"
rm -rf "$out/made"
