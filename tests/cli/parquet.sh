# Parquet from end to end: the library out of an archive that is checked, shards fetched, imported, trained on; and columns
# that are not text, cut files and a missing library in words.
export FRONTIER_DUCKDB=${FRONTIER_DUCKDB:-$TOP/build/duckdb/libduckdb.so}
[ -f "$FRONTIER_DUCKDB" ] || { echo "parquet needs DuckDB's library: scripts/get-duckdb.sh"; exit 77; }
[ -d "$FRONTIER_SHARED/data/parquet" ] || { echo "parquet files need ../shared"; exit 77; }
command -v python3 >/dev/null || { echo "the loopback server needs python3"; exit 77; }
frontier data fetch climbmix --out no --url 'http://127.0.0.1:9/{index}' --retries 0 2>&1 | grep -q 'built without' && { echo "built without libcurl"; exit 77; }
cp "$FRONTIER_DUCKDB" libduckdb.so
python3 -c "import zipfile; z = zipfile.ZipFile('lib.zip', 'w', zipfile.ZIP_DEFLATED, compresslevel=1); z.writestr('duckdb.h', 'x'); z.write('libduckdb.so'); z.close()"
rm libduckdb.so
mkfifo in
serve() { # a server of one file: its address in $at
    rm -f port
    python3 "$TOP/tests/unit/fetch_server.py" "$1" <in >port &
    exec 7>in
    while [ ! -s port ]; do sleep 0.1; done
    at=http://127.0.0.1:$(cat port)
}
plain() { sed -E -e "s#${at:-none}#SERVER#g" -e 's/DuckDB v[0-9.]+/DuckDB vN/' -e 's/[0-9.]+ MiB/SIZE/' -e 's/[0-9a-f]{64}/HASH/'; }
serve lib.zip
frontier data fetch duckdb --out lib --yes --url "$at/none/9/lib.zip" --sha256 "$(sha256sum lib.zip | cut -c1-64)" | plain
frontier data fetch duckdb --out lib --yes --url "$at/none/9/lib.zip" --json 2>/dev/null | tail -n 1 | schema_check "$TOP/docs/schema/data-fetch.json" && echo "schema fits"
ls lib
exec 7>&-; wait
unset FRONTIER_DUCKDB
serve "$FRONTIER_SHARED/data/parquet/climbmix-like/shard_00002.parquet"
frontier data fetch climbmix --out shards --shards 1 --url "$at/short/9/shard_{index}.parquet" 2>/dev/null | plain
exec 7>&-; wait
cp "$FRONTIER_SHARED/data/parquet/climbmix-like/shard_00000.parquet" shards/train/shard_00000.parquet
frontier data import --out data shards/train --valid shards/valid --licence 'CC BY-NC 4.0' --duckdb lib/libduckdb.so --vocab 1000 | plain
frontier data info data | grep -v hash | plain
frontier train --data data --recipe "$TOP/recipes/baseline.toml" --set model.depth=1 --set model.width=32 --set model.head_dim=16 \
    --set model.context=32 --set optim.batch_tokens=256 --clock virtual:1 --set clock.max_steps=2 --unscored --out run >/dev/null 2>&1; echo "train exit $?"
echo "== words"
other=$FRONTIER_SHARED/data/parquet/parquet-testing
words() { "$@" 2>&1 | sed "s#$FRONTIER_SHARED#SHARED#"; echo "exit ${PIPESTATUS[0]}"; }
words frontier data import --out no --duckdb lib/libduckdb.so "$other/list_columns.parquet" --column int64_list
words frontier data import --out no --duckdb lib/libduckdb.so "$other/delta_byte_array.parquet"
words frontier data import --out no --duckdb lib/libduckdb.so "$other/binary.parquet"
head -c 100000 shards/train/shard_00000.parquet >cut.parquet
words frontier data import --out no --duckdb lib/libduckdb.so cut.parquet
words frontier data import --out no --duckdb missing.so cut.parquet
