/* Reading the weights of llama2.c: seven numbers, then fp32 arrays in a fixed order.
 *
 *     int32 width, hidden, layers, heads, kv heads, vocabulary (negative: a head of its own), positions
 *     embedding; then for all layers in turn each of: attention norm, wq, wk, wv, wo, mlp norm, w1, w2, w3;
 *     last norm; two tables of positions * head width / 2 that nothing reads; the head, if it is its own
 *
 * The file says nothing about itself, so its size is the only check there is: it must be exactly what the seven
 * numbers ask for. Norms have eps 1e-5, pairs of adjacent channels are rotated with base 10000.
 */
#include "model/formats/foreign.h"
#include "model/formats/readers.h"

#include <string.h>

enum { HEADER_BYTES = 28, MAGIC_AK42 = 0x616b3432, MOST_PARTS = 16 };

typedef struct header {
    int64_t width, hidden, layers, heads, kv_heads, vocab, positions;
    bool tied;
} header;

/* A stretch of the file: `layers` matrices of rows x columns, one after another. */
typedef struct part {
    const char *name; /* of the parameter; # is the layer; NULL: nothing reads it */
    int64_t layers, rows, columns;
    size_t offset; /* in floats, from the header's end */
} part;

typedef struct weights {
    const uint8_t *data;
    header h;
    part parts[MOST_PARTS];
    int count;
    size_t floats;
} weights;

static fr_status read_header(header *h, const uint8_t *data, size_t bytes, const char *origin, fr_error *error)
{
    int32_t numbers[7];
    const char *hint = "expected the .bin file that llama2.c's run reads (its first format, without a magic number)";
    if (bytes < HEADER_BYTES)
        return fr_error_set(error, FR_BAD_DATA, origin, hint, "the file is shorter than its 28 bytes of header");
    memcpy(numbers, data, sizeof numbers);
    if (numbers[0] == MAGIC_AK42)
        return fr_error_set(error, FR_BAD_DATA, origin, hint, "it is a later format of llama2.c");
    *h = (header){numbers[0], numbers[1], numbers[2],       numbers[3],
                  numbers[4], numbers[5], numbers[6], .tied = numbers[5] > 0};
    h->vocab = h->tied ? h->vocab : -h->vocab;
    if (h->width < 1 || h->hidden < 1 || h->layers < 1 || h->heads < 1 || h->kv_heads < 1 || h->vocab < 1 ||
        h->positions < 1 || h->width % h->heads || h->heads % h->kv_heads)
        return fr_error_set(error, FR_BAD_DATA, origin, hint,
                            "the header makes no model: width %lld, hidden %lld, layers %lld, heads %lld of %lld, "
                            "vocabulary %lld, positions %lld",
                            (long long)h->width, (long long)h->hidden, (long long)h->layers, (long long)h->heads,
                            (long long)h->kv_heads, (long long)h->vocab, (long long)h->positions);
    return FR_OK;
}

/* Appends a part; false when the file would be larger than a size can be. */
static bool add_part(weights *w, const char *name, int64_t layers, int64_t rows, int64_t columns)
{
    size_t floats;
    if (__builtin_mul_overflow((size_t)rows, (size_t)columns, &floats) ||
        __builtin_mul_overflow(floats, (size_t)layers, &floats) || floats > SIZE_MAX / 8 - w->floats)
        return false;
    w->parts[w->count++] = (part){name, layers, rows, columns, w->floats};
    w->floats += floats;
    return true;
}

static bool add_parts(weights *w)
{
    const header *h = &w->h;
    int64_t head = h->width / h->heads, kv = head * h->kv_heads, L = h->layers;
    return add_part(w, "transformer.wte.weight", 1, h->vocab, h->width) &&
           add_part(w, "transformer.h.#.ln_1.weight", L, 1, h->width) &&
           add_part(w, "transformer.h.#.attn.c_q.weight", L, h->width, h->width) &&
           add_part(w, "transformer.h.#.attn.c_k.weight", L, kv, h->width) &&
           add_part(w, "transformer.h.#.attn.c_v.weight", L, kv, h->width) &&
           add_part(w, "transformer.h.#.attn.c_proj.weight", L, h->width, h->width) &&
           add_part(w, "transformer.h.#.ln_2.weight", L, 1, h->width) &&
           add_part(w, "transformer.h.#.mlp.c_gate.weight", L, h->hidden, h->width) &&
           add_part(w, "transformer.h.#.mlp.c_proj.weight", L, h->width, h->hidden) &&
           add_part(w, "transformer.h.#.mlp.c_fc.weight", L, h->hidden, h->width) &&
           add_part(w, "transformer.ln_f.weight", 1, 1, h->width) &&
           add_part(w, NULL, 2, h->positions, head / 2) &&
           (h->tied || add_part(w, "lm_head.weight", 1, h->vocab, h->width));
}

/* Does `name` fit a part's name? Its number goes to *layer. */
static bool matches(const char *pattern, const char *name, int64_t *layer)
{
    const char *number = strchr(pattern, '#');
    *layer = 0;
    if (!number)
        return strcmp(pattern, name) == 0;
    if (strncmp(pattern, name, (size_t)(number - pattern)) != 0)
        return false;
    for (name += number - pattern; *name >= '0' && *name <= '9'; name++)
        *layer = *layer * 10 + (*name - '0');
    return strcmp(number + 1, name) == 0;
}

static fr_status find(void *context, const char *name, foreign_view *view, fr_error *error)
{
    const weights *w = context;
    int64_t layer;
    for (int i = 0; i < w->count; i++) {
        const part *p = &w->parts[i];
        if (!p->name || !matches(p->name, name, &layer))
            continue;
        size_t at = p->offset + (size_t)(layer * p->rows * p->columns);
        *view = (foreign_view){p->name,  w->data + HEADER_BYTES + 4 * at, FR_F32, p->rows, p->columns, p->columns,
                               1, 0};
        return FR_OK;
    }
    return fr_error_set(error, FR_BUG, name, NULL, "llama2.c's files have no such part");
}

static fr_status fill_recipe(fr_foreign *model, const header *h, int64_t context, fr_error *error)
{
    static const char *const constants[] = {"windows=\"L\"",
                                            "activation=\"swiglu\"",
                                            "norm=\"rms_gain\"",
                                            "norm_eps=1e-5",
                                            "embedding_norm=false",
                                            "position=\"rotary\"",
                                            "rotary_pairs=\"interleaved\"",
                                            "rope_base=10000.0",
                                            "qk_norm=false",
                                            "softcap=0.0",
                                            "resid_scalars=false",
                                            "x0_scalars=false",
                                            "numerics=\"fp32\"",
                                            NULL};
    FR_TRY(foreign_set_all(model, constants, error));
    FR_TRY(foreign_set(model, error, "depth=%lld", (long long)h->layers));
    FR_TRY(foreign_set(model, error, "width=%lld", (long long)h->width));
    FR_TRY(foreign_set(model, error, "head_dim=%lld", (long long)(h->width / h->heads)));
    FR_TRY(foreign_set(model, error, "kv_heads=%lld", (long long)h->kv_heads));
    FR_TRY(foreign_set(model, error, "hidden=%lld", (long long)h->hidden));
    FR_TRY(foreign_set(model, error, "tied=%s", h->tied ? "true" : "false"));
    return foreign_set_context(model, context && context < h->positions ? context : h->positions, error);
}

static fr_status read_weights(fr_foreign *model, weights *w, size_t bytes, int64_t context, fr_error *error)
{
    FR_TRY(read_header(&w->h, w->data, bytes, model->path, error));
    FR_TRY(fill_recipe(model, &w->h, context, error));
    model->vocab = w->h.vocab;
    if (!add_parts(w) || w->floats > (SIZE_MAX - HEADER_BYTES) / 4 || bytes != HEADER_BYTES + 4 * w->floats)
        return fr_error_set(error, FR_BAD_DATA, model->path, "the file is truncated, damaged or of another format",
                            "it has %zu bytes, its header asks for %zu", bytes, HEADER_BYTES + 4 * w->floats);
    return foreign_fill(model, find, w, error);
}

fr_status fr_foreign_parse_llama2c(fr_foreign **out, const void *data, size_t weight_bytes,
                                   const void *tokenizer, size_t tokenizer_bytes, fr_error *error)
{
    fr_foreign *model = NULL;
    weights w = {.data = data};
    *out = NULL;
    fr_status status = foreign_create(&model, "llama2c", "memory", error);
    if (status == FR_OK)
        status = read_weights(model, &w, weight_bytes, 0, error);
    if (status == FR_OK)
        status = fr_tokenizer_parse_llama2c(&model->tokenizer, tokenizer, tokenizer_bytes, (int32_t)model->vocab,
                                            "tokenizer", error);
    if (status == FR_OK)
        *out = model;
    else
        fr_foreign_free(model);
    return status;
}

fr_status foreign_open_llama2c(fr_foreign **out, const char *path, const fr_foreign_options *options,
                               fr_error *error)
{
    fr_mapping mapping;
    if (!options->tokenizer_path)
        return fr_error_set(error, FR_BAD_USAGE, path, "give it with --tokenizer, for example tok512.bin",
                            "the tokenizer of a llama2.c model is a file of its own");
    FR_TRY(foreign_create(out, "llama2c", path, error));
    FR_TRY(fr_mapping_init(&mapping, path, error));
    weights w = {.data = mapping.data};
    fr_status status = read_weights(*out, &w, mapping.bytes, options->context, error);
    fr_mapping_release(&mapping);
    FR_TRY(status);
    FR_TRY(fr_tokenizer_load_llama2c(&(*out)->tokenizer, options->tokenizer_path, (int32_t)(*out)->vocab, error));
    FR_TRY(foreign_record(*out, "weights", path, error));
    return foreign_record(*out, "tokenizer", options->tokenizer_path, error);
}
