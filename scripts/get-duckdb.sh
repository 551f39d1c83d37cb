#!/bin/sh
# scripts/get-duckdb.sh: DuckDB's C library for the tests of parquet, at build/duckdb/libduckdb.so, through npm: its package
# holds the release's library. Without npm or a network this says so and the tests skip; nothing else needs the library.
# NO_INSTALL=1 gets nothing. Users get it with 'frontier data fetch duckdb'.
set -eu
cd "$(dirname "$0")/.."
version=1.5.6-r.1
case $(uname -s)-$(uname -m) in
Linux-x86_64) package=@duckdb/node-bindings-linux-x64 ;;
Linux-aarch64) package=@duckdb/node-bindings-linux-arm64 ;;
*) echo "frontier: no DuckDB package is known for this machine" >&2; exit 4 ;;
esac
[ -f build/duckdb/libduckdb.so ] && exit 0
if [ "${NO_INSTALL:-0}" = 1 ] || ! command -v npm >/dev/null 2>&1; then
    echo "frontier: npm is missing or NO_INSTALL=1: tests of parquet will skip" >&2
    exit 4
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(cd "$folder" && timeout 120 npm pack --silent "$package@$version" >/dev/null && tar xzf ./*.tgz package/libduckdb.so)
mkdir -p build/duckdb
mv "$folder/package/libduckdb.so" build/duckdb/libduckdb.so.new
mv build/duckdb/libduckdb.so.new build/duckdb/libduckdb.so
echo "frontier: build/duckdb/libduckdb.so is $package $version"
