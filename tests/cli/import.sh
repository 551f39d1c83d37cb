# What import says about odd files: kept, counted, named.
mkdir in
printf '{"text":"first document, long enough to be one"}\n{"text":null}\n{"nothing":1}\nnot json\n{"text":"second\\u0000 with NUL"}\n' >in/a.jsonl
printf '{"text":"First  document, long ENOUGH to be one"}\n{"text":"third"}\n' | gzip >in/b.jsonl.gz
printf '\357\273\277with a mark\r\nand line ends\r\n' >in/c.txt
printf 'bad \377 byte\n' >in/d.txt
: >in/empty.txt
printf '{"text":"a fourth document of this folder"}\n{"text":"a fifth document of it"}\n' | gzip | head -c 60 >in/cut.jsonl.gz
for i in $(seq 40); do printf '{"text":"document %d speaks of the number %d and of nothing else"}\n' "$i" "$i"; done >in/more.jsonl
frontier data import --out data in --vocab 300 --valid-fraction 0.2 | grep -v imported
frontier data info data | grep -v hash
frontier data import --out data in; echo "exit $?"
frontier data import --out other nowhere; echo "exit $?"
ls other 2>/dev/null | wc -l
frontier data import --out data2 in --vocab 300 --json --force | schema_check "$TOP/docs/schema/data-import.json" && echo "schema fits"
frontier data info data2 --json | schema_check "$TOP/docs/schema/data-info.json" && echo "schema fits"
frontier data text data | wc -c
frontier data text data --split train | grep -ao "document [0-9]* speaks" | sort -u | wc -l
