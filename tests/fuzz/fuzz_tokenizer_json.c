/* libFuzzer entry for tokenizer.json: whatever parses must encode any text and give it back, and must
 * write a file that parses to the same tokenizer.
 *
 *     clang -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/fuzz_tokenizer_json.c LIBRARY LIBS
 *     ./a.out CORPUS_FOLDER tests/vectors
 */
#include "frontier/text.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void must(bool fine)
{
    if (!fine)
        abort();
}

static void check_round_trip(const fr_tokenizer *t, const char *text, size_t bytes)
{
    fr_error error = {0};
    fr_buffer out;
    int32_t *ids = fr_allocate((bytes + 1) * sizeof *ids);
    must(ids != NULL);
    fr_buffer_init(&out, 0);
    int64_t count = fr_tokenizer_encode(t, text, bytes, ids, (int64_t)bytes + 1);
    must(count <= (int64_t)bytes + fr_tokenizer_prefix(t));
    if (count >= 0) { /* otherwise the file's split pattern went beyond PCRE2's limits */
        must(fr_tokenizer_decode(t, ids, count, true, &out, &error) == FR_OK);
        must(out.length == bytes && memcmp(out.data, text, bytes) == 0);
    }
    fr_buffer_release(&out);
    fr_deallocate(ids);
}

static void check_copy(const fr_tokenizer *t)
{
    fr_error error = {0};
    fr_tokenizer *copy = NULL;
    fr_buffer out;
    char one[65], two[65];
    fr_buffer_init(&out, 0);
    must(fr_tokenizer_write(t, &out, &error) == FR_OK);
    must(fr_tokenizer_parse(&copy, out.data, out.length, "copy", &error) == FR_OK);
    fr_tokenizer_hash(t, one);
    fr_tokenizer_hash(copy, two);
    must(strcmp(one, two) == 0);
    fr_tokenizer_free(copy);
    fr_buffer_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char text[] = "It's 1234  bananas;\n\n caf\xC3\xA9 \xFF\xFE \xE4\xB8\xAD "
                               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    fr_error error = {0};
    fr_tokenizer *t = NULL;
    if (fr_tokenizer_parse(&t, (const char *)data, bytes, "fuzz", &error) != FR_OK) {
        must(t == NULL && error.what[0] != 0);
        return 0;
    }
    check_round_trip(t, text, sizeof text - 1);
    check_round_trip(t, (const char *)data, bytes < 512 ? bytes : 512);
    check_copy(t);
    fr_tokenizer_free(t);
    return 0;
}
