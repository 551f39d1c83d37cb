/* Fuzz target: bytes as a Hugging Face model: 4 bytes of length, config.json, model.safetensors. What is accepted must
 * be a whole model; what is refused must say why.
 */
#include "frontier/formats.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    fr_status status =
        fr_foreign_parse_hf(&model, (const char *)data, length, data + length, size - length, &error);
    if (status == FR_OK && fr_foreign_params(model) <= 0)
        abort();
    if (status != FR_OK && (status != FR_BAD_DATA || !error.what[0]))
        abort();
    fr_foreign_free(model);
    return 0;
}
