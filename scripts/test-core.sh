#!/bin/bash
# scripts/test-core.sh: CORE item by item against lab/core_reference.py, which shares nothing with the library but the files: a small
# 4 x 256 model, 40 items of every task of ../shared/data/core, fp32. The Python side stops after some seconds per task.
# ITEMS=200 SECONDS_PER_TASK=3600 compares all of 200 items of every task, which takes hours. Exit 77 says what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
F=${BUILD:-build}/frontier shared=${FRONTIER_SHARED:-../shared} items=${ITEMS:-40}
[ -d "$shared/data/core" ] || { echo "needs ../shared"; exit 77; }
python3 -c 'import numpy, safetensors, tokenizers, yaml' 2>/dev/null ||
    { echo "python3 -m pip install numpy safetensors tokenizers pyyaml tomli"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() { # step NAME COMMAND...: runs it, shows its output only when it fails
    local name=$1 start=$SECONDS
    shift
    "$@" >"$work/log" 2>&1 || { tail -20 "$work/log"; echo "test-core: $name failed"; exit 1; }
    echo "$name: $((SECONDS - start)) s"
}

step data "$F" data import --out "$work/data" --vocab 8192 "$shared"/data/webdocs-permissive/part-00003.jsonl.zst
step train "$F" train --data "$work/data" --recipe recipes/baseline.toml --set model.depth=4 --set model.width=256 \
    --set model.head_dim=64 --set model.context=512 --set optim.batch_tokens=4096 --clock virtual:1 --set clock.max_steps=40 \
    --out "$work/run" --unscored
step core "$F" eval core "$work/run" --bundle "$shared/data/core" --numerics fp32 --max-per-task "$items" --items "$work/items.jsonl"
OMP_NUM_THREADS=1 python3 lab/core_reference.py "$work/run" "$shared/data/core" "$work/items.jsonl" --max-per-task "$items" \
    --seconds "${SECONDS_PER_TASK:-6}"
