#!/bin/bash
# scripts/bench-peers.sh: what the same minutes, and other methods, make of the same text. `make bench-peers`.
#   DATA    data folder of 2,048 entries, for only then both models are of one size; default: imports ../shared/data
#   BUDGET  charged time of each run (10m)     OUT  where the runs go (build/peers)
#   NGRAM_BYTES  training text the n-gram model counts (20000000: it keeps every n-gram in memory)
# Everything is measured on the same validation bytes. Existing runs in OUT are kept and not trained again.
set -euo pipefail
cd "$(dirname "$0")/.."
F=build/frontier
BUDGET=${BUDGET:-10m}
OUT=${OUT:-build/peers}
NGRAM_BYTES=${NGRAM_BYTES:-20000000}
DATA=${DATA:-}
mkdir -p "$OUT"

if [ -z "$DATA" ]; then
    DATA=$OUT/data
    shared=${FRONTIER_SHARED:-../shared}/data
    names="openstax-ccby webdocs-permissive webdocs-ccbysa factbook books-pd tinyshakespeare wikitext2 tinystories-sample"
    folders=()
    for name in $names; do
        [ -d "$shared/$name" ] || { echo "bench-peers: no $shared/$name; give DATA=FOLDER" >&2; exit 2; }
        folders+=("$shared/$name")
    done
    [ -f "$DATA/corpus.json" ] || "$F" data import --out "$DATA" --vocab 2048 "${folders[@]}"
fi

field() { python3 -c 'import json, sys; v = json.load(open(sys.argv[1])).get(sys.argv[2]); print("-" if v is None else v)' "$1/run.json" "$2"; }

train() {
    if [ ! -f "$OUT/$1/run.json" ] || [ "$(field "$OUT/$1" val_bpb)" = - ]; then
        rm -rf "${OUT:?}/$1"
        "$F" train --data "$DATA" --recipe "recipes/$1.toml" --budget "$BUDGET" --out "$OUT/$1"
    fi
}

row() { printf '%-34s %9.4f  %s\n' "$1" "$2" "$3"; }

model_row() {
    row "$1" "$(field "$OUT/$1" val_bpb)" "$(field "$OUT/$1" params) parameters, $(field "$OUT/$1" steps) steps, $(field "$OUT/$1" tokens) tokens, $(field "$OUT/$1" charged_s) s"
}

train cpu-10m
train plain-10m
"$F" data text "$DATA" --split valid >"$OUT/valid.txt"
bytes=$(wc -c <"$OUT/valid.txt")
packed=$(xz -9 -k -c "$OUT/valid.txt" | wc -c)
# Blocks of 64 kB from everywhere in the training text: imports keep the order of their files, so its head is one source.
"$F" data text "$DATA" --split train >"$OUT/train.txt"
python3 - "$OUT/train.txt" "$NGRAM_BYTES" >"$OUT/sample.txt" <<'END'
import sys
text = open(sys.argv[1], "rb").read()
count = min(int(sys.argv[2]), len(text)) // 65536
blocks = [i * len(text) // max(1, count) for i in range(count)]
sys.stdout.buffer.write(b"".join(text[at:at + 65536] for at in blocks) if count else text)
END
rm "$OUT/train.txt"
ngram=$(python3 lab/ngram.py "$OUT/sample.txt" "$OUT/valid.txt" --order 5 | sed -n 's/^order 5: \([0-9.]*\) .*/\1/p')
floor=$("$F" data info "$DATA" | sed -n 's/^ *floor *\([0-9.]*\) .*/\1/p')

echo
echo "$DATA: $bytes validation bytes, bits per byte, basis: measured"
model_row cpu-10m
model_row plain-10m
row "xz -9 of the validation text" "$(awk "BEGIN{print 8 * $packed / $bytes}")" ""
row "byte 5-gram, Kneser-Ney" "$ngram" "of $(wc -c <"$OUT/sample.txt") training bytes, evenly spread"
[ -z "$floor" ] || row "floor" "$floor" "no model can do better"
