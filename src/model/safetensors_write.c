/* Writing a tensor file: the same tensors and metadata give the same bytes, and the file appears whole or not
 * at all.
 *
 * The header is built with jansson in insertion order, so its bytes depend on the input alone: no time, no
 * host name, no hash order. Everything is checked before the first byte is written; the durable writer does
 * the rest.
 */
#include "model/safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct layout {
    const fr_tensor_entry *entries;
    int count;
    const char *const *metadata;
    int pair_count;
    const char *path;
} layout;

static fr_status check_entries(const layout *file, fr_error *error)
{
    for (int i = 0; i < file->count; i++) {
        const fr_tensor_entry *entry = &file->entries[i];
        size_t bytes;
        if (!entry->name || strcmp(entry->name, "__metadata__") == 0 || entry->dims < 0 || entry->dims > 4)
            return fr_error_set(error, FR_BUG, file->path, NULL, "tensor %d has no usable name or shape", i);
        if (!fr_tensor_dtype_word(entry->dtype) || !fr_tensor_bytes(entry, &bytes) || (bytes && !entry->data))
            return fr_error_set(error, FR_BUG, file->path, NULL,
                                "tensor '%s' has no usable type, size or data", entry->name);
    }
    return FR_OK;
}

static uint64_t checksum(const layout *file)
{
    uint64_t sum = fr_tensor_checksum_text(fr_tensor_checksum_text(0, "format_version"), FR_TENSOR_FORMAT);
    for (int i = 0; i < 2 * file->pair_count; i++)
        sum = fr_tensor_checksum_text(sum, file->metadata[i]);
    for (int i = 0; i < file->count; i++) {
        size_t bytes = 0;
        fr_tensor_bytes(&file->entries[i], &bytes);
        sum = fr_tensor_checksum_entry(sum, &file->entries[i], bytes);
    }
    return sum;
}

/* Sets a key that must be new; takes the value. False: memory is out or the key is there already. */
static bool set_new(json_t *object, const char *key, json_t *value)
{
    if (!value || json_object_get(object, key)) {
        json_decref(value);
        return false;
    }
    return json_object_set_new(object, key, value) == 0;
}

static json_t *describe_metadata(const layout *file)
{
    char hex[17];
    fr_tensor_checksum_format(checksum(file), hex);
    json_t *object = json_object();
    bool good = object && set_new(object, "format_version", json_string(FR_TENSOR_FORMAT)) &&
                set_new(object, "checksum", json_string(hex));
    for (int i = 0; good && i < file->pair_count; i++)
        good = set_new(object, file->metadata[2 * i], json_string(file->metadata[2 * i + 1]));
    if (good)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *describe_entry(const fr_tensor_entry *entry, uint64_t start, uint64_t end)
{
    json_t *shape = json_array();
    for (int i = 0; shape && i < entry->dims; i++)
        if (json_array_append_new(shape, json_integer(entry->shape[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", fr_tensor_dtype_word(entry->dtype), "shape", shape,
                     "data_offsets", (json_int_t)start, (json_int_t)end);
}

/* The header's text, to be given to free(); NULL when a name is used twice, is no UTF-8, or memory is out. */
static char *describe(const layout *file)
{
    json_t *header = json_object();
    bool good = header && set_new(header, "__metadata__", describe_metadata(file));
    uint64_t offset = 0;
    for (int i = 0; good && i < file->count; i++) {
        size_t bytes = 0;
        fr_tensor_bytes(&file->entries[i], &bytes);
        good =
            set_new(header, file->entries[i].name, describe_entry(&file->entries[i], offset, offset + bytes));
        offset += bytes;
    }
    char *text = good ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    return text;
}

static void append_file(fr_file_writer *writer, const layout *file, const char *header)
{
    uint64_t length = strlen(header), padded = (length + 7) / 8 * 8;
    uint8_t prefix[8];
    for (int i = 0; i < 8; i++)
        prefix[i] = (uint8_t)(padded >> (8 * i));
    fr_file_writer_append(writer, prefix, sizeof prefix);
    fr_file_writer_append(writer, header, length);
    fr_file_writer_append(writer, "       ", padded - length);
    for (int i = 0; i < file->count; i++) {
        size_t bytes = 0;
        fr_tensor_bytes(&file->entries[i], &bytes);
        if (bytes)
            fr_file_writer_append(writer, file->entries[i].data, bytes);
    }
}

fr_status fr_tensor_file_write(const char *path, const fr_tensor_entry *entries, int count,
                               const char *const *metadata_pairs, int pair_count, fr_error *error)
{
    layout file = {entries, count, metadata_pairs, pair_count, path};
    FR_TRY(check_entries(&file, error));
    char *header = describe(&file);
    if (!header)
        return fr_error_set(error, FR_BUG, path, "names must be UTF-8 and used once",
                            "the tensor file's header cannot be made");
    fr_file_writer writer;
    fr_status status = fr_file_writer_begin(&writer, path, error);
    if (status == FR_OK) {
        append_file(&writer, &file, header);
        status = fr_file_writer_commit(&writer, error);
    }
    free(header);
    return status;
}
