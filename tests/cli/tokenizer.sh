# A tokenizer is trained, encodes and decodes; its errors name file and reason.
printf 'the cat sat on the mat. the cat sat.\n\nthe dog sat on the log, the dog did.\n%.0s' 1 2 3 4 >text.txt
frontier tokenizer train --out t.json --vocab 300 text.txt
frontier tokenizer encode --tokenizer t.json 'the cat' >ids
wc -w <ids
frontier tokenizer decode --tokenizer t.json "$(cat ids)"; echo
printf '\377\376 odd \000bytes' >odd
frontier tokenizer decode --tokenizer t.json "$(frontier tokenizer encode --tokenizer t.json odd)" | cmp - odd && echo "odd bytes come back"
frontier tokenizer encode --tokenizer t.json --json 'the cat' | schema_check "$TOP/docs/schema/tokenizer-encode.json" && echo "schema fits"
frontier tokenizer decode --tokenizer t.json '99999'; echo "exit $?"
frontier tokenizer decode --tokenizer t.json 'x'; echo "exit $?"
echo '{"model":' >broken.json
frontier tokenizer info broken.json; echo "exit $?"
frontier tokenizer info missing.json; echo "exit $?"
echo text | gzip >packed; frontier tokenizer train --out t.json packed; echo "exit $?"
