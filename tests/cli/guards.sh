# What must not happen to a run: a forecast that blocks it, a mistake found after hours, two processes in one folder,
# another program or another kind of clock half way.
small=(--data data --recipe "$TOP/recipes/baseline.toml" --set model.depth=2 --set model.width=64
    --set model.head_dim=32 --set model.context=64 --set optim.batch_tokens=1024 --threads 1)
tiny() { frontier train "${small[@]}" "$@"; }
frontier data world --out data --bytes 200K --vocab 300 >/dev/null
echo "# a forecast leaves nothing behind"
tiny --clock virtual:1 --budget 3s --out run --forecast >/dev/null; echo "exit $?"
ls -d run
echo "# the evaluation set is looked for first"
tiny --clock virtual:1 --budget 3s --out run --eval-set nothing; echo "exit $?"
ls -d run
printf 'one small document\n' >one.txt
frontier data import --out data-one one.txt --vocab 300 >/dev/null; echo "exit $?"
echo "# one process at a time"
frontier train "${small[@]}" --budget 60s --out run --unscored >/dev/null 2>&1 &
until [ -s run/log.jsonl ]; do sleep 0.05; done
tiny --budget 60s --out run --resume --unscored; echo "exit $?"
kill -HUP $!; wait $!; echo "exit $?"
echo "# wall seconds and made-up ones do not mix"
tiny --clock virtual:1 --budget 3s --out run --resume; echo "exit $?"
echo "# the program of a run stays"
cp -r "$TOP/baseline" other; echo >>other/train.c
tiny --clock virtual:1 --budget 2s --out mine --program "$TOP/baseline" --unscored >/dev/null 2>&1; echo "exit $?"
before=$(sha256sum <mine/program)
tiny --clock virtual:1 --budget 3s --out mine --program other; echo "exit $?"
tiny --clock virtual:1 --budget 3s --out mine --program other --resume; echo "exit $?"
tiny --clock virtual:1 --budget 3s --out mine --resume; echo "exit $?"
[ "$before" = "$(sha256sum <mine/program)" ] && echo "the program is untouched"
tiny --clock virtual:1 --budget 3s --out mine --program "$TOP/baseline" --resume --unscored >/dev/null 2>&1; echo "exit $?"
echo "# a submission that ends too early, and one that is none"
printf '#include "frontier/submission.h"\n#include <unistd.h>\nstatic fr_status train(fr_session *s, fr_error *e) { (void)s; (void)e; _exit(0); }\n' >other/train.c
printf 'const fr_submission frontier_submission = {.name = "x", .model = fr_model_build, .train = train};\n' >>other/train.c
tiny --clock virtual:1 --budget 2s --out early --program other 2>&1 | tail -n 2; echo "exit ${PIPESTATUS[0]}"
echo 'int nothing;' >other/train.c
frontier build other 2>&1 | grep -o 'frontier_submission.* not defined'; echo "exit ${PIPESTATUS[0]}"
echo "# a submission that does not compile"
printf 'int main(void)\n{\n    return nothing;\n}\n' >other/train.c
frontier build other 2>&1 | head -n 2 | cut -c1-60; echo "exit ${PIPESTATUS[0]}"
ls other
