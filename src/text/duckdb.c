/* duckdb.c: finding DuckDB's C library at run time.
 *
 * Parquet is a container of encodings, codecs and page formats that its readers took years to get right, so we use
 * one of them instead of writing another. DuckDB's is one shared library without dependencies, but no distribution
 * packages it: linking against it would make everybody fetch 70 MB for a file format that most runs never see. So it
 * is opened when the first .parquet is met, and only then.
 *
 * It is found in one place: what the caller names, else FRONTIER_DUCKDB, else the loader's path. A place that is
 * named and wrong is an error and no reason to look elsewhere. Only functions that have been in the C API since 1.2
 * are used; older versions cannot confine file access to one file, and a major version that we have not tried may
 * lay out results differently. The library stays loaded until the process ends: it has threads and C++ destructors
 * of its own, and unloading those is undefined in practice.
 */
#include "text/duckdb.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OLDEST_MAJOR = 1, OLDEST_MINOR = 2, NEWEST_MAJOR = 2 };

#define FUNCTION(name) {"duckdb_" #name, offsetof(duckdb_library, name)}
static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {
    FUNCTION(library_version),     FUNCTION(create_config),
    FUNCTION(set_config),          FUNCTION(destroy_config),
    FUNCTION(open_ext),            FUNCTION(close),
    FUNCTION(connect),             FUNCTION(disconnect),
    FUNCTION(query),               FUNCTION(prepare),
    FUNCTION(prepare_error),       FUNCTION(free),
    FUNCTION(destroy_prepare),     FUNCTION(bind_varchar),
    FUNCTION(execute_pending),     FUNCTION(pending_prepared_streaming),
    FUNCTION(pending_error),       FUNCTION(destroy_pending),
    FUNCTION(result_error),        FUNCTION(destroy_result),
    FUNCTION(fetch_chunk),         FUNCTION(data_chunk_get_size),
    FUNCTION(vector_get_data),     FUNCTION(data_chunk_get_vector),
    FUNCTION(vector_get_validity), FUNCTION(destroy_data_chunk),
    FUNCTION(string_t_length),     FUNCTION(string_t_data),
};
#undef FUNCTION

#ifdef __APPLE__
static const char loader_name[] = "libduckdb.dylib";
#else
static const char loader_name[] = "libduckdb.so";
#endif
static const char get_hint[] = "frontier data fetch duckdb --out DIR gets it; or take libduckdb.so from a DuckDB release "
                               "(or the npm package @duckdb/node-bindings-linux-x64) and name it with --duckdb or FRONTIER_DUCKDB";

static fr_status cannot_load(const char *where, bool named, fr_error *error)
{
    const char *reason = dlerror();
    reason = reason ? reason : "no reason given";
    if (!named)
        return fr_error_set(error, FR_BAD_ENVIRONMENT, where, get_hint,
                            "reading .parquet needs DuckDB's C library, which the loader does not find");
    if (strstr(reason, "undefined symbol: Py"))
        return fr_error_set(error, FR_BAD_ENVIRONMENT, where, get_hint,
                            "this is DuckDB's Python module, which works only inside Python");
    return fr_error_set(error, FR_BAD_ENVIRONMENT, where, get_hint, "cannot load DuckDB's C library: %s", reason);
}

/* POSIX keeps a function in a void pointer, C does not convert one into the other: the bytes are copied. */
static fr_status find_functions(duckdb_library *library, void *handle, const char *where, fr_error *error)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *symbol = dlsym(handle, functions[i].symbol);
        if (!symbol)
            return fr_error_set(error, FR_BAD_ENVIRONMENT, where, get_hint,
                                "not a DuckDB library of version %d.%d or later: it has no %s", OLDEST_MAJOR, OLDEST_MINOR,
                                functions[i].symbol);
        memcpy((char *)library + functions[i].offset, &symbol, sizeof symbol);
    }
    return FR_OK;
}

static fr_status check_version(const duckdb_library *library, const char *where, fr_error *error)
{
    int major = 0, minor = 0;
    const char *version = library->library_version();
    bool read = version && sscanf(version, "v%d.%d", &major, &minor) == 2;
    bool old = major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR);
    if (read && !old && major <= NEWEST_MAJOR)
        return FR_OK;
    return fr_error_set(error, FR_BAD_ENVIRONMENT, where, get_hint, "DuckDB %.40s: versions %d.%d to %d.x are supported",
                        version ? version : "without a version", OLDEST_MAJOR, OLDEST_MINOR, NEWEST_MAJOR);
}

fr_status duckdb_library_load(duckdb_library *library, const char *path, fr_error *error)
{
    const char *variable = getenv("FRONTIER_DUCKDB");
    const char *named = path ? path : variable && *variable ? variable : NULL;
    const char *where = named ? named : loader_name;
    struct stat info;
    if (named && stat(named, &info) == 0 && !S_ISREG(info.st_mode)) /* the loader would wait at a pipe */
        return fr_error_set(error, FR_BAD_ENVIRONMENT, named, get_hint, "not a regular file, so not DuckDB's C library");
    void *handle = dlopen(where, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return cannot_load(where, named != NULL, error);
    memset(library, 0, sizeof *library);
    FR_TRY(find_functions(library, handle, where, error));
    return check_version(library, where, error);
}
