/* unzip.c: taking one file out of a zip archive.
 *
 * DuckDB publishes its library as a zip. One member of one archive does not justify a dependency: the directory at the
 * archive's end says where the member lies, zlib, which we have, inflates it, and its CRC-32 says whether it is whole. The
 * archive is hostile: every offset and length is checked against the file before it is used, and what comes out may be
 * no longer than the directory says and the caller allows. Encrypted, split and 64-bit archives are refused.
 */
#include "text/unzip.h"

#include <string.h>
#include <zlib.h>

enum { END_SIZE = 22, ENTRY_SIZE = 46, LOCAL_SIZE = 30, MOST_COMMENT = 65535, CHUNK = 1 << 18 };
enum { STORED = 0, DEFLATED = 8, ENCRYPTED = 1 };

typedef struct zip_member {
    const uint8_t *data; /* in the mapping */
    size_t packed, bytes;
    uint32_t crc;
    int method;
} zip_member;

static uint32_t get16(const uint8_t *at)
{
    return (uint32_t)(at[0] | at[1] << 8);
}

static uint32_t get32(const uint8_t *at)
{
    return get16(at) | get16(at + 2) << 16;
}

static fr_status damaged(const char *archive, const char *what, fr_error *error)
{
    return fr_error_set(error, FR_BAD_DATA, archive, "get the archive again", "zip archive: %s", what);
}

/* The directory's end record lies before a comment of unknown length: the last place where one fits. */
static const uint8_t *find_end(const fr_mapping *map)
{
    size_t most = map->bytes < END_SIZE + MOST_COMMENT ? map->bytes : END_SIZE + MOST_COMMENT;
    for (size_t back = END_SIZE; back <= most; back++) {
        const uint8_t *at = map->data + map->bytes - back;
        if (get32(at) == 0x06054B50 && get16(at + 20) == back - END_SIZE)
            return at;
    }
    return NULL;
}

static fr_status read_entry(const fr_mapping *map, const uint8_t *entry, const char *archive, zip_member *member, fr_error *error)
{
    size_t offset = get32(entry + 42);
    member->method = (int)get16(entry + 10);
    member->crc = get32(entry + 16);
    member->packed = get32(entry + 20);
    member->bytes = get32(entry + 24);
    if ((get16(entry + 8) & ENCRYPTED) || (member->method != STORED && member->method != DEFLATED))
        return damaged(archive, "encrypted, or compressed in a way we do not read", error);
    if (offset > map->bytes || map->bytes - offset < LOCAL_SIZE || get32(map->data + offset) != 0x04034B50)
        return damaged(archive, "its directory points to no member", error);
    size_t start = offset + LOCAL_SIZE + get16(map->data + offset + 26) + get16(map->data + offset + 28);
    if (start > map->bytes || map->bytes - start < member->packed)
        return damaged(archive, "cut short", error);
    member->data = map->data + start;
    return FR_OK;
}

static fr_status find_member(const fr_mapping *map, const char *archive, const char *name, zip_member *member, fr_error *error)
{
    const uint8_t *end = find_end(map);
    if (!end)
        return damaged(archive, "it has no directory: cut short, or not a zip archive", error);
    size_t count = get16(end + 10), at = get32(end + 16), limit = (size_t)(end - map->data);
    for (size_t i = 0; i < count; i++) {
        if (at > limit || limit - at < ENTRY_SIZE || get32(map->data + at) != 0x02014B50)
            return damaged(archive, "its directory is damaged", error);
        const uint8_t *entry = map->data + at;
        size_t length = get16(entry + 28), next = ENTRY_SIZE + length + get16(entry + 30) + get16(entry + 32);
        if (limit - at < next)
            return damaged(archive, "its directory is damaged", error);
        if (length == strlen(name) && memcmp(entry + ENTRY_SIZE, name, length) == 0)
            return read_entry(map, entry, archive, member, error);
        at += next;
    }
    return fr_error_set(error, FR_BAD_DATA, archive, "check which archive this is", "it has no %s", name);
}

/* Inflates into the writer; false: the data is damaged or longer than it should be. */
static bool inflate_member(z_stream *stream, const zip_member *member, uint8_t *chunk, fr_file_writer *out)
{
    uint32_t crc = 0;
    size_t done = 0;
    int code = Z_OK;
    stream->next_in = (uint8_t *)(uintptr_t)member->data;
    stream->avail_in = (unsigned)member->packed;
    while (code == Z_OK) {
        stream->next_out = chunk;
        stream->avail_out = CHUNK;
        code = inflate(stream, Z_NO_FLUSH);
        size_t got = CHUNK - stream->avail_out;
        done += got;
        if ((code != Z_OK && code != Z_STREAM_END) || done > member->bytes || (code == Z_OK && got == 0))
            return false;
        crc = (uint32_t)crc32(crc, chunk, (unsigned)got);
        fr_file_writer_append(out, chunk, got);
    }
    return done == member->bytes && crc == member->crc;
}

static bool copy_member(const zip_member *member, fr_file_writer *out)
{
    fr_file_writer_append(out, member->data, member->packed);
    return member->packed == member->bytes && (uint32_t)crc32(0, member->data, (unsigned)member->packed) == member->crc;
}

static fr_status unpack(const zip_member *member, const char *archive, fr_file_writer *out, fr_error *error)
{
    if (member->method == STORED)
        return copy_member(member, out) ? FR_OK : damaged(archive, "a member's checksum does not match", error);
    z_stream stream = {0};
    uint8_t *chunk = fr_allocate(CHUNK);
    fr_status status = FR_OK;
    if (!chunk || inflateInit2(&stream, -15) != Z_OK) {
        status = fr_error_memory(error, CHUNK, "the zip decoder");
    } else {
        if (!inflate_member(&stream, member, chunk, out))
            status = damaged(archive, "a member is damaged", error);
        inflateEnd(&stream);
    }
    fr_deallocate(chunk);
    return status;
}

fr_status unzip_member(const char *archive, const char *member, const char *target, int64_t most_bytes, fr_error *error)
{
    fr_mapping map;
    fr_file_writer out;
    zip_member found = {0};
    FR_TRY(fr_mapping_init(&map, archive, error));
    fr_status status = find_member(&map, archive, member, &found, error);
    if (status == FR_OK && (int64_t)found.bytes > most_bytes)
        status = damaged(archive, "a member is too large", error);
    if (status == FR_OK)
        status = fr_file_writer_begin(&out, target, error);
    if (status == FR_OK) {
        status = unpack(&found, archive, &out, error);
        if (status == FR_OK)
            status = fr_file_writer_commit(&out, error);
        else
            fr_file_writer_abort(&out);
    }
    fr_mapping_release(&map);
    return status;
}
