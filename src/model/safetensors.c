/* The vocabulary of tensor files: type names, sizes that cannot overflow, and the checksum chain. */
#include "model/safetensors.h"

#include <string.h>

static const struct {
    const char *word;
    fr_dtype dtype;
} dtype_words[] = {{"F32", FR_F32}, {"BF16", FR_BF16}, {"F64", FR_F64}, {"I32", FR_I32}, {"F16", FR_F16}};

enum { DTYPES = sizeof dtype_words / sizeof dtype_words[0] };

const char *fr_tensor_dtype_word(fr_dtype dtype)
{
    for (int i = 0; i < DTYPES; i++)
        if (dtype_words[i].dtype == dtype)
            return dtype_words[i].word;
    return NULL;
}

bool fr_tensor_dtype_parse(const char *word, fr_dtype *dtype)
{
    for (int i = 0; i < DTYPES; i++)
        if (strcmp(dtype_words[i].word, word) == 0) {
            *dtype = dtype_words[i].dtype;
            return true;
        }
    return false;
}

bool fr_tensor_bytes(const fr_tensor_entry *entry, size_t *bytes)
{
    uint64_t total = fr_dtype_bytes(entry->dtype);
    for (int i = 0; i < entry->dims; i++) {
        if (entry->shape[i] < 0 || __builtin_mul_overflow(total, (uint64_t)entry->shape[i], &total) ||
            total > INT64_MAX)
            return false;
    }
    *bytes = (size_t)total;
    return true;
}

uint64_t fr_tensor_checksum_text(uint64_t sum, const char *text)
{
    return fr_hash64(text, strlen(text) + 1, sum);
}

uint64_t fr_tensor_checksum_entry(uint64_t sum, const fr_tensor_entry *entry, size_t bytes)
{
    sum = fr_tensor_checksum_text(sum, entry->name);
    sum = fr_tensor_checksum_text(sum, fr_tensor_dtype_word(entry->dtype));
    for (int i = 0; i < entry->dims; i++) {
        char digits[24];
        snprintf(digits, sizeof digits, "%lld", (long long)entry->shape[i]);
        sum = fr_tensor_checksum_text(sum, digits);
    }
    return fr_hash64(entry->data, bytes, sum);
}

void fr_tensor_checksum_format(uint64_t sum, char hex[17])
{
    snprintf(hex, 17, "%016llx", (unsigned long long)sum);
}
