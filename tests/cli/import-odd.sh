# Imports that cannot work say why; files that are no files neither hang nor stop one that can.
try() { frontier data import "$@" 2>&1 | sed -e 's/imported in.*/imported/' -e '/^next/d'; echo "exit ${PIPESTATUS[0]}"; }
printf '\377\376t\000e\000x\000t\000\n\000' >utf16.txt
printf '\376\377\000{\000}' >utf16.jsonl
printf 'only one\n' >one.txt
: >empty.txt
printf '{"text":"the same"}\n{"text":"the  SAME"}\nnot json\n' >same.jsonl
for i in $(seq 30); do echo "{\"text\":\"document $i\"}"; done >good.jsonl
for file in utf16.txt utf16.jsonl one.txt empty.txt same.jsonl nowhere; do echo "# $file"; try --out data --vocab 300 "$file"; done
echo "# options"
try --out data good.jsonl --vocab 0
try --out data good.jsonl --vocab 264
try --out data good.jsonl --vocab 2000000
try --out data good.jsonl --valid-fraction 0
try --out data good.jsonl --valid-fraction 1
try --out data good.jsonl --valid good.jsonl
try --out good.jsonl good.jsonl
ls
echo "# a folder with strange things in it"
mkdir -p folder/inner
cp good.jsonl folder/inner
mkfifo folder/fifo.txt
ln -s . folder/loop
ln -s nowhere folder/dangling.txt
ln -s /dev/zero folder/zero.txt
printf 'named with a byte that is no UTF-8\n' >"$(printf 'folder/n\377.txt')"
try --out data folder | sed 's/n\xff/n?/'
frontier data import --out data folder --force --json 2>/dev/null | schema_check "$TOP/docs/schema/data-import.json" && echo "schema fits"
echo "# what to type next is one word to a shell"
for name in "it's mine" 'ü"$x'; do
    frontier data import --out "$name" folder 2>/dev/null | sed -n 's/^next: frontier train --data \(.*\) --budget.*/\1/p' >word
    eval "test -f $(cat word)/corpus.json" && echo same
done
