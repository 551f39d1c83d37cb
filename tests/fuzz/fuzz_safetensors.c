/* Fuzz target: bytes as a tensor file. What is accepted must be readable to its last byte and findable by
 * name.
 *
 *     clang -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/fuzz_safetensors.c
 * build/asan/libfrontier.a ...
 */
#include "frontier/model.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink; /* keeps the reads */

static void touch(const fr_tensor_entry *entry)
{
    size_t bytes = fr_dtype_bytes(entry->dtype);
    for (int i = 0; i < entry->dims; i++)
        bytes *= (size_t)entry->shape[i];
    if (bytes)
        sink += fr_hash64(entry->data, bytes, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fr_tensor_file *file;
    fr_error error = {0};
    if (fr_tensor_file_parse(&file, data, size, "fuzz", &error) != FR_OK) {
        if (error.status != FR_BAD_DATA || !error.what[0])
            abort();
        return 0;
    }
    for (int i = 0; i < fr_tensor_file_count(file); i++) {
        const fr_tensor_entry *entry = fr_tensor_file_entry(file, i);
        touch(entry);
        if (fr_tensor_file_find(file, entry->name) != entry)
            abort();
    }
    fr_tensor_file_close(file);
    return 0;
}
