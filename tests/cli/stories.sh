# The published 260K-parameter model of TinyStories: the text that llama2.c's own program prints, token by token, and
# a score on stories.
S=$FRONTIER_SHARED/data/stories260k
[ -f "$S/stories260K.bin" ] || { echo "needs ../shared"; exit 77; }
frontier import --format llama2c --tokenizer "$S/tok512.bin" --out run "$S/stories260K.bin" || exit 1
frontier sample run --temperature 0 --tokens 200 >said
head -c -1 said | cmp - "$S/expected_greedy_200.txt" && echo "the published text, byte for byte"
frontier sample run --temperature 0 --tokens 200 --threads 1 | cmp - said && echo "on one thread too"
frontier data import --out data --tokenizer run/tokenizer.json --valid-fraction 0.3 \
    "$FRONTIER_SHARED/data/tinystories-sample/tinystories.txt" >/dev/null 2>&1
frontier eval bpb run --data data 2>/dev/null | grep -o 'val_bpb [0-9]\.[0-9][0-9][0-9]'
