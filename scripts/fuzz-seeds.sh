#!/bin/bash
# scripts/fuzz-seeds.sh FOLDER: small real files for every fuzz target, made by the command itself; FOLDER/<target>/.
set -eu
cd "$(dirname "$0")/.."
out=$1 F=${BUILD:-build}/frontier
mkdir -p "$out"/{completion,core_yaml,core_table,core_items,clock_log,append_log,zip,recipe,tokenizer_json,shard,safetensors,import_line,made}
cp recipes/*.toml "$out/recipe/"
printf '{"model":"model","prompt":["caf\\u00e9"],"max_tokens":12,"temperature":0.5,"top_p":0.9,"top_k":3,"seed":-1,"stop":["a","\\n"],"stream":true}' >"$out/completion/a"
printf '{"prompt":"a","n":1,"echo":false,"logit_bias":{},"stream_options":{"include_usage":true},"suffix":null,"presence_penalty":0.0}' >"$out/completion/b"
"$F" data world --out "$out/made/world" --bytes 60KB --vocab 300 --force >/dev/null 2>&1
cp "$out/made/world/tokenizer.json" "$out/tokenizer_json/"
cp "$out/made/world/valid-00000.tok" "$out/shard/"
cp "$out"/made/world/core/eval_data/world/*.jsonl "$out/made/"
head -n 1 -q "$out"/made/*.jsonl >"$out/import_line/a"
printf '{"text":"caf\\u00e9 \\ud83d\\ude00 \\n","id":[1,2.5e3,null,true,{"text":"inner"}]}\n' >"$out/import_line/b"
# An archive of one stored member, written by hand: name lib.so, 5 bytes, their CRC-32.
member='\x00\x00\x00\x00\x00\x00\x21\x00\x86\xa6\x10\x36\x05\x00\x00\x00\x05\x00\x00\x00\x06\x00\x00\x00'
printf "PK\x03\x04\x14\x00${member}lib.sohelloPK\x01\x02\x14\x00\x14\x00${member}\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00lib.so" >"$out/zip/a"
printf 'PK\x05\x06\x00\x00\x00\x00\x01\x00\x01\x00\x34\x00\x00\x00\x29\x00\x00\x00\x00\x00' >>"$out/zip/a"
"$F" train --data "$out/made/world" --recipe recipes/baseline.toml --set model.depth=1 --set model.width=32 --set model.head_dim=16 \
    --set model.context=32 --set optim.batch_tokens=256 --set optim.shards=2 --clock virtual:1 --set clock.max_steps=1 --unscored \
    --out "$out/made/run" >/dev/null 2>&1
cp "$out/made/run/model.safetensors" "$out/safetensors/"
cp "$out/made/world/core/core.yaml" "$out/core_yaml/"
cp "$out/made/world/core/eval_meta_data.csv" "$out/core_table/"
for items in "$out"/made/world/core/eval_data/world/*.jsonl; do head -n 4 "$items" >"$out/core_items/$(basename "$items")"; done
cp "$out/made/run/clock.jsonl" "$out/clock_log/"
"$F" eval core "$out/made/run" --bundle "$out/made/world/core" --max-per-task 12 --tasks world_homes >/dev/null 2>&1
head -c 2000 "$out/made/run/core.log" >"$out/append_log/core.log"
# Two files in one input: the length of the first in 4 bytes, then both.
pair() {
    local n
    n=$(wc -c <"$1")
    printf '%b' "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((n & 255)) $((n >> 8 & 255)) $((n >> 16 & 255)) $((n >> 24)))"
    cat "$1" "$2"
}
V=tests/vectors/formats
mkdir -p "$out"/import_llama2c "$out"/import_hf
pair $V/llama2c.bin $V/llama2c-tokenizer.bin >"$out/import_llama2c/a"
"$F" import --format llama2c --tokenizer $V/llama2c-tokenizer.bin --out "$out/made/pieces" $V/llama2c.bin >/dev/null
cp "$out/made/pieces/tokenizer.json" "$out/tokenizer_json/pieces.json"
pair $V/gpt2/config.json $V/gpt2/model.safetensors >"$out/import_hf/gpt2"
for change in "" "--set model.resid_scalars=false --set model.x0_scalars=false"; do
    "$F" train --data "$out/made/world" --recipe recipes/baseline.toml --set model.depth=1 --set model.width=16 --set model.head_dim=8 \
        --set model.context=16 --set optim.batch_tokens=32 --set optim.shards=1 --clock virtual:1 --set clock.max_steps=1 --unscored $change \
        --out "$out/made/small$change" >/dev/null 2>&1
    "$F" export "$out/made/small$change" --format hf --out "$out/made/hf$change" >/dev/null
    pair "$out/made/hf$change/config.json" "$out/made/hf$change/model.safetensors" >"$out/import_hf/ours-${#change}"
done
rm -rf "$out/made"
