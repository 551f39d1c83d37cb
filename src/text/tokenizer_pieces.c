/* Spelling SentencePiece's tokens: U+2581 for a space, <0x41> for a byte. */
#include "text/tokenizer_pieces.h"

#include <string.h>

static const char spelled_space[] = "\xE2\x96\x81";
enum { SPELLED = sizeof spelled_space - 1 };

#define SPACE_JSON "\xE2\x96\x81"
const char fr_pieces_normalizer_text[] =
    "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", \"prepend\": \"" SPACE_JSON "\"}, "
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"" SPACE_JSON "\"}]}";
const char fr_pieces_decoder_text[] =
    "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": \"" SPACE_JSON
    "\"}, \"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}, "
    "{\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}]}";

static bool has_text(const json_t *object, const char *key, const char *wanted)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && strcmp(text, wanted) == 0;
}

bool fr_pieces_normalizer(const json_t *normalizer)
{
    const json_t *steps = json_object_get(normalizer, "normalizers");
    const json_t *prepend = json_array_get(steps, 0), *replace = json_array_get(steps, 1);
    return has_text(normalizer, "type", "Sequence") && json_array_size(steps) == 2 &&
           has_text(prepend, "type", "Prepend") && has_text(prepend, "prepend", spelled_space) &&
           has_text(replace, "type", "Replace") && has_text(replace, "content", spelled_space) &&
           has_text(json_object_get(replace, "pattern"), "String", " ");
}

bool fr_pieces_write(fr_buffer *out, const uint8_t *bytes, size_t count)
{
    bool clean = true;
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == ' ')
            fr_buffer_append(out, spelled_space, SPELLED);
        else
            fr_buffer_append(out, &bytes[i], 1);
        clean = clean && !(count - i >= SPELLED && memcmp(bytes + i, spelled_space, SPELLED) == 0);
    }
    return clean;
}

void fr_pieces_read(fr_buffer *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        bool space = length - i >= SPELLED && memcmp(text + i, spelled_space, SPELLED) == 0;
        fr_buffer_append(out, space ? " " : text + i, 1);
        i += space ? SPELLED : 1;
    }
}

static int digit_value(char digit)
{
    const char *digits = "0123456789ABCDEF", *found = digit ? strchr(digits, digit) : NULL;
    return found ? (int)(found - digits) : -1;
}

int fr_pieces_byte(const char *text, size_t length)
{
    if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    int high = digit_value(text[3]), low = digit_value(text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}
