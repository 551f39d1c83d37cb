# Damaged run folders: every command that reads them names the file and never crashes, resumes or overwrites by mistake.
frontier data world --out data --bytes 100K --vocab 300 >/dev/null
frontier train --data data --recipe "$TOP/recipes/baseline.toml" --set model.depth=1 --set model.width=32 --set model.head_dim=16 \
    --set model.context=32 --set optim.batch_tokens=512 --set clock.max_steps=2 --threads 1 --clock virtual:1 --out whole >/dev/null
every_reader() {
    {
        frontier info run; echo "info $?"
        frontier report run --html page.html --sample 2; echo "report $?"
        frontier compare run whole; echo "compare $?"
        frontier eval bpb run; echo "eval $?"
        frontier sample run --prompt x --tokens 2; echo "sample $?"
        frontier train --data data --clock virtual:1 --set clock.max_steps=3 --out run --resume --unscored; echo "resume $?"
    } 2>&1 | grep -a -E '^(frontier: error|[a-z]+ [0-9]+$)' | sed 's/run.json:[0-9]*/run.json:N/'
}
for file in run.json model.safetensors optimizer.safetensors recipe.toml tokenizer.json clock.jsonl log.jsonl; do
    for how in lost cut other; do
        rm -rf run; cp -r whole run
        case $how in
        lost) rm "run/$file" ;;
        cut) truncate -s -9 "run/$file" ;;
        other) echo '{}' >"run/$file" ;;
        esac
        echo "# $file $how"
        every_reader
    done
done
