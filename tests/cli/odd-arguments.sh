# Odd values, names that are not UTF-8, and outputs that cannot be written: the exit code, the message, one JSON object.
odd=$(printf 'odd\377name')
json() { "$@" --json 2>/dev/null >answer; printf 'exit %s, %s line, ' "$?" "$(wc -l <answer)"; python3 -c '
import json, sys
answer = json.load(open("answer"))
print(answer["exit"], answer.get("error", {}).get("what"))'; }
if ! command -v python3 >/dev/null; then echo "needs python3"; exit 77; fi
echo "# one object, whatever went wrong"
json frontier
json frontier nonsense
json frontier train
json frontier train --nonsense
json frontier train --data "$odd"
json frontier train --data . --set "$odd=1"
json frontier train --data . --clock "$odd"
json frontier train "--$odd"
json frontier info "$odd"
json frontier compare "$odd" "$odd"
json frontier eval bpb "$odd"
json frontier sample "$odd"
json frontier report "$odd"
json frontier build "$odd"
json frontier data info "$odd"
json frontier data import --out data "$odd"
echo "# folders that are no runs: every command that takes a run says so"
mkdir hollow
for command in sample report info serve 'eval bpb' 'eval causality' 'export --format hf --out exported' 'compare hollow'; do
    frontier $command hollow 2>&1; echo "exit $?"
done
rmdir hollow
echo "# numbers and paths"
for value in -1 '' 1x 4294967297 99999999999999999999; do frontier data world --out data --threads "$value" 2>&1; done
for value in '' 1.5 nan 99999999999999999999 -99999999999999999999; do frontier data world --out data --seed "$value" 2>&1; done
frontier train --data '' 2>&1
frontier train --data . --out '' 2>&1
frontier info '' 2>&1
frontier info "$(printf 'a%.0s' {1..901})" 2>&1
echo "# outputs that cannot be written"
frontier --version >/dev/full; echo "exit $?"
frontier help >/dev/full; echo "exit $?"
frontier help --json >/dev/full; echo "exit $?"
frontier data world --out data --bytes 20K --vocab 300 >/dev/full; echo "exit $?"
frontier data world --out data --bytes 20K --vocab 300 --force >&-; echo "exit $?"
frontier data info data >&-; echo "exit $?"
frontier data info data 2>&- | head -n 1
ls data
frontier help | true; echo "exit ${PIPESTATUS[0]}"
