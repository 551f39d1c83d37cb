# A tiny model through its whole life: train, score, sample, report, compare; the same bits on any thread count, after
# kill -9, by replay, and through the starter submission; stops, damage and divergence end as they should.
awk 'BEGIN { srand(7); split("the a one no every river stone bird house door king song night sails sleeps sings opens falls near under over", w, " ");
    for (i = 0; i < 9000; i++) { printf "%s ", w[1 + int(rand() * 20)]; if (i % 11 == 10) printf ".\n"; if (i % 300 == 299) printf "\n" } }' >text.txt
quiet() { "$@" >out.txt 2>err.txt; }
frontier data import --out data --vocab 320 --split blank-lines text.txt >/dev/null 2>&1 || exit 1
small="--data data --recipe $TOP/recipes/baseline.toml --set model.depth=2 --set model.width=32 --set model.head_dim=16 --set model.context=32
    --set optim.batch_tokens=512 --set optim.shards=4 --set data.packing=\"stream\""
virtual="--clock virtual:1 --set clock.max_steps=24"
hash_of() { sha256sum <"$1/model.safetensors" | cut -c1-16; }

echo "-- the run and its receipt"
frontier train $small $virtual --out one --threads 1 --json 2>/dev/null | schema_check "$TOP/docs/schema/train.json" && echo "schema fits"
for k in status steps tokens params basis numerics; do grep -o "\"$k\": [^,]*" one/run.json; done
wc -l <one/log.jsonl
ls one

echo "-- the same bits"
for t in 2 3 4; do quiet frontier train $small $virtual --out "t$t" --threads $t --unscored || cat err.txt; [ "$(hash_of "t$t")" = "$(hash_of one)" ] && echo "$t threads: same"; done
frontier train $small $virtual --set clock.checkpoint_every=5 --out killed --unscored >/dev/null 2>&1 &
pid=$!
until [ -f killed/model.safetensors ] || ! kill -0 $pid 2>/dev/null; do :; done
kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null
quiet frontier train $small $virtual --set clock.checkpoint_every=5 --out killed --resume --unscored || cat err.txt
[ "$(hash_of killed)" = "$(hash_of one)" ] && echo "killed and resumed: same"
quiet frontier train $small --budget 2500ms --out wall --unscored || cat err.txt
quiet frontier train $small --clock replay:wall --out again --unscored || cat err.txt
[ "$(hash_of wall)" = "$(hash_of again)" ] && echo "wall clock replayed: same"
quiet frontier train $small $virtual --program "$TOP/baseline" --out program || cat err.txt
[ "$(hash_of program)" = "$(hash_of one)" ] && echo "starter submission: same"
losses_of() { grep -o '"step":[0-9]*,"loss":[^,]*' "$1/log.jsonl"; }
[ "$(losses_of program | wc -l)" = 24 ] && [ "$(losses_of program)" = "$(losses_of one)" ] && echo "starter submission: same losses"
score_of() { sed -n 's/.*"val_bpb": \([0-9.]*\),.*/\1/p' "$1/run.json" | xargs printf '%.6f'; }
[ "$(score_of program)" = "$(score_of one)" ] && echo "starter submission scores the same to a millionth"

echo "-- using it"
frontier eval bpb one --json 2>/dev/null | schema_check "$TOP/docs/schema/eval-bpb.json" && echo "eval fits"
frontier sample one --prompt "the river" --tokens 8 --temperature 0 --json 2>/dev/null | schema_check "$TOP/docs/schema/sample.json" && echo "sample fits"
[ "$(frontier sample one --prompt "the river" --tokens 8 --temperature 0)" = "$(frontier sample program --prompt "the river" --tokens 8 --temperature 0)" ] && echo "both sample alike"
first=$(frontier sample one --prompt "the river" --tokens 8 --temperature 0 --stop "$(printf '\n')x")
frontier sample one --prompt "the river" --tokens 8 --temperature 0 --stop "${first#?}" --json 2>/dev/null | grep -o '"finish":"stop"'
[ "$(echo "the river" | frontier sample one --interactive --tokens 8 --temperature 0 2>talk.txt)" = "$first" ] && grep -c 'no chat format' talk.txt
frontier sample one --top-p 0 >/dev/null 2>&1; echo "no probability: exit $?"
frontier report one --json 2>/dev/null | schema_check "$TOP/docs/schema/report.json" && echo "report fits"
frontier info one --json 2>/dev/null | schema_check "$TOP/docs/schema/info.json" && echo "info fits"
frontier compare one program --json 2>/dev/null | schema_check "$TOP/docs/schema/compare.json" && echo "compare fits"

echo "-- stopping"
frontier train $small --budget 60s --out stopped >/dev/null 2>&1 &
pid=$!
until [ -s stopped/log.jsonl ] || ! kill -0 $pid 2>/dev/null; do :; done
kill -TERM $pid; wait $pid; echo "SIGTERM: exit $?"
grep -o '"status": [^,]*' stopped/run.json
find stopped -name '*.next' -o -name '*.tmp*' | wc -l
endless="--clock virtual:1 --set clock.max_steps=400"
frontier train $small $endless --out undisturbed --unscored >/dev/null 2>&1
for signal in TERM INT; do
    (trap - INT; exec setsid env --default-signal=INT frontier train $small $endless --out "by$signal" --unscored) >/dev/null 2>&1 &
    pid=$!
    until [ -s "by$signal/log.jsonl" ] || ! kill -0 $pid 2>/dev/null; do :; done
    kill -$signal $pid; wait $pid; echo "$signal: exit $?, $(find "by$signal" -name '*.next' -o -name '*.tmp*' | wc -l) temporary files"
    quiet frontier train $small $endless --out "by$signal" --unscored --resume || cat err.txt
    [ "$(hash_of "by$signal")" = "$(hash_of undisturbed)" ] && echo "$signal, then resumed: same"
done
frontier train $small --clock virtual:1 --set clock.max_steps=4 --out one --unscored >/dev/null 2>err.txt; echo "into a finished run: exit $?"

echo "-- damage"
cp -r one bad; head -c 2000 one/model.safetensors >bad/model.safetensors
frontier eval bpb bad >/dev/null 2>err.txt; echo "truncated: exit $?"; grep -c model.safetensors err.txt
cp one/model.safetensors bad/; printf 'X' | dd of=bad/model.safetensors bs=1 seek=20000 conv=notrunc 2>/dev/null
frontier eval bpb bad >/dev/null 2>err.txt; echo "altered: exit $?"; grep -c model.safetensors err.txt

echo "-- divergence"
frontier train $small $virtual --set optim.embedding_lr=100.0 --set optim.head_lr=100.0 --set optim.matrix_lr=10.0 --set model.softcap=0.0 --set optim.clip=0.0 --out diverged >/dev/null 2>err.txt; echo "exit $?"
ls diverged | grep failed

echo "-- a submission's failures"
mkdir broken crashing
echo 'int nothing' >broken/train.c
frontier train $small $virtual --program broken --out b1 >/dev/null 2>&1; echo "does not compile: exit $?"
sed 's/return fr_graph_check(g, error);/*(volatile int *)0 = 1; return fr_graph_check(g, error);/' "$TOP/baseline/train.c" >crashing/train.c
frontier train $small $virtual --program crashing --out b2 >/dev/null 2>&1; echo "crashes: exit $?"
