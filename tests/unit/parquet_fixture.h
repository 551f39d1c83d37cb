/* tests/unit/parquet_fixture.h: parquet files made by DuckDB itself, so that tests of parquet run wherever its library is. */
#ifndef TEST_PARQUET_FIXTURE_H
#define TEST_PARQUET_FIXTURE_H
#include "text/duckdb.h"
#include "text_fixture.h"

/* false: the library is not here, and the test skips. */
static inline bool fixture_duckdb(duckdb_library *library)
{
    fr_error error = {0};
    return duckdb_library_load(library, NULL, &error) == FR_OK;
}

/* Runs a query in an instance that nothing confines. */
static inline bool fixture_sql(const duckdb_library *library, const char *query)
{
    duckdb_handle database = NULL, connection = NULL;
    duckdb_result result;
    bool good = library->open_ext(":memory:", &database, NULL, NULL) == 0 && library->connect(database, &connection) == 0;
    if (good) {
        good = library->query(connection, query, &result) == 0;
        if (!good)
            printf("# %s: %s\n", query, library->result_error(&result));
        library->destroy_result(&result);
        library->disconnect(&connection);
    }
    if (database)
        library->close(&database);
    return good;
}

/* COPY (select) TO a file of this name with these options, as "COMPRESSION zstd". */
static inline const char *fixture_parquet(const duckdb_library *library, const char *name, const char *select, const char *options)
{
    char query[4000];
    const char *path = fixture_path(name);
    snprintf(query, sizeof query, "COPY (%s) TO '%s' (FORMAT parquet%s%s)", select, path, options ? ", " : "", options ? options : "");
    if (!fixture_sql(library, query))
        abort();
    return path;
}

#endif
