/* fetch_receipt.c: where data came from, kept beside it.
 *
 * Data without a source and a licence is data that nobody may use, and a file without a hash is one that nobody can ask for
 * again. fetch.json names both; it is rewritten whole after every file, so it never lists a file that is not
 * there. It holds no times and no paths of this machine: the same files give the same receipt.
 */
#include "text/fetch_receipt.h"

#include "base/files.h"
#include "base/json.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { RECEIPT_SCHEMA = 1 };
static const char hint[] = "choose another folder, or remove this one";

static fr_status begin(fetch_receipt *receipt, const fr_fetch_origin *origin, fr_error *error)
{
    receipt->root = json_object();
    receipt->files = json_object();
    bool good = receipt->root && fr_json_set_string(receipt->root, "format", "frontier-fetch") &&
                fr_json_set_int(receipt->root, "schema", RECEIPT_SCHEMA) && fr_json_set_string(receipt->root, "name", origin->name) &&
                fr_json_set_string(receipt->root, "source", origin->source) &&
                (!origin->derived_from || fr_json_set_string(receipt->root, "derived_from", origin->derived_from)) &&
                fr_json_set_string(receipt->root, "licence", origin->licence) && fr_json_set(receipt->root, "files", receipt->files);
    return good ? FR_OK : fr_error_memory(error, 0, "fetch.json");
}

static fr_status read(fetch_receipt *receipt, const fr_fetch_origin *origin, fr_error *error)
{
    const char *format, *name;
    int64_t schema;
    FR_TRY(fr_json_read(&receipt->root, receipt->path, error));
    FR_TRY(fr_json_get_string(receipt->root, "format", &format, receipt->path, error));
    FR_TRY(fr_json_get_int(receipt->root, "schema", 1, INT64_MAX, &schema, receipt->path, error));
    FR_TRY(fr_json_get_string(receipt->root, "name", &name, receipt->path, error));
    if (strcmp(format, "frontier-fetch") != 0)
        return fr_error_set(error, FR_BAD_DATA, receipt->path, hint, "not a receipt of 'data fetch'");
    if (schema > RECEIPT_SCHEMA)
        return fr_error_set(error, FR_BAD_DATA, receipt->path, "use the program that wrote it", "schema %lld, this program reads %d",
                            (long long)schema, RECEIPT_SCHEMA);
    if (strcmp(name, origin->name) != 0)
        return fr_error_set(error, FR_BAD_USAGE, receipt->path, hint, "the folder holds %.60s, not %s", name, origin->name);
    return fr_json_get_object(receipt->root, "files", &receipt->files, receipt->path, error);
}

fr_status fetch_receipt_open(fetch_receipt *receipt, const char *folder, const fr_fetch_origin *origin, fr_error *error)
{
    memset(receipt, 0, sizeof *receipt);
    fr_path_join(receipt->path, sizeof receipt->path, folder, "fetch.json");
    fr_status status = fr_path_exists(receipt->path) ? read(receipt, origin, error) : begin(receipt, origin, error);
    if (status != FR_OK)
        fetch_receipt_close(receipt);
    return status;
}

fr_status fetch_receipt_measure(const char *path, int64_t *bytes, fr_error *error)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return fr_file_error(error, path, "read", errno);
    if (!S_ISREG(info.st_mode))
        return fr_error_set(error, FR_BAD_DATA, path, hint, "not a regular file");
    *bytes = (int64_t)info.st_size;
    return FR_OK;
}

fr_status fetch_receipt_keeps(const fetch_receipt *receipt, const char *name, const char *path, bool verify, bool *kept,
                              fr_error *error)
{
    char hex[65] = "";
    int64_t bytes = 0;
    const json_t *listed = json_object_get(receipt->files, name);
    const char *want = json_string_value(json_object_get(listed, "sha256"));
    *kept = false;
    if (!want || !fr_path_exists(path))
        return FR_OK;
    FR_TRY(fetch_receipt_measure(path, &bytes, error));
    if (verify)
        FR_TRY(fr_sha256_file(path, hex, error));
    *kept = json_integer_value(json_object_get(listed, "bytes")) == (json_int_t)bytes && (!verify || strcmp(want, hex) == 0);
    return FR_OK;
}

fr_status fetch_receipt_add(fetch_receipt *receipt, const char *name, const char *url, int64_t bytes, const char *sha256, fr_error *error)
{
    json_t *file = json_object();
    bool good = file && fr_json_set_string(file, "url", url) && fr_json_set_int(file, "bytes", bytes) &&
                fr_json_set_string(file, "sha256", sha256);
    if (!good || !fr_json_set(receipt->files, name, file))
        return fr_error_memory(error, 0, "fetch.json");
    return fr_json_write(receipt->root, receipt->path, error);
}

void fetch_receipt_close(fetch_receipt *receipt)
{
    json_decref(receipt->root);
    receipt->root = receipt->files = NULL;
}
