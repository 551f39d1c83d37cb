/* Split patterns of other people's tokenizers, through PCRE2 with its just-in-time compiler.
 *
 * Two translations make PCRE2 agree with the engines those tokenizers were made for (Rust's regex,
 * Oniguruma):
 *   - \s and \S are spelled out as White_Space, which PCRE2's own \s is not (it adds U+180E);
 *   - constructs that the engines read differently without an error, namely set operations inside brackets
 *     ([a&&[b]]), are refused.
 * Text that is not UTF-8 is matched in a copy in which U+FFFD stands for each malformed byte; a cursor
 * that walks both texts in step translates the offsets back. Well-formed text, the usual case, is matched
 * in place.
 *
 * A file's pattern is hostile input: its length, its match steps and its stack are limited, and \C, which
 * could cut a character in two, is off.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pretokenizer.h"
#include "text/pretokenizer_utf8.h"
#include <pcre2.h>
#include <string.h>

enum {
    PATTERN_LIMIT = 8192, /* bytes of a pattern we accept */
    JIT_STACK_START = 32 * 1024,
    JIT_STACK_LIMIT = 64 * 1024 * 1024,
};

#define SPACE_SET                                                                                            \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{" \
    "3000}"
#define NOT_SPACE_SET                                                                                        \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"          \
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"

struct fr_pcre2_pattern {
    pcre2_general_context *memory;
    pcre2_code *code;
};

struct fr_splitter_pcre2 {
    const fr_pcre2_pattern *pattern;
    pcre2_match_context *limits;
    pcre2_jit_stack *stack;
    pcre2_match_data *found;
    const uint8_t *text;    /* as given */
    const uint8_t *subject; /* what is matched: text, or the copy */
    uint8_t *copy;          /* NULL when text is well formed */
    size_t bytes, subject_bytes;
    size_t text_cursor, subject_cursor; /* the same place in both */
};

static void *take(PCRE2_SIZE bytes, void *context)
{
    (void)context;
    return fr_allocate(bytes);
}

static void give(void *memory, void *context)
{
    (void)context;
    fr_deallocate(memory);
}

/* ---- patterns ------------------------------------------------------------------------------------ */

/* Copies one escape, spelling out \s and \S; returns the bytes of the pattern it took. */
static size_t translate_escape(const char *at, bool in_set, fr_buffer *out)
{
    bool space = at[1] == 's', not_space = at[1] == 'S';
    if (space || not_space) {
        if (in_set)
            fr_buffer_printf(out, "%s", space ? SPACE_SET : NOT_SPACE_SET);
        else
            fr_buffer_printf(out, "[%s]", space ? SPACE_SET : NOT_SPACE_SET);
        return 2;
    }
    size_t take_bytes = at[1] ? 2 : 1;
    if (at[1] == 'Q') {
        const char *end = strstr(at, "\\E");
        take_bytes = end ? (size_t)(end - at) + 2 : strlen(at);
    }
    fr_buffer_append(out, at, take_bytes);
    return take_bytes;
}

/* Length of what opens a set at at[0] == '[', with the characters that are literal only there. */
static size_t set_opening(const char *at)
{
    size_t length = 1;
    if (at[length] == '^')
        length++;
    return at[length] == ']' ? length + 1 : length;
}

static fr_status translate(const char *text, fr_buffer *out, fr_error *error)
{
    bool in_set = false;
    for (const char *at = text; *at;) {
        size_t length = 1;
        if (*at == '\\') {
            at += translate_escape(at, in_set, out);
            continue;
        }
        const char *posix_end = in_set && at[0] == '[' && at[1] == ':' ? strstr(at, ":]") : NULL;
        if (posix_end) {
            length = (size_t)(posix_end - at) + 2;
        } else if (in_set && (*at == '[' || (at[0] == '&' && at[1] == '&'))) {
            return fr_error_set(error, FR_BAD_DATA, text,
                                "write the set without nesting, or escape the bracket",
                                "set operations inside brackets are not supported in split patterns");
        } else if (*at == '[') {
            length = set_opening(at);
            in_set = true;
        } else if (*at == ']') {
            in_set = false;
        }
        fr_buffer_append(out, at, length);
        at += length;
    }
    return out->failed ? fr_error_memory(error, PATTERN_LIMIT, "a split pattern") : FR_OK;
}

static fr_status compile(fr_pcre2_pattern *pattern, const char *text, const fr_buffer *translated,
                         fr_error *error)
{
    int code = 0;
    PCRE2_SIZE offset = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(pattern->memory);
    if (!context)
        return fr_error_memory(error, 0, "a split pattern");
    pattern->code = pcre2_compile((PCRE2_SPTR)translated->data, translated->length,
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &offset, context);
    pcre2_compile_context_free(context);
    if (!pattern->code) {
        char reason[200] = "";
        pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof reason);
        return fr_error_set(error, FR_BAD_DATA, text,
                            "split patterns are Perl-compatible regular expressions",
                            "split pattern does not compile: %s", reason);
    }
    /* Without a just-in-time compiler (or executable memory) PCRE2 interprets: the same matches, slower. */
    pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE);
    return FR_OK;
}

fr_status fr_pcre2_pattern_create(fr_pcre2_pattern **out, const char *text, fr_error *error)
{
    if (strlen(text) > PATTERN_LIMIT)
        return fr_error_set(error, FR_BAD_DATA, "split pattern", NULL, "longer than %d bytes", PATTERN_LIMIT);
    fr_pcre2_pattern *pattern = fr_allocate(sizeof *pattern);
    if (!pattern)
        return fr_error_memory(error, sizeof *pattern, "a split pattern");
    fr_buffer translated;
    fr_buffer_init(&translated, 0);
    fr_status status = translate(text, &translated, error);
    pattern->memory = pcre2_general_context_create(take, give, NULL);
    if (status == FR_OK && !pattern->memory)
        status = fr_error_memory(error, 0, "a split pattern");
    if (status == FR_OK)
        status = compile(pattern, text, &translated, error);
    fr_buffer_release(&translated);
    if (status != FR_OK)
        fr_pcre2_pattern_free(pattern);
    else
        *out = pattern;
    return status;
}

void fr_pcre2_pattern_free(fr_pcre2_pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_code_free(pattern->code);
    pcre2_general_context_free(pattern->memory);
    fr_deallocate(pattern);
}

/* ---- matching ------------------------------------------------------------------------------------ */

static size_t malformed_bytes(const uint8_t *text, size_t bytes)
{
    size_t malformed = 0;
    for (size_t at = 0; at < bytes;) {
        bool valid;
        size_t length = fr_utf8_step(text + at, bytes - at, &valid);
        malformed += valid ? 0 : length;
        at += length;
    }
    return malformed;
}

/* Makes the subject: the text itself, or a copy in which U+FFFD replaces each malformed byte. */
static bool make_subject(struct fr_splitter_pcre2 *engine)
{
    size_t malformed = malformed_bytes(engine->text, engine->bytes);
    engine->subject = engine->bytes ? engine->text : (const uint8_t *)"";
    engine->subject_bytes = engine->bytes + 2 * malformed;
    if (malformed == 0)
        return true;
    uint8_t *copy = engine->copy = fr_allocate(engine->subject_bytes);
    if (!copy)
        return false;
    for (size_t at = 0, to = 0; at < engine->bytes;) {
        bool valid;
        size_t length = fr_utf8_step(engine->text + at, engine->bytes - at, &valid);
        memcpy(copy + to, valid ? (const void *)(engine->text + at) : "\xEF\xBF\xBD", valid ? length : 3);
        to += valid ? length : 3;
        at += valid ? length : 1;
    }
    engine->subject = copy;
    return true;
}

struct fr_splitter_pcre2 *fr_splitter_pcre2_create(const fr_pcre2_pattern *pattern, const uint8_t *text,
                                                   size_t bytes)
{
    struct fr_splitter_pcre2 *engine = fr_allocate(sizeof *engine);
    if (!engine)
        return NULL;
    *engine = (struct fr_splitter_pcre2){.pattern = pattern, .text = text, .bytes = bytes};
    engine->limits = pcre2_match_context_create(pattern->memory);
    engine->found = pcre2_match_data_create(1, pattern->memory);
    if (engine->limits && engine->found && make_subject(engine))
        return engine;
    fr_splitter_pcre2_free(engine);
    return NULL;
}

void fr_splitter_pcre2_free(struct fr_splitter_pcre2 *engine)
{
    if (!engine)
        return;
    pcre2_match_data_free(engine->found);
    pcre2_jit_stack_free(engine->stack);
    pcre2_match_context_free(engine->limits);
    fr_deallocate(engine->copy);
    fr_deallocate(engine);
}

/* Moves the cursor pair until `limit` is reached in the text (or in the subject). */
static void walk(struct fr_splitter_pcre2 *engine, size_t limit, bool in_subject)
{
    if (!engine->copy) {
        engine->text_cursor = engine->subject_cursor = limit;
        return;
    }
    while ((in_subject ? engine->subject_cursor : engine->text_cursor) < limit) {
        bool valid;
        const uint8_t *at = engine->text + engine->text_cursor;
        size_t length = fr_utf8_step(at, engine->bytes - engine->text_cursor, &valid);
        engine->text_cursor += valid ? length : 1;
        engine->subject_cursor += valid ? length : 3;
    }
}

static size_t subject_offset(struct fr_splitter_pcre2 *engine, size_t text_offset)
{
    walk(engine, text_offset, false);
    return engine->subject_cursor;
}

static size_t text_offset(struct fr_splitter_pcre2 *engine, size_t subject_offset)
{
    walk(engine, subject_offset, true);
    return engine->text_cursor;
}

static int run(struct fr_splitter_pcre2 *engine, size_t from, uint32_t options)
{
    return pcre2_match(engine->pattern->code, engine->subject, engine->subject_bytes, from,
                       options | PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, engine->found, engine->limits);
}

/* Machine code first, on the small stack it brings; then with a large stack; then the interpreter, which
 * keeps its state on the heap. All three give the same match. */
static int match_at(struct fr_splitter_pcre2 *engine, size_t from)
{
    int result = run(engine, from, 0);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT && !engine->stack) {
        engine->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_LIMIT, engine->pattern->memory);
        if (!engine->stack)
            return PCRE2_ERROR_NOMEMORY;
        pcre2_jit_stack_assign(engine->limits, NULL, engine->stack);
        result = run(engine, from, 0);
    }
    return result == PCRE2_ERROR_JIT_STACKLIMIT ? run(engine, from, PCRE2_NO_JIT) : result;
}

fr_split_step fr_splitter_pcre2_match(struct fr_splitter_pcre2 *engine, size_t at, size_t *start, size_t *end)
{
    size_t from = subject_offset(engine, at);
    int result = match_at(engine, from);
    if (result == PCRE2_ERROR_NOMATCH)
        return FR_SPLIT_END;
    if (result < 0)
        return FR_SPLIT_FAILED;
    PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(engine->found);
    if (bounds[0] < from || bounds[1] <= bounds[0])
        return FR_SPLIT_FAILED; /* a pattern that moves the start of its match (\K) past its end */
    *start = text_offset(engine, bounds[0]);
    *end = text_offset(engine, bounds[1]);
    return FR_SPLIT_CHUNK;
}
