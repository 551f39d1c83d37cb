/* Fuzz target: bytes as a llama2.c model: 4 bytes of length, the weights, the tokenizer. What is accepted must be a
 * whole model whose tokenizer gives back any text.
 */
#include "frontier/formats.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void round_trip(const fr_tokenizer *t, const char *text, size_t bytes)
{
    int32_t ids[65];
    fr_error error = {0};
    fr_buffer out;
    bytes = bytes < 64 ? bytes : 64;
    int64_t count = fr_tokenizer_encode(t, text, bytes, ids, 65);
    must(count >= 0 && count <= (int64_t)bytes + 1);
    fr_buffer_init(&out, 0);
    must(fr_tokenizer_decode(t, ids, count, true, &out, &error) == FR_OK);
    must(out.length == bytes && (bytes == 0 || memcmp(out.data, text, bytes) == 0));
    fr_buffer_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t length;
    fr_foreign *model;
    fr_error error = {0};
    if (size < sizeof length)
        return 0;
    memcpy(&length, data, sizeof length);
    data += sizeof length;
    size -= sizeof length;
    length = length < size ? length : (uint32_t)size;
    if (fr_foreign_parse_llama2c(&model, data, length, data + length, size - length, &error) != FR_OK) {
        must(error.status == FR_BAD_DATA && error.what[0]);
        return 0;
    }
    must(fr_foreign_params(model) > 0);
    round_trip(fr_foreign_tokenizer(model), (const char *)data, size);
    fr_foreign_free(model);
    return 0;
}
