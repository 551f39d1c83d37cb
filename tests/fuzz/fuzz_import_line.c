/* Fuzz target: bytes as a JSON line of an import, against the JSON library. Where the library accepts the line with a text,
 * so must we, with the same bytes; what we accept and it refuses may only be text beyond its limits (invalid UTF-8,
 * NULs, lone surrogates, numbers out of range, nesting).
 */
#include "text/import_json.h"
#include "text/import_text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Enough brackets to reach our nesting limit, which is lower than the library's? */
static bool may_be_deep(const uint8_t *data, size_t size)
{
    size_t brackets = 0;
    for (size_t i = 0; i < size; i++)
        brackets += data[i] == '[' || data[i] == '{';
    return brackets > 250;
}

static void compare(const json_t *root, const import_json *out)
{
    const json_t *text = json_object_get(root, "text");
    if (!json_is_string(text)) {
        if (out->problem == FR_IMPORT_KINDS || out->problem == FR_IMPORT_BAD_JSON)
            abort();
        return;
    }
    if (out->problem != FR_IMPORT_KINDS || out->lone_surrogate || out->bytes != json_string_length(text) ||
        memcmp(out->text, json_string_value(text), out->bytes) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = malloc(size ? size : 1);
    if (!line)
        return 0;
    memcpy(line, data, size);
    import_json out;
    import_json_line(line, size, "text", &out);
    size_t folded;
    if (out.problem == FR_IMPORT_KINDS) {
        if (out.bytes > size || out.text < line || out.text + out.bytes > line + size)
            abort();
        import_fold_hash(out.text, out.bytes, &folded);
        import_is_utf8(out.text, out.bytes);
    }
    json_error_t problem;
    json_t *root = json_loadb((const char *)data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &problem);
    if (root && !may_be_deep(data, size) && !memchr(data, 0, size)) /* the library takes a NUL for the end */
        compare(root, &out);
    json_decref(root);
    free(line);
    return 0;
}
