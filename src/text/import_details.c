/* import_details.c: the sources and settings of an import, for the manifest.
 *
 * Sources are named relative to what the user named, with size and SHA-256: enough to find them again, nothing
 * about this machine. File names are bytes and JSON is Unicode, so a name that is not UTF-8 is written
 * with %XX for its bytes beyond ASCII.
 */
#include "text/import_details.h"

#include "text/import_report.h"
#include "text/import_text.h"

#include <jansson.h>
#include <string.h>

static const char *const split_names[] = {
    [FR_SPLIT_FILE] = "file",
    [FR_SPLIT_BLANK_LINES] = "blank-lines",
    [FR_SPLIT_LINES] = "lines",
    [FR_SPLIT_BYTES] = "bytes",
    [FR_SPLIT_AUTO] = "auto",
};

static json_t *name_of(const char *name)
{
    if (import_is_utf8(name, strlen(name)))
        return json_string(name);
    fr_buffer escaped;
    fr_buffer_init(&escaped, 0);
    for (const char *c = name; *c; c++)
        fr_buffer_printf(&escaped, (uint8_t)*c < 0x80 ? "%c" : "%%%02X", (uint8_t)*c);
    json_t *value = escaped.failed ? NULL : json_string(escaped.data);
    fr_buffer_release(&escaped);
    return value;
}

static fr_status add_sources(json_t *array, const import_files *files, const char *split, fr_error *error)
{
    for (int64_t i = 0; i < files->count; i++) {
        char hex[65];
        FR_TRY(fr_sha256_file(files->list[i].path, hex, error));
        json_t *source = json_pack("{s:o, s:s, s:I, s:s}", "name", name_of(files->list[i].name), "split", split, "bytes",
                                   (json_int_t)files->list[i].bytes, "sha256", hex);
        if (!source || json_array_append_new(array, source) != 0)
            return fr_error_memory(error, 0, "corpus.json");
    }
    return FR_OK;
}

static json_t *format_counts(const fr_import_summary *summary)
{
    json_t *counts = json_object();
    int failures = 0;
    for (int kind = 0; kind < FR_IMPORT_KINDS; kind++)
        if (summary->counts[kind] > 0)
            failures |= json_object_set_new(counts, fr_import_kind_name((fr_import_kind)kind), json_integer((json_int_t)summary->counts[kind]));
    if (failures == 0)
        return counts;
    json_decref(counts);
    return NULL;
}

static bool add_settings(json_t *root, const import_details *details)
{
    const char *field = details->options->text_field ? details->options->text_field : "text";
    const char *column = details->options->column;
    json_t *import = json_pack("{s:s, s:I, s:s, s:s*, s:f, s:o}", "split", split_names[details->split], "split_bytes",
                               (json_int_t)details->split_bytes, "text_field", field, "column", column, "valid_fraction",
                               details->valid_fraction, "counts", format_counts(details->summary));
    json_t *licence = details->options->licence ? json_string(details->options->licence) : json_null();
    int failures = json_object_set_new(root, "licence", licence);
    failures |= json_object_set_new(root, "import", import);
    return failures == 0;
}

static fr_status fill(json_t *root, const import_details *details, fr_error *error)
{
    json_t *sources = json_array();
    if (json_object_set_new(root, "sources", sources) != 0)
        return fr_error_memory(error, 0, "corpus.json");
    FR_TRY(add_sources(sources, details->train, details->valid->count > 0 ? "train" : "both", error));
    FR_TRY(add_sources(sources, details->valid, "valid", error));
    return add_settings(root, details) ? FR_OK : fr_error_memory(error, 0, "corpus.json");
}

fr_status import_details_format(const import_details *details, char **json, fr_error *error)
{
    json_t *root = json_object();
    fr_status status = root ? fill(root, details, error) : fr_error_memory(error, 0, "corpus.json");
    *json = status == FR_OK ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    if (status == FR_OK && !*json)
        status = fr_error_memory(error, 0, "corpus.json");
    json_decref(root);
    return status;
}
