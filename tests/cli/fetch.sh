# Fetching from a server on the loopback: shards and the library, resumed, refused, listed.
command -v python3 >/dev/null || { echo "the loopback server needs python3"; exit 77; }
frontier data fetch climbmix --out no --url 'http://127.0.0.1:9/{index}' --retries 0 2>&1 | grep -q 'built without' && { echo "built without libcurl"; exit 77; }
mkfifo in
python3 "$TOP/tests/unit/fetch_server.py" <in >port &
exec 7>in
while [ ! -s port ]; do sleep 0.1; done
at=http://127.0.0.1:$(cat port)
plain() { sed -e "s#$at#SERVER#g" -e 's/attempt \([0-9]* of [0-9]*\) in [0-9.]* s/attempt \1/'; }
fetch() { frontier data fetch "$@" 2>&1 | plain; echo "exit ${PIPESTATUS[0]}"; }
fetch climbmix --out d --shards 2 --url "$at/none/50000/shard_{index}.parquet"
find d -type f | sort
sed -e "s#$at#SERVER#" d/fetch.json
echo "== again: nothing to do; then one shard is cut, and one damaged where only its hash tells"
fetch climbmix --out d --shards 2 --url "$at/none/50000/shard_{index}.parquet" | grep fetched
truncate -s 40000 d/train/shard_00000.parquet
printf X | dd of=d/train/shard_00001.parquet bs=1 seek=100 conv=notrunc 2>/dev/null
fetch climbmix --out d --shards 2 --url "$at/none/50000/shard_{index}.parquet" | grep fetched
fetch climbmix --out d --shards 2 --url "$at/none/50000/shard_{index}.parquet" --verify | grep fetched
echo "== faults"
fetch climbmix --out e --shards 1 --url "$at/missing/9/{index}" --connections 1 | tail -n 3
fetch climbmix --out e --shards 1 --url "$at/hash/5000/{index}" --retries 1 --connections 1 | tail -n 4
fetch climbmix --out e --shards 1 --url "$at/to-file/9/{index}" --connections 1 | tail -n 3
find e -name '*.parquet*'
echo "== Ctrl-C leaves parts to go on from"
frontier data fetch climbmix --out f --shards 1 --url "$at/drip/400000/{index}" >/dev/null 2>&1 &
fetcher=$!
while [ ! -s f/valid/shard_06542.parquet.part ]; do sleep 0.1; done
kill -INT $fetcher; wait $fetcher; echo "exit $?"
find f -name '*.part' | sort
echo "== usage"
fetch climbmix --out e --shards 0
fetch climbmix --out e --shards 7000
fetch climbmix --out e --url http://host/no-index | tail -n 3
fetch climbmix --out e --url 'file:///etc/{index}' | tail -n 3
fetch climbmix --out e --connections 9 | tail -n 3
fetch climbmix --out e --retries 100000 | tail -n 2
fetch climbmix --out e --timeout 9h | tail -n 3
fetch climbmix --out e --yes
fetch duckdb --out d --yes --url "$at/none/9/x.zip" | tail -n 3
fetch duckdb --out e --url "$at/none/9/x.zip" --sha256 12
fetch fineweb --out e
echo "== the library: asked for, checked, unpacked"
fetch duckdb --out lib --url "$at/none/5000/libduckdb.zip" </dev/null
fetch duckdb --out lib --url "$at/none/5000/libduckdb.zip" --yes | tail -n 3
fetch duckdb --out lib --url "$at/none/5000/libduckdb.zip" --yes --retries 0 --sha256 "$(printf %064d 0)" | tail -n 3
exec 7>&-
wait
