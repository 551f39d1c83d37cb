# The probes: honest runs pass with no difference at all, every kind of leak fails the probes that concern it, and a score that
# is too good is refused until the very weights that reached it passed.
tiny="--set model.depth=1 --set model.width=32 --set model.head_dim=16 --set model.context=128 --set optim.batch_tokens=1024"
train() { frontier train --recipe "$TOP/recipes/baseline.toml" $tiny --clock virtual:1 --unscored "$@" >/dev/null 2>&1; }
frontier data world --out world --bytes 200K --vocab 300 >/dev/null
train --data world --out run --set clock.max_steps=2
verdicts() { # run: one word per probe
    frontier eval causality "$1" --rows 3 --json 2>/dev/null >verdict.json; status=$?
    schema_check "$TOP/docs/schema/eval-causality.json" <verdict.json || echo "the schema does not fit"
    grep -o '"passed":[a-z]*' verdict.json | cut -d: -f2 | tr '\n' ' '
    echo "exit $status"
}
echo "# the verdict, then blocks companions prefix repeat suffix targets"
verdicts run
grep -o '^{.*"max_difference":[^,]*,"passed":true,"probes"' verdict.json | grep -o '"max_difference":0.0,"passed":true,"probes"'
frontier eval causality run --data nowhere; echo "exit $?"
frontier eval causality run --rows 1 2>&1 | head -n 1
for leak in lookahead companions state targets; do
    train --data world --out "$leak" --program "$TOP/tests/cli/leaks/$leak" --set clock.max_steps=2
    echo "# $leak"
    verdicts "$leak"
done
train --data world --out honest --program "$TOP/baseline" --set clock.max_steps=2
echo "# an honest program"
verdicts honest
echo "# too good to be true"
frontier eval bpb targets 2>&1 | sed 's/: [0-9.]* is below/: N is below/'; echo "exit ${PIPESTATUS[0]}"
cp honest/causality.json targets/ # of other weights and another program
frontier eval bpb targets 2>&1 | sed 's/: [0-9.]* is below/: N is below/'; echo "exit ${PIPESTATUS[0]}"
echo "# good because the text is that easy: believed once it passed"
for i in $(seq 400); do
    printf '{"text": "%d %s"}\n' $i "$(printf 'the bird sees the tree and the tree sees the bird and %.0s' 1 2 3 4)"
done >easy.jsonl
frontier data import --out easy --vocab 300 --valid-fraction 0.1 easy.jsonl >/dev/null 2>&1
train --data easy --out easy-run --set clock.max_steps=60
frontier eval bpb easy-run 2>/dev/null; echo "exit $?"
verdicts easy-run
frontier eval bpb easy-run >/dev/null; echo "exit $?"
train --data easy --out other-run --set clock.max_steps=61
cp easy-run/causality.json other-run/
frontier eval bpb other-run >/dev/null 2>&1; echo "exit $?"
