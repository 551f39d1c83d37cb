/* Reading a tensor file that may have been written by anyone, including someone who means harm.
 *
 * Nothing in the header is believed before it is checked: its length against the file and a limit, its JSON
 * for duplicate keys, every tensor's type, shape and product of dimensions for overflow, its byte range
 * against its shape; and all ranges together must tile the data exactly, so nothing overlaps, nothing hides
 * between tensors and nothing trails behind them. Then the checksum, if the file has one of ours. Tensors are
 * not copied: an entry points into the mapping. Data of foreign files may be unaligned, so readers copy it
 * with memcpy.
 */
#include "model/safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_LIMIT = 16 << 20, NAME_LIMIT = 512 };

typedef struct range {
    fr_tensor_entry entry;
    uint64_t start, end;
    int number; /* in header order */
} range;

struct fr_tensor_file {
    fr_mapping mapping; /* empty when the bytes are the caller's */
    json_t *header;     /* owns names and metadata */
    json_t *metadata;   /* NULL: none */
    range *ranges;      /* in data order */
    int count;
    const char *origin;
};

static fr_status bad(const fr_tensor_file *file, fr_error *error, const char *what, const char *tensor)
{
    const char *hint = "the file is truncated, damaged, or no safetensors file; use an earlier checkpoint";
    if (tensor)
        return fr_error_set(error, FR_BAD_DATA, file->origin, hint, "tensor '%.100s': %s", tensor, what);
    return fr_error_set(error, FR_BAD_DATA, file->origin, hint, "%s", what);
}

/* ---- one tensor ------------------------------------------------------------------------------------ */

static bool read_shape(const json_t *shape, fr_tensor_entry *entry)
{
    if (!json_is_array(shape) || json_array_size(shape) > 4)
        return false;
    entry->dims = (int)json_array_size(shape);
    for (int i = 0; i < entry->dims; i++) {
        const json_t *dimension = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dimension) || json_integer_value(dimension) < 0)
            return false;
        entry->shape[i] = json_integer_value(dimension);
    }
    return true;
}

static bool read_offsets(const json_t *offsets, range *r)
{
    if (!json_is_array(offsets) || json_array_size(offsets) != 2)
        return false;
    const json_t *start = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (!json_is_integer(start) || !json_is_integer(end) || json_integer_value(start) < 0 ||
        json_integer_value(end) < json_integer_value(start))
        return false;
    r->start = (uint64_t)json_integer_value(start);
    r->end = (uint64_t)json_integer_value(end);
    return true;
}

static fr_status read_tensor(const fr_tensor_file *file, const char *name, const json_t *value, range *r,
                             fr_error *error)
{
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    size_t bytes;
    r->entry.name = name;
    if (!*name || strlen(name) > NAME_LIMIT)
        return bad(file, error, "a tensor's name is empty or too long", NULL);
    if (!json_is_object(value) || json_object_size(value) != 3)
        return bad(file, error, "its description is not dtype, shape and data_offsets", name);
    if (!dtype || !fr_tensor_dtype_parse(dtype, &r->entry.dtype))
        return fr_error_set(error, FR_BAD_DATA, file->origin, "F32, BF16, F16, F64 and I32 are read",
                            "tensor '%.100s' has the type %.20s", name, dtype ? dtype : "(none)");
    if (!read_shape(json_object_get(value, "shape"), &r->entry))
        return bad(file, error, "its shape is not up to four whole numbers", name);
    if (!fr_tensor_bytes(&r->entry, &bytes))
        return bad(file, error, "its shape is too large", name);
    if (!read_offsets(json_object_get(value, "data_offsets"), r))
        return bad(file, error, "its data_offsets are not two rising numbers", name);
    if (r->end - r->start != bytes)
        return bad(file, error, "its data is not as long as its shape says", name);
    return FR_OK;
}

/* ---- all tensors ------------------------------------------------------------------------------------ */

/* Data order; empty tensors stand before the one that starts with them, in header order. */
static int compare_ranges(const void *left, const void *right)
{
    const range *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static fr_status check_tiling(fr_tensor_file *file, const uint8_t *data, uint64_t size, fr_error *error)
{
    uint64_t at = 0;
    for (int i = 0; i < file->count; i++) {
        range *r = &file->ranges[i];
        if (r->start < at)
            return bad(file, error, "its data overlaps another tensor's", r->entry.name);
        if (r->start > at)
            return bad(file, error, "there is a gap in the data before it", r->entry.name);
        if (r->end > size)
            return bad(file, error, "its data lies behind the end of the file", r->entry.name);
        r->entry.data = data + r->start;
        at = r->end;
    }
    return at == size ? FR_OK : bad(file, error, "there are bytes behind the last tensor", NULL);
}

static fr_status read_metadata(fr_tensor_file *file, json_t *metadata, fr_error *error)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return bad(file, error, "__metadata__ is not an object", NULL);
    json_object_foreach(metadata, key, value)
        if (!json_is_string(value))
            return bad(file, error, "a metadata value is not a string", NULL);
    file->metadata = metadata;
    return FR_OK;
}

static fr_status read_header(fr_tensor_file *file, fr_error *error)
{
    size_t most = json_object_size(file->header);
    file->ranges = fr_allocate((most + 1) * sizeof *file->ranges);
    if (!file->ranges)
        return fr_error_memory(error, (most + 1) * sizeof *file->ranges, "a tensor file's header");
    const char *name;
    json_t *value;
    json_object_foreach(file->header, name, value) {
        if (strcmp(name, "__metadata__") == 0) {
            FR_TRY(read_metadata(file, value, error));
            continue;
        }
        range *r = &file->ranges[file->count];
        r->number = file->count++;
        FR_TRY(read_tensor(file, name, value, r, error));
    }
    qsort(file->ranges, (size_t)file->count, sizeof *file->ranges, compare_ranges);
    return FR_OK;
}

/* The chain the writer computed, in file order; metadata order is the header's. */
static fr_status verify(const fr_tensor_file *file, fr_error *error)
{
    const char *version = fr_tensor_file_metadata(file, "format_version"),
               *stored = fr_tensor_file_metadata(file, "checksum");
    if (!version)
        return FR_OK;
    if (strcmp(version, FR_TENSOR_FORMAT) != 0)
        return fr_error_set(error, FR_BAD_DATA, file->origin,
                            "it was written by another version of frontier; use that one",
                            "format version %.20s is not known here", version);
    uint64_t sum = 0;
    const char *key;
    json_t *value;
    json_object_foreach(file->metadata, key, value)
        if (strcmp(key, "checksum") != 0)
            sum = fr_tensor_checksum_text(fr_tensor_checksum_text(sum, key), json_string_value(value));
    for (int i = 0; i < file->count; i++)
        sum = fr_tensor_checksum_entry(sum, &file->ranges[i].entry,
                                       (size_t)(file->ranges[i].end - file->ranges[i].start));
    char hex[17];
    fr_tensor_checksum_format(sum, hex);
    if (!stored || strcmp(stored, hex) != 0)
        return fr_error_set(error, FR_BAD_DATA, file->origin,
                            "the file was altered or damaged after it was written; use an earlier checkpoint",
                            "the checksum does not match: file %.20s, content %s", stored ? stored : "(none)",
                            hex);
    return FR_OK;
}

static fr_status parse(fr_tensor_file *file, const uint8_t *bytes, size_t count, fr_error *error)
{
    uint64_t length = 0;
    if (count < 8)
        return bad(file, error, "shorter than the 8 bytes every tensor file begins with", NULL);
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)bytes[i] << (8 * i);
    if (length > count - 8)
        return bad(file, error, "the header is longer than the file", NULL);
    if (length > HEADER_LIMIT)
        return bad(file, error, "the header is larger than 16 MiB", NULL);
    if (length < 2 || bytes[8] != '{')
        return bad(file, error, "the header does not begin with {", NULL);
    json_error_t reason;
    file->header = json_loadb((const char *)bytes + 8, (size_t)length, JSON_REJECT_DUPLICATES, &reason);
    if (!file->header)
        return fr_error_set(error, FR_BAD_DATA, file->origin, "the file is damaged or no safetensors file",
                            "the header is no valid JSON: %.150s", reason.text);
    FR_TRY(read_header(file, error));
    FR_TRY(check_tiling(file, bytes + 8 + length, count - 8 - length, error));
    return verify(file, error);
}

static fr_status create(fr_tensor_file **out, const fr_mapping *mapping, const uint8_t *bytes, size_t count,
                        const char *origin, fr_error *error)
{
    fr_tensor_file *file = fr_allocate(sizeof *file);
    *out = NULL;
    if (!file)
        return fr_error_memory(error, sizeof *file, "a tensor file");
    if (mapping)
        file->mapping = *mapping;
    file->origin = origin;
    fr_status status = parse(file, bytes, count, error);
    file->origin = NULL; /* the caller's text; only errors while parsing need it */
    if (status == FR_OK) {
        *out = file;
        return FR_OK;
    }
    file->mapping = (fr_mapping){0};
    fr_tensor_file_close(file);
    return status;
}

fr_status fr_tensor_file_parse(fr_tensor_file **out, const void *bytes, size_t count, const char *origin,
                               fr_error *error)
{
    return create(out, NULL, bytes, count, origin, error);
}

fr_status fr_tensor_file_open(fr_tensor_file **out, const char *path, fr_error *error)
{
    fr_mapping mapping;
    *out = NULL;
    FR_TRY(fr_mapping_init(&mapping, path, error));
    fr_status status = create(out, &mapping, mapping.data, mapping.bytes, path, error);
    if (status != FR_OK)
        fr_mapping_release(&mapping);
    return status;
}

/* ---- access ----------------------------------------------------------------------------------------- */

int fr_tensor_file_count(const fr_tensor_file *file)
{
    return file->count;
}

const fr_tensor_entry *fr_tensor_file_entry(const fr_tensor_file *file, int index)
{
    return &file->ranges[index].entry;
}

const fr_tensor_entry *fr_tensor_file_find(const fr_tensor_file *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->ranges[i].entry.name, name) == 0)
            return &file->ranges[i].entry;
    return NULL;
}

const char *fr_tensor_file_metadata(const fr_tensor_file *file, const char *key)
{
    return file->metadata ? json_string_value(json_object_get(file->metadata, key)) : NULL;
}

void fr_tensor_file_close(fr_tensor_file *file)
{
    if (!file)
        return;
    if (file->mapping.data)
        fr_mapping_release(&file->mapping);
    json_decref(file->header);
    fr_deallocate(file->ranges);
    fr_deallocate(file);
}
