# Help goes to stdout, misuse to stderr with exit 2, and every command has a help page and examples.
frontier >out 2>err; echo "no command: exit $?, $(wc -l <out) lines on stdout"
head -n 3 err
frontier trian; echo "exit $?"
frontier data; echo "exit $?"
frontier help data; echo "exit $?"
frontier help trian; echo "exit $?"
frontier train --dat x; echo "exit $?"
frontier train; echo "exit $?"
frontier data import --vocab many --out d x; echo "exit $?"
frontier eval bpb a b; echo "exit $?"
frontier sample run --temperature; echo "exit $?"
frontier help --json >all.json; echo "exit $?"
frontier help | sed -n 's/^  \(.\{18\}\) .*/\1/p' | while read -r command; do
    frontier $command --help >page 2>err && grep -q '^examples:' page && grep -q '^usage:' page && ! [ -s err ] && echo "ok $command" || echo "BAD $command"
done
schema_check "$TOP/docs/schema/help.json" <all.json && echo "schema fits"
frontier help --man | head -n 3
frontier help --completion bash | bash -n && echo "completion parses"
. <(frontier help --completion bash)
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _frontier; echo "$*: ${COMPREPLY[*]}"; }
try frontier tra; try frontier train --bu; try frontier data im; try frontier bench st
