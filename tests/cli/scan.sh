# Evaluation text in training data: none in a clean world, what is planted is found and its document named, however it is written.
frontier data world --out world --bytes 300K --vocab 300 >/dev/null
scan() { frontier data scan "$@" --bundle world/core; }
echo "# the world's own text"
scan world --split all --json 2>/dev/null >clean.json; echo "exit $?"
schema_check "$TOP/docs/schema/data-scan.json" <clean.json && grep -o '"found":[0-9]*,"items":[0-9]*,"missing"' clean.json
echo "# one item planted, in capitals and with other punctuation; one with every tenth word changed"
frontier data text world >text.txt
split -l 40 text.txt page- && mkdir pages && mv page-* pages/
item=$(head -n 5 world/core/eval_data/world/world_reading.jsonl | tail -n 1 | sed 's/.*"context": *"//; s/", *"continuation": *"/ /; s/"}*$//; s/\\n/ /g')
echo "$item" | tr 'a-z .' 'A-Z  ' | fold -w 30 >pages/zz-planted
echo "$item" | awk '{ for (i = 1; i <= NF; i++) printf "%s ", i % 10 ? $i : "xxxx" }' >pages/zz-changed
for page in pages/*; do mv "$page" "$page.txt"; done
frontier data import --out planted --tokenizer world/tokenizer.json --split file --valid-fraction 0.000001 pages >/dev/null 2>&1
scan planted --json --documents finds.jsonl 2>/dev/null >planted.json; echo "exit $?"
grep -o '"documents":[0-9]*' planted.json; grep -o '"line":[0-9]*' finds.jsonl; grep -o '"task":"[a-z_]*"' finds.jsonl
echo "# refused"
scan nowhere; echo "exit $?"
scan world --words 3; echo "exit $?"
frontier data scan world --bundle nowhere; echo "exit $?"
