/* hash.c: two hashes for two purposes.
 *
 * fr_hash64 is XXH64, written from its published specification: fast, well mixed, the same on every machine,
 * with public test vectors; it splits corpora, finds duplicates and guards file headers against accidents.
 * It is no defence against a person. Receipts that name data or weights use SHA-256 from libsodium.
 */
#include "base/files.h"
#include "frontier/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

static const uint64_t PRIME1 = 0x9E3779B185EBCA87ull, PRIME2 = 0xC2B2AE3D27D4EB4Full,
                      PRIME3 = 0x165667B19E3779F9ull, PRIME4 = 0x85EBCA77C2B2AE63ull,
                      PRIME5 = 0x27D4EB2F165667C5ull;

static uint64_t read_le(const uint8_t *bytes, int count)
{
    uint64_t value = 0;
    memcpy(&value, bytes, (size_t)count);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static uint64_t mix_lane(uint64_t lane, uint64_t input)
{
    return rotate(lane + input * PRIME2, 31) * PRIME1;
}

static uint64_t merge_lane(uint64_t hash, uint64_t lane)
{
    return (hash ^ mix_lane(0, lane)) * PRIME1 + PRIME4;
}

/* Consumes whole 32-byte stripes; returns how many bytes that were. */
static size_t hash_stripes(const uint8_t *at, size_t count, uint64_t seed, uint64_t *hash)
{
    uint64_t lane[4] = {seed + PRIME1 + PRIME2, seed + PRIME2, seed, seed - PRIME1};
    size_t done = 0;
    for (; count - done >= 32; done += 32)
        for (int i = 0; i < 4; i++)
            lane[i] = mix_lane(lane[i], read_le(at + done + 8 * i, 8));
    *hash = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
    for (int i = 0; i < 4; i++)
        *hash = merge_lane(*hash, lane[i]);
    return done;
}

uint64_t fr_hash64(const void *bytes, size_t count, uint64_t seed)
{
    const uint8_t *at = bytes;
    uint64_t hash = seed + PRIME5;
    size_t left = count;
    if (left >= 32) {
        size_t done = hash_stripes(at, left, seed, &hash);
        at += done;
        left -= done;
    }
    hash += count;
    for (; left >= 8; at += 8, left -= 8)
        hash = rotate(hash ^ mix_lane(0, read_le(at, 8)), 27) * PRIME1 + PRIME4;
    if (left >= 4) {
        hash = rotate(hash ^ read_le(at, 4) * PRIME1, 23) * PRIME2 + PRIME3;
        at += 4;
        left -= 4;
    }
    for (; left > 0; at++, left--)
        hash = rotate(hash ^ *at * PRIME5, 11) * PRIME1;
    hash = (hash ^ hash >> 33) * PRIME2;
    hash = (hash ^ hash >> 29) * PRIME3;
    return hash ^ hash >> 32;
}

uint64_t fr_checksum64(const void *bytes, size_t count)
{
    return fr_hash64(bytes, count, 0);
}

void fr_sha256(const void *bytes, size_t count, char hex[65])
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(digest, bytes ? bytes : (const void *)"", count);
    sodium_bin2hex(hex, 65, digest, sizeof digest);
}

static fr_status hash_stream(int descriptor, const char *path, char hex[65], fr_error *error)
{
    unsigned char chunk[64 * 1024], digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    for (;;) {
        ssize_t got = read(descriptor, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fr_error_set(error, FR_BAD_ENVIRONMENT, path, NULL, "cannot read: %s", strerror(errno));
        if (got == 0)
            break;
        crypto_hash_sha256_update(&state, chunk, (unsigned long long)got);
    }
    crypto_hash_sha256_final(&state, digest);
    sodium_bin2hex(hex, 65, digest, sizeof digest);
    return FR_OK;
}

fr_status fr_sha256_file(const char *path, char hex[65], fr_error *error)
{
    int descriptor = -1;
    FR_TRY(fr_file_open_read(path, &descriptor, error));
    fr_status status = hash_stream(descriptor, path, hex, error);
    close(descriptor);
    return status;
}
