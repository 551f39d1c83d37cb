#!/bin/bash
# scripts/fuzz-seeds.sh FOLDER: small real files for every fuzz target, made by the command itself; FOLDER/<target>/.
set -eu
cd "$(dirname "$0")/.."
out=$1 F=${BUILD:-build}/frontier
mkdir -p "$out"/{recipe,tokenizer_json,shard,safetensors,import_line,work}
cp recipes/*.toml "$out/recipe/"
"$F" data world --out "$out/work/world" --bytes 60KB --vocab 300 --force >/dev/null 2>&1
cp "$out/work/world/tokenizer.json" "$out/tokenizer_json/"
cp "$out/work/world/valid-00000.tok" "$out/shard/"
cp "$out"/work/world/core/eval_data/world/*.jsonl "$out/work/"
head -n 1 -q "$out"/work/*.jsonl >"$out/import_line/a"
printf '{"text":"caf\\u00e9 \\ud83d\\ude00 \\n","id":[1,2.5e3,null,true,{"text":"inner"}]}\n' >"$out/import_line/b"
"$F" train --data "$out/work/world" --recipe recipes/baseline.toml --set model.depth=1 --set model.width=32 --set model.head_dim=16 \
    --set model.context=32 --set optim.batch_tokens=256 --set optim.shards=2 --clock virtual:1 --set clock.max_steps=1 --unscored \
    --out "$out/work/run" >/dev/null 2>&1
cp "$out/work/run/model.safetensors" "$out/safetensors/"
rm -rf "$out/work"
