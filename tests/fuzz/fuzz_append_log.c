/* Fuzz target: bytes as an append-only log (core.log). Records are visited or the file is refused; the same bytes give the
 * same records.
 */
#include "frontier/base.h"

#include "scratch_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct seen {
    int64_t records, bytes;
} seen;

static fr_status visit(void *context, const void *bytes, size_t count, fr_error *error)
{
    seen *s = context;
    (void)error;
    s->records++;
    s->bytes += (int64_t)count;
    if (count && ((const uint8_t *)bytes)[count - 1] == 0 && ((const uint8_t *)bytes)[0] == 1)
        s->bytes++; /* both ends are readable */
    return FR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    seen first = {0}, second = {0};
    fr_error error = {0};
    const char *path = scratch_file(data, size);
    fr_status status = fr_log_read(path, visit, &first, &error);
    if (status != FR_OK && !error.what[0])
        abort();
    if (fr_log_read(path, visit, &second, NULL) != status || first.records != second.records ||
        first.bytes != second.bytes || first.bytes > (int64_t)size * 2)
        abort();
    return 0;
}
