/* import_parquet.c: a parquet file as a stream of rows of text.
 *
 * One DuckDB instance lives as long as one file is read. It is confined: it may open one path, installs and loads no
 * extension, writes no temporary file, has one thread, and gets a limit on memory. The path it gets is not the
 * file's name but /proc/self/fd/N of the file we opened: a name could hold wildcards, key=value folders or the
 * scheme of a URL, each of which DuckDB would act on; this way none is ever interpreted, the file that was checked
 * is the file that is read, and nothing else can be opened. The column's name is quoted.
 *
 * Rows come in chunks of about 2,000 in the file's order, so memory follows a chunk and the file's own pages, never
 * the file. A stream that ends early without saying why would be lost text: rows are counted against the footer.
 */
#include "text/import_parquet.h"

#include "base/files.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_COLUMNS_NAMED = 12 };
static const char damaged_hint[] = "get the file again, or leave it out";

/* ---- errors ---- */

static void stand_in(const import_parquet *file, char out[40])
{
    snprintf(out, 40, "/proc/self/fd/%d", file->descriptor);
}

/* DuckDB's messages have lines of advice, our stand-in for the name and pieces of the file: one line, printable. */
static void first_line(const import_parquet *file, const char *message, char *out, size_t size)
{
    char self[40];
    const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
    stand_in(file, self);
    size_t used = 0;
    for (const char *c = message; *c && *c != '\n' && used + 1 < size;) {
        if (strncmp(c, self, strlen(self)) == 0) {
            used += (size_t)snprintf(out + used, size - used, "%.60s", name);
            used = used < size ? used : size - 1;
            c += strlen(self);
        } else {
            out[used++] = *c > 0 && *c < ' ' ? '?' : *c;
            c++;
        }
    }
    out[used] = '\0';
}

static fr_status failed(const import_parquet *file, const char *message, fr_error *error)
{
    char line[300];
    first_line(file, message && *message ? message : "no reason given", line, sizeof line);
    bool memory = strncmp(line, "Out of Memory", 13) == 0;
    if (file->row > 0)
        return fr_error_set(error, memory ? FR_BAD_ENVIRONMENT : FR_BAD_DATA, file->path, damaged_hint,
                            "parquet, after row %lld: %s", (long long)file->row, line);
    return fr_error_set(error, memory ? FR_BAD_ENVIRONMENT : FR_BAD_DATA, file->path, damaged_hint, "parquet: %s", line);
}

/* ---- the instance ---- */

static fr_status configure(import_parquet *file, duckdb_handle config, fr_error *error)
{
    static const struct {
        const char *name, *value;
    } settings[] = {
        {"threads", "1"},
        {"memory_limit", "1GiB"},
        {"temp_directory", ""},
        {"autoinstall_known_extensions", "false"},
        {"autoload_known_extensions", "false"},
        {"allow_community_extensions", "false"},
        {"allow_unsigned_extensions", "false"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (file->library->set_config(config, settings[i].name, settings[i].value) != 0)
            return fr_error_set(error, FR_BAD_ENVIRONMENT, "DuckDB", "use another version of it", "%s does not take %s=%s",
                                file->library->library_version(), settings[i].name, settings[i].value);
    return FR_OK;
}

/* What can only be set in a running instance; afterwards nothing can be set. */
static fr_status confine(import_parquet *file, fr_error *error)
{
    char allow[80], self[40];
    duckdb_result result;
    stand_in(file, self);
    snprintf(allow, sizeof allow, "SET allowed_paths=['%s']", self);
    /* The buffer counts rows without their text: by default it holds 30 chunks, gigabytes of long documents. */
    const char *const commands[] = {"SET streaming_buffer_size='1KiB'", allow, "SET enable_external_access=false",
                                    "SET lock_configuration=true"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        bool refused = file->library->query(file->connection, commands[i], &result) != 0;
        fr_status status = refused ? failed(file, file->library->result_error(&result), error) : FR_OK;
        file->library->destroy_result(&result);
        FR_TRY(status);
    }
    return FR_OK;
}

static fr_status start(import_parquet *file, fr_error *error)
{
    duckdb_handle config = NULL;
    char *message = NULL;
    if (file->library->create_config(&config) != 0)
        return fr_error_memory(error, 0, "DuckDB's configuration");
    fr_status status = configure(file, config, error);
    if (status == FR_OK && (file->library->open_ext(":memory:", &file->database, config, &message) != 0 ||
                            file->library->connect(file->database, &file->connection) != 0))
        status = fr_error_set(error, FR_BAD_ENVIRONMENT, "DuckDB", "use another version of it", "cannot start: %.200s",
                              message ? message : "no reason given");
    if (message)
        file->library->free(message);
    file->library->destroy_config(&config);
    return status;
}

/* ---- queries ---- */

static void end_query(import_parquet *file)
{
    if (file->chunk)
        file->library->destroy_data_chunk(&file->chunk);
    file->chunk = NULL;
    if (file->running)
        file->library->destroy_result(&file->result);
    file->running = false;
    file->at = file->size = 0;
}

static fr_status execute(import_parquet *file, duckdb_handle statement, fr_error *error)
{
    char self[40];
    duckdb_handle pending = NULL;
    stand_in(file, self);
    if (file->library->bind_varchar(statement, 1, self) != 0)
        return failed(file, file->library->prepare_error(statement), error);
    fr_status status = FR_OK;
    if (file->library->pending_prepared_streaming(statement, &pending) != 0) {
        status = failed(file, file->library->pending_error(pending), error);
    } else if (file->library->execute_pending(pending, &file->result) != 0) {
        status = failed(file, file->library->result_error(&file->result), error);
        file->library->destroy_result(&file->result);
    } else {
        file->running = true;
    }
    file->library->destroy_pending(&pending);
    return status;
}

/* Starts a query whose one parameter is the file. */
static fr_status begin_query(import_parquet *file, const char *query, fr_error *error)
{
    duckdb_handle statement = NULL;
    end_query(file);
    fr_status status;
    if (file->library->prepare(file->connection, query, &statement) != 0)
        status = failed(file, file->library->prepare_error(statement), error);
    else
        status = execute(file, statement, error);
    file->library->destroy_prepare(&statement);
    return status;
}

/* false in *found: the result has no more rows. */
static fr_status next_row(import_parquet *file, bool *found, fr_error *error)
{
    *found = file->at + 1 < file->size;
    if (*found) {
        file->at++;
        return FR_OK;
    }
    do {
        if (file->chunk)
            file->library->destroy_data_chunk(&file->chunk);
        file->chunk = file->library->fetch_chunk(file->result);
        file->at = 0;
        file->size = file->chunk ? file->library->data_chunk_get_size(file->chunk) : 0;
    } while (file->chunk && file->size == 0);
    *found = file->size > 0;
    const char *message = *found ? NULL : file->library->result_error(&file->result);
    return message && *message ? failed(file, message, error) : FR_OK;
}

/* NULL for a null. */
static const char *text_at(const import_parquet *file, uint64_t column, size_t *bytes)
{
    duckdb_handle vector = file->library->data_chunk_get_vector(file->chunk, column);
    const uint64_t *valid = file->library->vector_get_validity(vector);
    *bytes = 0;
    if (valid && !(valid[file->at / 64] >> (file->at % 64) & 1))
        return NULL;
    duckdb_text *text = (duckdb_text *)file->library->vector_get_data(vector) + file->at;
    *bytes = file->library->string_t_length(*text);
    return file->library->string_t_data(text);
}

/* ---- the column ---- */

typedef struct column_choice {
    char name[256];      /* the chosen one */
    int64_t columns, strings;
    bool exists, chosen; /* the wanted one: there, and of strings */
    char list[240];      /* "id BIGINT, text VARCHAR, ..." */
} column_choice;

static void consider(column_choice *choice, const char *wanted, const char *name, const char *type)
{
    bool string = strcmp(type, "VARCHAR") == 0 || strcmp(type, "JSON") == 0;
    bool match = strcmp(name, wanted ? wanted : "text") == 0;
    choice->strings += string;
    choice->exists |= match;
    if ((match && string) || (string && !wanted && !choice->chosen))
        snprintf(choice->name, sizeof choice->name, "%s", name);
    choice->chosen |= match && string;
    size_t used = strlen(choice->list);
    if (choice->columns++ < MOST_COLUMNS_NAMED)
        snprintf(choice->list + used, sizeof choice->list - used, "%s%.60s %.60s", used ? ", " : "", name, type);
}

static fr_status no_column(const import_parquet *file, const column_choice *choice, const char *wanted, fr_error *error)
{
    const char *name = wanted ? wanted : "text";
    char hint[300];
    snprintf(hint, sizeof hint, "columns: %s%s", choice->list, choice->columns > MOST_COLUMNS_NAMED ? ", ..." : "");
    if (choice->exists)
        return fr_error_set(error, FR_BAD_DATA, file->path, hint, "column '%.60s' is not text", name);
    if (wanted)
        return fr_error_set(error, FR_BAD_DATA, file->path, hint, "no column '%.60s'", wanted);
    if (choice->strings == 0)
        return fr_error_set(error, FR_BAD_DATA, file->path, hint, "no column of text");
    return fr_error_set(error, FR_BAD_DATA, file->path, hint,
                        "no column 'text', and %lld others hold text: choose one with --column", (long long)choice->strings);
}

static fr_status read_columns(import_parquet *file, column_choice *choice, const char *wanted, fr_error *error)
{
    bool found;
    FR_TRY(begin_query(file, "DESCRIBE SELECT * FROM read_parquet(?)", error));
    for (;;) {
        char name[256], type[256];
        size_t name_bytes, type_bytes;
        FR_TRY(next_row(file, &found, error));
        if (!found)
            return FR_OK;
        const char *name_text = text_at(file, 0, &name_bytes), *type_text = text_at(file, 1, &type_bytes);
        if (name_bytes >= sizeof name || memchr(name_text, 0, name_bytes))
            continue; /* nobody can name it */
        snprintf(name, sizeof name, "%.*s", (int)name_bytes, name_text);
        snprintf(type, sizeof type, "%.*s", type_bytes < 200 ? (int)type_bytes : 200, type_text);
        consider(choice, wanted, name, type);
    }
}

static fr_status choose_column(import_parquet *file, const char *wanted, char *name, size_t size, fr_error *error)
{
    column_choice choice = {0};
    FR_TRY(read_columns(file, &choice, wanted, error));
    if (!choice.chosen && (wanted || choice.exists || choice.strings != 1))
        return no_column(file, &choice, wanted, error);
    snprintf(name, size, "%s", choice.name);
    return FR_OK;
}

static fr_status count_rows(import_parquet *file, fr_error *error)
{
    bool found;
    FR_TRY(begin_query(file, "SELECT count(*)::VARCHAR FROM read_parquet(?)", error));
    FR_TRY(next_row(file, &found, error));
    size_t bytes = 0;
    const char *text = found ? text_at(file, 0, &bytes) : NULL;
    char digits[32];
    if (!text || bytes >= sizeof digits)
        return failed(file, "no count of rows", error);
    snprintf(digits, sizeof digits, "%.*s", (int)bytes, text);
    return fr_parse_int(digits, 0, INT64_MAX, &file->rows, file->path, error);
}

static fr_status select_column(import_parquet *file, const char *name, fr_error *error)
{
    fr_buffer query;
    fr_buffer_init(&query, 4096);
    fr_buffer_printf(&query, "SELECT \"");
    for (const char *c = name; *c; c++)
        fr_buffer_printf(&query, *c == '"' ? "\"\"" : "%c", *c);
    fr_buffer_printf(&query, "\" FROM read_parquet(?)");
    fr_status status = query.failed ? fr_error_memory(error, 4096, "a query") : begin_query(file, query.data, error);
    fr_buffer_release(&query);
    return status;
}

/* ---- the file ---- */

static fr_status open_regular(import_parquet *file, fr_error *error)
{
    struct stat info;
    FR_TRY(fr_file_open_read(file->path, &file->descriptor, error));
    if (fstat(file->descriptor, &info) == 0 && S_ISREG(info.st_mode))
        return FR_OK;
    return fr_error_set(error, FR_BAD_DATA, file->path, "name a regular file", "parquet is read from files only");
}

static fr_status open_steps(import_parquet *file, const char *column, fr_error *error)
{
    char name[256];
    FR_TRY(open_regular(file, error));
    FR_TRY(start(file, error));
    FR_TRY(confine(file, error));
    FR_TRY(choose_column(file, column, name, sizeof name, error));
    FR_TRY(count_rows(file, error));
    return select_column(file, name, error);
}

fr_status import_parquet_open(import_parquet *file, const duckdb_library *library, const char *path, const char *column,
                              fr_error *error)
{
    memset(file, 0, sizeof *file);
    file->library = library;
    file->path = path;
    file->descriptor = -1;
    fr_status status = open_steps(file, column, error);
    if (status != FR_OK)
        import_parquet_close(file);
    return status;
}

fr_status import_parquet_next(import_parquet *file, bool *found, const char **text, size_t *bytes, fr_error *error)
{
    FR_TRY(next_row(file, found, error));
    if (!*found && file->row != file->rows)
        return fr_error_set(error, FR_BAD_DATA, file->path, damaged_hint, "parquet: %lld rows came out, its footer promises %lld",
                            (long long)file->row, (long long)file->rows);
    if (!*found)
        return FR_OK;
    file->row++;
    *text = text_at(file, 0, bytes);
    return FR_OK;
}

void import_parquet_close(import_parquet *file)
{
    if (!file->library)
        return;
    end_query(file);
    if (file->connection)
        file->library->disconnect(&file->connection);
    if (file->database)
        file->library->close(&file->database);
    if (file->descriptor >= 0)
        close(file->descriptor);
    memset(file, 0, sizeof *file);
}
