# Other programs' models: read, described, sampled; what is refused.
V="$TOP/tests/vectors/formats"
frontier import --format hf --out gpt2 "$V/gpt2"; echo "exit $?"
frontier import --format hf --out llama --context 16 "$V/llama"; echo "exit $?"
frontier import --format llama2c --tokenizer "$V/llama2c-tokenizer.bin" --out tiny "$V/llama2c.bin"; echo "exit $?"
ls gpt2
frontier info gpt2 | grep status
frontier info llama --write | grep -E '^(depth|width|head_dim|kv_heads|context|hidden|activation|norm|norm_eps|rotary_pairs|rope_base|tied)'
frontier tokenizer encode --tokenizer tiny 'aab aab é b'
frontier tokenizer decode --tokenizer tiny "$(frontier tokenizer encode --tokenizer tiny 'aab aab é b')"; echo
[ -n "$(frontier sample tiny --tokens 5 --temperature 0 --threads 1)" ] && echo "it samples"
echo "# scored as they are"
cp -r "$V/llama" llama-hf
frontier data world --out world --bytes 60K --vocab 300 >/dev/null 2>&1
frontier eval core --hf llama-hf --bundle world/core --max-per-task 3 --json 2>/dev/null >core.json; echo "exit $?"
schema_check "$TOP/docs/schema/eval-core.json" <core.json && echo "schema fits"
frontier import --format hf --out whole "$V/llama" >/dev/null
frontier eval core whole --bundle world/core --max-per-task 3 --json 2>/dev/null | grep -o '"core":[^,]*' >run
grep -o '"core":[^,]*' core.json | cmp - run && echo "the run's score is the folder's"
ls llama-hf/core.log
frontier eval core llama --hf llama-hf --bundle world/core; echo "exit $?"
frontier eval core --bundle world/core; echo "exit $?"
frontier eval bpb --hf llama-hf; echo "exit $?"
frontier eval bpb --hf llama-hf --data world; echo "exit $?"
echo "# out and back"
train() { frontier train --data world --recipe "$TOP/recipes/baseline.toml" --set model.depth=1 --set model.width=64 \
    --set model.head_dim=32 --set model.context=64 --set optim.batch_tokens=512 --clock virtual:1 --budget 3s --unscored "$@" >/dev/null 2>&1; }
train --out kit
train --set model.resid_scalars=false --set model.x0_scalars=false --out plain
for run in kit plain; do
    frontier export $run --format hf --out $run-hf; echo "exit $?"
    ls $run-hf
    frontier import --format hf --out $run-back $run-hf
    frontier sample $run --prompt The --temperature 0 --tokens 20 >said
    frontier sample $run-back --prompt The --temperature 0 --tokens 20 | cmp - said && echo "the same text"
done
frontier export kit --format hf --out kit-hf; echo "exit $?"
frontier export nowhere --format hf --out other; echo "exit $?"
echo "# refused"
frontier import --format hf --out gpt2 "$V/gpt2"; echo "exit $?"
frontier import --format hf --out nothing "$V"; echo "exit $?"
frontier import --format llama2c --out nothing "$V/llama2c.bin"; echo "exit $?"
frontier import --format llama2c --tokenizer "$V/llama2c.bin" --out nothing "$V/llama2c.bin"; echo "exit $?"
frontier import --format gguf --out nothing "$V/gpt2"; echo "exit $?"
frontier import --format hf --context 64 --out nothing "$V/llama"; echo "exit $?"
cp -r "$V/gpt2" broken
sed -i 's/"n_layer": 2/"n_layer": 3/' broken/config.json
frontier import --format hf --out nothing broken; echo "exit $?"
ls nothing 2>/dev/null
printf 'one document\nanother document\nthe third\nthe fourth\nand the fifth\n' >text.txt
frontier data import --out data --tokenizer gpt2/tokenizer.json --split lines --valid-fraction 0.5 text.txt >/dev/null 2>&1
frontier eval bpb gpt2 --data data 2>/dev/null | grep -o '^val_bpb'
frontier train --data data --recipe gpt2/recipe.toml --budget 1s --resume --out gpt2; echo "exit $?"
