# CORE of a small run on the world's six tasks: a score, the same again from the log, a missing task, and what is refused.
frontier data world --out world --bytes 200K --vocab 300 >/dev/null
frontier train --data world --recipe "$TOP/recipes/demo.toml" --set model.depth=1 --set model.width=64 --set model.context=64 \
    --clock virtual:1 --budget 3s --out run --unscored >/dev/null 2>&1
score() { frontier eval core run --bundle world/core --max-per-task 12 "$@"; }
score --json --csv core.csv --items items.jsonl --plot core.svg 2>/dev/null >first.json; echo "exit $?"
schema_check "$TOP/docs/schema/eval-core.json" <first.json && echo "schema fits"
cut -d, -f1 core.csv | sed 's/ *$//'
wc -l <items.jsonl
grep -c '<svg xmlns' core.svg; grep -o 'world_[a-z]*' core.svg | wc -l
numbers() { grep -o '"\(accuracy\|core\|known\)":[^,}]*' "$1" | grep -v known; }
score --json --threads 1 2>/dev/null >second.json; echo "exit $?"
[ "$(numbers first.json)" = "$(numbers second.json)" ] && echo "the same again"
grep -o '"known":[0-9]*' second.json | sort | uniq -c | tr -s ' '
score --ties chance --json 2>/dev/null | grep -o '"ties":"[a-z]*"'
echo "# a missing task is named and there is no CORE"
rm world/core/eval_data/world/world_pets.jsonl
score --json 2>/dev/null | grep -o '"core":null\|"partial":[^]]*]' | sort
score 2>/dev/null | grep -c 'missing from the bundle'
score --tasks world_homes,world_trades --json 2>/dev/null | grep -o '"partial":[^]]*]'
score --tasks world_pets; echo "exit $?"
score --tasks world_homs; echo "exit $?"
echo "# bad bundles"
frontier eval core run --bundle nowhere; echo "exit $?"
frontier eval core run --bundle .; echo "exit $?"
echo '{"query": "q"' >>world/core/eval_data/world/world_homes.jsonl
score 2>&1 | sed 's/: [^:]*near.*//' | head -n 1; echo "exit ${PIPESTATUS[0]}"
: >world/core/eval_data/world/world_homes.jsonl
score; echo "exit $?"
sed -i 's/num_fewshot/num_fewshots/' world/core/core.yaml
score; echo "exit $?"
