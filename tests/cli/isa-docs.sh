# docs/isa says what the instruction table says (scripts/isa-docs.sh writes it).
sh "$TOP/scripts/isa-docs.sh" isa
if diff -r isa "$TOP/docs/isa"; then echo "docs/isa is up to date"; else echo "docs/isa is old: run scripts/isa-docs.sh"; fi
