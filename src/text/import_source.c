/* import_source.c: one reading function over plain, gzip and zstd files.
 *
 * Both formats may hold several members or frames one after another; they read as one text. Data that
 * ends inside a member is a file cut short: everything before the cut is delivered and `truncated` is set.
 * Data that does not decode, or whose checksum is wrong, is an error: the text already delivered cannot be
 * trusted. Memory is bounded by the decoders' windows; a zstd frame that asks for more than 128 MiB is
 * refused. How much text may come out is the reader's business, not ours.
 */
#include "text/import_source.h"

#include <errno.h>
#include <string.h>
#include <zstd_errors.h>

enum { INPUT_BYTES = 1 << 18, GZIP_WINDOW = 15 + 16, ZSTD_WINDOW_LOG = 27 };
static const char damaged_hint[] = "get the file again, or leave it out";

static void *gzip_allocate(void *opaque, unsigned items, unsigned size)
{
    (void)opaque;
    return fr_allocate((size_t)items * size);
}

static void gzip_deallocate(void *opaque, void *memory)
{
    (void)opaque;
    fr_deallocate(memory);
}

static fr_status open_gzip(import_source *source, fr_error *error)
{
    source->gzip.zalloc = gzip_allocate;
    source->gzip.zfree = gzip_deallocate;
    if (inflateInit2(&source->gzip, GZIP_WINDOW) != Z_OK)
        return fr_error_memory(error, 1 << 16, "the gzip decoder");
    source->gzip_ready = true;
    return FR_OK;
}

static fr_status open_zstd(import_source *source, fr_error *error)
{
    source->zstd = ZSTD_createDCtx();
    if (!source->zstd)
        return fr_error_memory(error, 1 << 18, "the zstd decoder");
    ZSTD_DCtx_setParameter(source->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
    return FR_OK;
}

fr_status import_source_open(import_source *source, const char *path, import_compression compression, fr_error *error)
{
    memset(source, 0, sizeof *source);
    source->path = path;
    source->compression = compression;
    source->file = fopen(path, "rb");
    if (!source->file)
        return fr_error_set(error, errno == ENOENT ? FR_BAD_DATA : FR_BAD_ENVIRONMENT, path, "check the path and its permissions",
                            "cannot read: %s", strerror(errno));
    setvbuf(source->file, NULL, _IONBF, 0); /* we read large blocks ourselves */
    if (compression == IMPORT_PLAIN)
        return FR_OK;
    source->input = fr_allocate(INPUT_BYTES);
    if (!source->input)
        return fr_error_memory(error, INPUT_BYTES, "a read buffer");
    return compression == IMPORT_GZIP ? open_gzip(source, error) : open_zstd(source, error);
}

void import_source_close(import_source *source)
{
    if (source->file)
        fclose(source->file);
    if (source->gzip_ready)
        inflateEnd(&source->gzip);
    ZSTD_freeDCtx(source->zstd);
    fr_deallocate(source->input);
    memset(source, 0, sizeof *source);
}

static fr_status read_raw(import_source *source, void *out, size_t capacity, size_t *got, fr_error *error)
{
    *got = fread(out, 1, capacity, source->file);
    if (*got < capacity && ferror(source->file))
        return fr_error_set(error, FR_BAD_ENVIRONMENT, source->path, "check the disk", "cannot read: %s", strerror(errno));
    source->read_bytes += (int64_t)*got;
    source->input_ended = *got < capacity;
    return FR_OK;
}

static fr_status refill(import_source *source, fr_error *error)
{
    if (source->input_at < source->input_size || source->input_ended)
        return FR_OK;
    source->input_at = 0;
    return read_raw(source, source->input, INPUT_BYTES, &source->input_size, error);
}

/* Zero bytes after a member are padding, as tapes leave it; anything else must be another member. */
static void skip_padding(import_source *source)
{
    while (source->read_bytes > 0 && source->gzip.total_in > 0 && source->input_at < source->input_size &&
           source->input[source->input_at] == 0)
        source->input_at++;
}

static fr_status gzip_error(const import_source *source, int code, fr_error *error)
{
    if (code == Z_MEM_ERROR)
        return fr_error_memory(error, 1 << 16, "the gzip decoder");
    return fr_error_set(error, FR_BAD_DATA, source->path, damaged_hint, "damaged gzip data: %s",
                        source->gzip.msg ? source->gzip.msg : "unknown format");
}

static fr_status gzip_step(import_source *source, char *out, size_t capacity, size_t *used, fr_error *error)
{
    z_stream *stream = &source->gzip;
    if (!source->inside) {
        inflateReset(stream);
        source->inside = true;
    }
    stream->next_in = source->input + source->input_at;
    stream->avail_in = (unsigned)(source->input_size - source->input_at);
    stream->next_out = (unsigned char *)out;
    stream->avail_out = capacity > UINT32_MAX ? UINT32_MAX : (unsigned)capacity;
    unsigned room = stream->avail_out;
    int code = inflate(stream, Z_NO_FLUSH);
    source->input_at = source->input_size - stream->avail_in;
    *used = room - stream->avail_out;
    if (code == Z_STREAM_END)
        source->inside = false;
    else if (code != Z_OK && code != Z_BUF_ERROR)
        return gzip_error(source, code, error);
    return FR_OK;
}

static fr_status zstd_step(import_source *source, char *out, size_t capacity, size_t *used, fr_error *error)
{
    ZSTD_inBuffer input = {source->input, source->input_size, source->input_at};
    ZSTD_outBuffer output = {out, capacity, 0};
    size_t result = ZSTD_decompressStream(source->zstd, &output, &input);
    source->input_at = input.pos;
    *used = output.pos;
    if (!ZSTD_isError(result)) {
        source->inside = result != 0;
        return FR_OK;
    }
    ZSTD_ErrorCode code = ZSTD_getErrorCode(result);
    if (code == ZSTD_error_memory_allocation)
        return fr_error_memory(error, 1 << ZSTD_WINDOW_LOG, "the zstd decoder");
    if (code == ZSTD_error_frameParameter_windowTooLarge)
        return fr_error_set(error, FR_BAD_DATA, source->path, "compress it again without --long and --ultra",
                            "zstd data needs a window of more than %d MiB", 1 << (ZSTD_WINDOW_LOG - 20));
    return fr_error_set(error, FR_BAD_DATA, source->path, damaged_hint, "damaged zstd data: %s", ZSTD_getErrorName(result));
}

/* One decoder call may produce nothing (headers, buffered input); ask until it produces or cannot. */
static fr_status read_compressed(import_source *source, char *out, size_t capacity, size_t *got, fr_error *error)
{
    for (*got = 0; *got == 0;) {
        FR_TRY(refill(source, error));
        if (source->compression == IMPORT_GZIP && !source->inside)
            skip_padding(source);
        bool dry = source->input_at == source->input_size;
        if (dry && !source->input_ended)
            continue;
        if (dry && !source->inside)
            return FR_OK;
        FR_TRY(source->compression == IMPORT_GZIP ? gzip_step(source, out, capacity, got, error)
                                                  : zstd_step(source, out, capacity, got, error));
        if (dry && *got == 0 && source->inside) {
            source->truncated = true;
            return FR_OK;
        }
    }
    return FR_OK;
}

fr_status import_source_read(import_source *source, char *out, size_t capacity, size_t *got, fr_error *error)
{
    if (source->compression == IMPORT_PLAIN)
        return read_raw(source, out, capacity, got, error);
    return read_compressed(source, out, capacity, got, error);
}
