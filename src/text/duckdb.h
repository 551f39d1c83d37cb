/* text/duckdb.h: the part of DuckDB's C library that reading parquet needs, found at run time. See duckdb.c. */
#ifndef TEXT_DUCKDB_H
#define TEXT_DUCKDB_H
#include "frontier/text.h"

/* Its handles are pointers to things we never look into. */
typedef void *duckdb_handle;

/* As its ABI lays them out: a result is passed by value, a string lies in a vector. */
typedef struct duckdb_result {
    uint64_t counts[3];
    void *internals[3];
} duckdb_result;
typedef union duckdb_text {
    struct {
        uint32_t length;
        char prefix[4];
        char *start;
    } far;
    struct {
        uint32_t length;
        char bytes[12];
    } near;
} duckdb_text;

/* One member per function; the names are in duckdb.c's table. int results: 0 is success. */
typedef struct duckdb_library {
    const char *(*library_version)(void);
    int (*create_config)(duckdb_handle *config);
    int (*set_config)(duckdb_handle config, const char *name, const char *value);
    void (*destroy_config)(duckdb_handle *config);
    int (*open_ext)(const char *path, duckdb_handle *database, duckdb_handle config, char **message);
    void (*close)(duckdb_handle *database);
    int (*connect)(duckdb_handle database, duckdb_handle *connection);
    void (*disconnect)(duckdb_handle *connection);
    int (*query)(duckdb_handle connection, const char *query, duckdb_result *result);
    int (*prepare)(duckdb_handle connection, const char *query, duckdb_handle *statement);
    const char *(*prepare_error)(duckdb_handle statement);
    void (*destroy_prepare)(duckdb_handle *statement);
    int (*bind_varchar)(duckdb_handle statement, uint64_t index, const char *value);
    int (*pending_prepared_streaming)(duckdb_handle statement, duckdb_handle *pending);
    const char *(*pending_error)(duckdb_handle pending);
    int (*execute_pending)(duckdb_handle pending, duckdb_result *result);
    void (*destroy_pending)(duckdb_handle *pending);
    const char *(*result_error)(duckdb_result *result);
    void (*destroy_result)(duckdb_result *result);
    duckdb_handle (*fetch_chunk)(duckdb_result result);
    uint64_t (*data_chunk_get_size)(duckdb_handle chunk);
    duckdb_handle (*data_chunk_get_vector)(duckdb_handle chunk, uint64_t column);
    void *(*vector_get_data)(duckdb_handle vector);
    uint64_t *(*vector_get_validity)(duckdb_handle vector);
    void (*destroy_data_chunk)(duckdb_handle *chunk);
    uint32_t (*string_t_length)(duckdb_text text);
    const char *(*string_t_data)(duckdb_text *text);
    void (*free)(void *memory);
} duckdb_library;

/* `path` (may be NULL) is tried first and then nothing else; without it FRONTIER_DUCKDB; without that the loader's
 * path. Missing, of an unsupported version or not this library: FR_BAD_ENVIRONMENT with what to get and how. */
fr_status duckdb_library_load(duckdb_library *library, const char *path, fr_error *error);

#endif
