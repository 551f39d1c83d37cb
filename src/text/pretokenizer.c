/* Chooses the engine that cuts a text, and lays the chunks end to end.
 *
 * The built-in pattern is recognised by its text and goes to the scanner; everything else goes to PCRE2. A
 * pattern from a file may leave stretches uncovered; they become chunks here, so that no byte is ever lost.
 */
#include "text/pretokenizer.h"
#include "frontier/text.h"
#include <string.h>

const char fr_pattern_builtin[] = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,2}| "
                                  "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|"
                                  "\\s+(?!\\S)|\\s+";
const char fr_pattern_gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char fr_pattern_cl100k[] = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| "
                                 "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]+|"
                                 "\\s+(?!\\S)|\\s+";

struct fr_split_pattern {
    char *text;
    fr_pcre2_pattern *compiled; /* NULL: the scanner */
};

static fr_status create(fr_split_pattern **out, const char *text, bool scanner, fr_error *error)
{
    size_t bytes = strlen(text) + 1;
    fr_split_pattern *pattern = fr_allocate(sizeof *pattern);
    char *copy = fr_allocate(bytes);
    if (!pattern || !copy) {
        fr_deallocate(pattern);
        fr_deallocate(copy);
        return fr_error_memory(error, bytes, "a split pattern");
    }
    memcpy(copy, text, bytes);
    pattern->text = copy;
    fr_status status = scanner ? FR_OK : fr_pcre2_pattern_create(&pattern->compiled, text, error);
    if (status != FR_OK)
        fr_split_pattern_free(pattern);
    else
        *out = pattern;
    return status;
}

fr_status fr_split_pattern_create(fr_split_pattern **out, const char *text, fr_error *error)
{
    bool builtin = !text || strcmp(text, fr_pattern_builtin) == 0;
    return create(out, builtin ? fr_pattern_builtin : text, builtin, error);
}

fr_status fr_split_pattern_create_pcre2(fr_split_pattern **out, const char *text, fr_error *error)
{
    return create(out, text ? text : fr_pattern_builtin, false, error);
}

const char *fr_split_pattern_text(const fr_split_pattern *pattern)
{
    return pattern->text;
}

void fr_split_pattern_free(fr_split_pattern *pattern)
{
    if (!pattern)
        return;
    fr_pcre2_pattern_free(pattern->compiled);
    fr_deallocate(pattern->text);
    fr_deallocate(pattern);
}

bool fr_split_pattern_outside(const fr_split_pattern *pattern)
{
    return pattern && pattern->compiled;
}

bool fr_splitter_init(fr_splitter *splitter, const fr_split_pattern *pattern, const void *text, size_t bytes)
{
    *splitter = (fr_splitter){.pattern = pattern, .text = text, .bytes = bytes};
    if (pattern->compiled)
        splitter->engine = fr_splitter_pcre2_create(pattern->compiled, text, bytes);
    return !pattern->compiled || splitter->engine;
}

/* A chunk found by PCRE2: the gap before the next match first, then the match. */
static fr_split_step next_match(fr_splitter *splitter, size_t *start, size_t *end)
{
    if (splitter->until <= splitter->at) {
        fr_split_step step =
            fr_splitter_pcre2_match(splitter->engine, splitter->at, &splitter->match, &splitter->until);
        if (step == FR_SPLIT_FAILED)
            return step;
        if (step == FR_SPLIT_END)
            splitter->match = splitter->until = splitter->bytes;
    }
    *start = splitter->at;
    *end = splitter->at < splitter->match ? splitter->match : splitter->until;
    splitter->at = *end;
    return FR_SPLIT_CHUNK;
}

fr_split_step fr_splitter_next(fr_splitter *splitter, size_t *start, size_t *end)
{
    if (splitter->at >= splitter->bytes)
        return FR_SPLIT_END;
    if (splitter->engine)
        return next_match(splitter, start, end);
    *start = splitter->at;
    *end = splitter->at = fr_scan_chunk(splitter->text, splitter->bytes, splitter->at);
    return FR_SPLIT_CHUNK;
}

void fr_splitter_release(fr_splitter *splitter)
{
    fr_splitter_pcre2_free(splitter->engine);
    splitter->engine = NULL;
}
