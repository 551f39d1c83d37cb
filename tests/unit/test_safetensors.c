/* Tensor files: what is written comes back, byte for byte the same each time, and no damage goes unnoticed.
 *
 * The strongest test walks every byte of a small file, changes it in several ways, and demands an error or
 * the very same tensors. Hand-made headers then try each trick a hostile file could play, one by one.
 */
#include "frontier/model.h"

#include "test.h"

#include <unistd.h>

static char folder[64];

static const char *scratch_path(const char *name)
{
    static char path[128];
    if (!folder[0]) {
        strcpy(folder, "/tmp/frontier-test-XXXXXX");
        if (!mkdtemp(folder))
            folder[0] = 0;
    }
    return fr_path_join(path, sizeof path, folder, name);
}

static const float values_a[6] = {1, -2, 3.5f, 0, 5, 6};
static const uint16_t values_b[4] = {0x3f80, 0x4000, 0x4040, 0x7fc0};
static const fr_tensor_entry sample[] = {
    {.name = "h.0.a", .dtype = FR_F32, .dims = 2, .shape = {2, 3}, .data = values_a},
    {.name = "zz empty", .dtype = FR_I32, .dims = 1, .shape = {0}, .data = NULL},
    {.name = "aa empty", .dtype = FR_F64, .dims = 2, .shape = {3, 0}, .data = NULL},
    {.name = "b", .dtype = FR_BF16, .dims = 1, .shape = {4}, .data = values_b},
    {.name = "scalar \"quoted\" \xc3\xa9", .dtype = FR_F32, .dims = 0, .data = values_a + 2},
};
static const char *const sample_metadata[] = {"role", "test", "note", "two words"};

static char *write_sample(const char *name, size_t *bytes)
{
    fr_error error = {0};
    static fr_arena arena;
    fr_arena_init(&arena, 1 << 16);
    char *text = NULL;
    CHECK_OK(fr_tensor_file_write(scratch_path(name), sample, 5, sample_metadata, 2, &error));
    CHECK_OK(fr_file_read(&arena, scratch_path(name), &text, bytes, &error));
    char *copy = malloc(*bytes);
    memcpy(copy, text, *bytes);
    fr_arena_release(&arena);
    return copy;
}

static bool same_tensors(const fr_tensor_file *file)
{
    if (fr_tensor_file_count(file) != 5)
        return false;
    for (int i = 0; i < 5; i++) {
        const fr_tensor_entry *got = fr_tensor_file_find(file, sample[i].name);
        if (!got || got->dtype != sample[i].dtype || got->dims != sample[i].dims)
            return false;
        size_t bytes = fr_dtype_bytes(got->dtype);
        for (int d = 0; d < got->dims; d++) {
            if (got->shape[d] != sample[i].shape[d])
                return false;
            bytes *= (size_t)got->shape[d];
        }
        if (bytes && memcmp(got->data, sample[i].data, bytes) != 0)
            return false;
    }
    return true;
}

TEST(what_is_written_comes_back)
{
    fr_error error = {0};
    size_t bytes;
    char *content = write_sample("round.safetensors", &bytes);
    fr_tensor_file *file = NULL;
    CHECK_OK(fr_tensor_file_open(&file, scratch_path("round.safetensors"), &error));
    if (file) {
        CHECK(same_tensors(file));
        CHECK_STR(fr_tensor_file_metadata(file, "role"), "test");
        CHECK_STR(fr_tensor_file_metadata(file, "note"), "two words");
        CHECK_STR(fr_tensor_file_metadata(file, "format_version"), "1");
        CHECK(fr_tensor_file_metadata(file, "nothing") == NULL);
        CHECK(fr_tensor_file_find(file, "nothing") == NULL);
        CHECK_STR(fr_tensor_file_entry(file, 0)->name, "h.0.a");
        CHECK_INT(((uintptr_t)fr_tensor_file_entry(file, 0)->data) % 8, 0);
    }
    fr_tensor_file_close(file);
    free(content);
}

TEST(same_content_same_bytes)
{
    size_t first_bytes, second_bytes;
    char *first = write_sample("one.safetensors", &first_bytes),
         *second = write_sample("two.safetensors", &second_bytes);
    CHECK_INT(first_bytes, second_bytes);
    CHECK(first_bytes == second_bytes && memcmp(first, second, first_bytes) == 0);
    free(first);
    free(second);
}

TEST(every_changed_byte_is_noticed)
{
    size_t bytes;
    char *content = write_sample("mutate.safetensors", &bytes);
    int accepted = 0;
    for (size_t i = 0; i < bytes; i++) {
        for (int change = 0; change < 10; change++) {
            char before = content[i];
            content[i] = change < 8 ? (char)(before ^ (1 << change)) : change == 8 ? ' ' : '0';
            fr_error error = {0};
            fr_tensor_file *file = NULL;
            fr_status status = fr_tensor_file_parse(&file, content, bytes, "mutated", &error);
            if (status == FR_OK) {
                accepted++;
                CHECK(same_tensors(file));
            } else {
                CHECK_INT(status, FR_BAD_DATA);
                CHECK(error.what[0] && strcmp(error.where, "mutated") == 0);
            }
            fr_tensor_file_close(file);
            content[i] = before;
        }
    }
    CHECK(accepted < 300); /* white space, unchanged bytes, and the key format_version */
    free(content);
}

TEST(every_truncation_and_extension_is_noticed)
{
    size_t bytes;
    char *content = write_sample("cut.safetensors", &bytes);
    content = realloc(content, bytes + 1);
    content[bytes] = 0;
    for (size_t length = 0; length <= bytes + 1; length++) {
        if (length == bytes)
            continue;
        char *exact = malloc(length + !length); /* so that a sanitizer sees any read behind the end */
        memcpy(exact, content, length);
        fr_error error = {0};
        fr_tensor_file *file = NULL;
        CHECK_INT(fr_tensor_file_parse(&file, exact, length, "cut", &error), FR_BAD_DATA);
        CHECK(file == NULL);
        free(exact);
    }
    free(content);
}

/* A file with this header and this much data (zeros). */
static fr_status parse_header(const char *header, size_t data, fr_error *error)
{
    size_t length = strlen(header);
    uint8_t *bytes = calloc(1, 8 + length + data);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)length >> (8 * i));
    memcpy(bytes + 8, header, length);
    fr_tensor_file *file = NULL;
    fr_status status = fr_tensor_file_parse(&file, bytes, 8 + length + data, "hostile", error);
    fr_tensor_file_close(file);
    free(bytes);
    return status;
}

TEST(foreign_files_are_read)
{
    fr_error error = {0};
    CHECK_OK(parse_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, &error));
    CHECK_OK(parse_header(
        "{\"__metadata__\":{\"format\":\"pt\"},\"b\":{\"shape\":[],\"data_offsets\":[4,8],\"dtype\":\"F32\"},"
        "\"a\":{\"dtype\":\"BF16\",\"shape\":[2,1],\"data_offsets\":[0,4]}}   ",
        8, &error));
    CHECK_OK(parse_header("{}", 0, &error));
}

TEST(hostile_headers_are_refused)
{
    static const struct {
        const char *header;
        size_t data;
        const char *what;
    } cases[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         "too large"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0,
         "too large"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4, "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "not as long"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[9223372036854775800,9223372036854775804]}"
         "}",
         4, "gap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "behind the end"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8, "bytes behind"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "gap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":"
         "[1],\"data_offsets\":[0,4]}}",
         4, "overlaps"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"F32\",\"shape\":"
         "[1],\"data_offsets\":[4,8]}}",
         8, "JSON"},
        {"{\"a\":{\"dtype\":\"U7\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "U7"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "description"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4, "description"},
        {"{\"a\":7}", 4, "description"},
        {"{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "name"},
        {"{\"__metadata__\":[]}", 0, "__metadata__"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "metadata"},
        {"{\"__metadata__\":{\"format_version\":\"2\"}}", 0, "version 2"},
        {"{\"__metadata__\":{\"format_version\":\"1\"}}", 0, "checksum"},
        {"{\"a\":{\"dtype\":\"F32\\u0000\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "JSON"},
        {"{\"a\":", 0, "JSON"},
        {"{} x", 0, "JSON"},
        {" {}", 0, "begin"},
        {"[]", 0, "begin"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fr_error error = {0};
        CHECK_INT(parse_header(cases[i].header, cases[i].data, &error), FR_BAD_DATA);
        if (!strstr(error.what, cases[i].what)) {
            printf("# %s -> %s\n", cases[i].header, error.what);
            CHECK(!"the message names the trick");
        }
    }
}

TEST(header_lengths_are_not_believed)
{
    uint8_t bytes[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'};
    fr_error error = {0};
    fr_tensor_file *file = NULL;
    CHECK_INT(fr_tensor_file_parse(&file, bytes, sizeof bytes, "hostile", &error), FR_BAD_DATA);
    size_t large = (17u << 20) + 8;
    uint8_t *many = calloc(1, large);
    memcpy(many, "\0\0\x10\x01\0\0\0\0{", 9); /* 17 MiB of header */
    CHECK_INT(fr_tensor_file_parse(&file, many, large, "hostile", &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "16 MiB") != NULL);
    free(many);
}

TEST(deep_nesting_is_refused)
{
    size_t depth = 100000;
    char *header = malloc(2 * depth + 8);
    memcpy(header, "{\"a\":", 5);
    memset(header + 5, '[', depth);
    memset(header + 5 + depth, ']', depth);
    memcpy(header + 5 + 2 * depth, "}", 2);
    fr_error error = {0};
    CHECK_INT(parse_header(header, 0, &error), FR_BAD_DATA);
    free(header);
}

TEST(unusable_input_to_the_writer_is_our_bug)
{
    fr_error error = {0};
    fr_tensor_entry twice[] = {sample[0], sample[0]};
    CHECK_INT(fr_tensor_file_write(scratch_path("x"), twice, 2, NULL, 0, &error), FR_BUG);
    fr_tensor_entry reserved = sample[0];
    reserved.name = "__metadata__";
    CHECK_INT(fr_tensor_file_write(scratch_path("x"), &reserved, 1, NULL, 0, &error), FR_BUG);
    static const char *const clash[] = {"checksum", "1"};
    CHECK_INT(fr_tensor_file_write(scratch_path("x"), sample, 1, clash, 1, &error), FR_BUG);
    fr_tensor_entry latin = sample[0];
    latin.name = "\xe9";
    CHECK_INT(fr_tensor_file_write(scratch_path("x"), &latin, 1, NULL, 0, &error), FR_BUG);
    CHECK(!fr_path_exists(scratch_path("x")));
}

TEST(a_full_disk_leaves_the_old_file)
{
    size_t bytes, after_bytes;
    char *before = write_sample("disk.safetensors", &bytes);
    for (int64_t room = 0; room < (int64_t)bytes; room += 7) {
        fr_error error = {0};
        fr_file_fail_after(room);
        fr_status status = fr_tensor_file_write(scratch_path("disk.safetensors"), sample, 2, NULL, 0, &error);
        fr_file_fail_after(-1);
        if (status == FR_OK)
            break;
        CHECK_INT(status, FR_BAD_ENVIRONMENT);
        fr_arena arena;
        fr_arena_init(&arena, 1 << 16);
        char *after = NULL;
        CHECK_OK(fr_file_read(&arena, scratch_path("disk.safetensors"), &after, &after_bytes, &error));
        CHECK(after && after_bytes == bytes && memcmp(before, after, bytes) == 0);
        fr_arena_release(&arena);
    }
    free(before);
}

TEST(memory_failures_are_reported)
{
    size_t bytes;
    char *content = write_sample("memory.safetensors", &bytes);
    for (int64_t n = 0; n < 10; n++) {
        fr_error error = {0};
        fr_tensor_file *file = NULL;
        fr_allocate_fail_after(n);
        fr_status status = fr_tensor_file_parse(&file, content, bytes, "memory", &error);
        fr_allocate_fail_after(-1);
        CHECK(status == FR_OK || status == FR_BAD_ENVIRONMENT);
        CHECK((status == FR_OK) == (file != NULL));
        fr_tensor_file_close(file);
    }
    free(content);
}

TEST(a_missing_file_is_named)
{
    fr_error error = {0};
    fr_tensor_file *file;
    CHECK(fr_tensor_file_open(&file, "/nonexistent/model.safetensors", &error) != FR_OK);
    CHECK(strstr(error.where, "model.safetensors") != NULL);
    CHECK(file == NULL);
}

TEST_MAIN(safetensors)
