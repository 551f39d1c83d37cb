#!/bin/bash
# scripts/hf-venv.sh: prints a Python that has torch and transformers, for the slow test of Hugging Face folders. It is
# FRONTIER_HF_PYTHON, or python3 if that has them, or a virtual environment made once in build/hf-venv (5.6 GB, minutes:
# the registry's torch brings its CUDA libraries). Exit 77 with the reason as the last line when there is none.
set -u
cd "$(dirname "$0")/.."
has() { "$1" -c 'import torch, transformers' >/dev/null 2>&1; }
venv=build/hf-venv
for python in "${FRONTIER_HF_PYTHON:-}" python3 "$venv/bin/python"; do
    if [ -n "$python" ] && has "$python"; then echo "$python"; exit 0; fi
done
if [ "${NO_INSTALL:-0}" = 1 ]; then echo "torch and transformers are missing, and NO_INSTALL=1"; exit 77; fi
free=$(df -Pk . | awk 'NR == 2 { print $4 }')
if [ "$free" -lt 15000000 ]; then echo "torch and transformers are missing, and there is no room for their 6 GB"; exit 77; fi
rm -rf "$venv"
if python3 -m venv "$venv" >"$venv.log" 2>&1 &&
    timeout 700 "$venv/bin/pip" install --no-cache-dir torch transformers numpy >>"$venv.log" 2>&1 && has "$venv/bin/python"; then
    echo "$venv/bin/python"; exit 0
fi
rm -rf "$venv"
echo "torch and transformers cannot be installed: $(tail -n 1 "$venv.log" | cut -c 1-200)"
exit 77
