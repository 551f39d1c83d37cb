/* Bits per byte of a set of whole documents.
 *
 * The loader lays the set out as one stream, BOS before each document, cut into rows of T+1 ids with stride
 * T: every token of every document is a target exactly once, and a BOS never counts. Where the nats come from
 * is the caller's business (a scorer, a submission's program); what is done with them is only here: they are
 * added in double, document by document in order of targets, then over documents in order. A row's nats do
 * not depend on its batch, the sums do not depend on rows per forward or threads, so neither does a bit of
 * the result.
 */
#include "frontier/eval.h"

#include <math.h>
#include <string.h>
#include <time.h>

typedef struct document_sum {
    double nats;
    int64_t bytes, counted, tokens; /* raw bytes; bytes by the convention of the score */
} document_sum;

typedef struct evaluation {
    fr_nats_source source;
    void *context;
    const fr_corpus *corpus;
    const fr_bpb_options *options;
    fr_eval_set set;
    int64_t T, rows;
    int32_t vocab;
    int32_t bos, prefix;            /* bytes that a document's first token has and its text has not */
    int32_t *raw_lengths, *lengths; /* bytes of each token: true, and by the convention */
    int32_t *inputs, *targets, *documents;
    float *nats;
    document_sum *sums; /* one per document of the set */
    int64_t tokens;     /* targets seen so far, BOS not counted */
} evaluation;

/* ---- setting up ------------------------------------------------------------------------------------- */

static fr_status choose_shape(evaluation *e, const fr_recipe *recipe, fr_error *error)
{
    const fr_bpb_options *options = e->options;
    if (options->context < 0 || options->context > 1 << 20 || options->rows < 0 || options->rows > 1 << 20 ||
        options->max_tokens < 0)
        return fr_error_set(error, FR_BAD_USAGE, "evaluation", NULL,
                            "context %lld, rows %lld or tokens %lld cannot be", (long long)options->context,
                            (long long)options->rows, (long long)options->max_tokens);
    e->T = options->context ? options->context : recipe->model.context;
    e->rows = options->rows ? options->rows : e->T < 128 ? 2048 / e->T : 16; /* short rows go many to a run */
    return fr_corpus_eval_set(e->corpus, options->set, &e->set, error);
}

static fr_status allocate(evaluation *e, fr_error *error)
{
    e->vocab = fr_tokenizer_vocab(fr_corpus_tokenizer(e->corpus));
    e->bos = fr_tokenizer_bos(fr_corpus_tokenizer(e->corpus));
    e->prefix = fr_tokenizer_prefix(fr_corpus_tokenizer(e->corpus));
    size_t cells = (size_t)e->rows * (size_t)e->T, vocab = (size_t)e->vocab;
    e->raw_lengths = fr_allocate(vocab * sizeof(int32_t));
    e->lengths = fr_allocate(vocab * sizeof(int32_t));
    e->inputs = fr_allocate(cells * sizeof(int32_t));
    e->targets = fr_allocate(cells * sizeof(int32_t));
    e->documents = fr_allocate(cells * sizeof(int32_t));
    e->nats = fr_allocate(cells * sizeof(float));
    e->sums = fr_allocate(((size_t)e->set.documents + 1) * sizeof(document_sum));
    if (!e->raw_lengths || !e->lengths || !e->inputs || !e->targets || !e->documents || !e->nats || !e->sums)
        return fr_error_memory(
            error, cells * 16 + vocab * 8 + (size_t)e->set.documents * sizeof(document_sum), "evaluation");
    return FR_OK;
}

static void release(evaluation *e)
{
    fr_deallocate(e->raw_lengths);
    fr_deallocate(e->lengths);
    fr_deallocate(e->inputs);
    fr_deallocate(e->targets);
    fr_deallocate(e->documents);
    fr_deallocate(e->nats);
    fr_deallocate(e->sums);
}

static fr_status open_stream(const evaluation *e, fr_loader **loader, fr_error *error)
{
    fr_loader_options options = {.split = FR_VALID,
                                 .packing = FR_PACK_STREAM,
                                 .context = e->T,
                                 .once = true,
                                 .mask_bos_target = true,
                                 .documents = e->set.documents};
    return fr_loader_create(loader, e->corpus, &options, error);
}

/* ---- adding up -------------------------------------------------------------------------------------- */

static fr_status add_target(evaluation *e, int64_t cell, fr_error *error)
{
    int32_t target = e->targets[cell], document = e->documents[cell];
    if (target < 0)
        return FR_OK;
    if (target >= e->vocab || document < 0 || document >= e->set.documents)
        return fr_error_set(error, FR_BUG, "evaluation", NULL, "target %d of document %d is outside the set",
                            target, document);
    if (!isfinite(e->nats[cell]))
        return fr_error_set(error, FR_BAD_DATA, "evaluation",
                            "the model's weights are broken, or the run diverged",
                            "the loss of a token of document %d is %g", document, (double)e->nats[cell]);
    document_sum *sum = &e->sums[document];
    e->tokens++;
    if (e->lengths[target] == 0)
        return FR_OK;
    int32_t front = e->inputs[cell] == e->bos ? e->prefix : 0;
    sum->nats += (double)e->nats[cell];
    sum->bytes += e->raw_lengths[target] - front;
    sum->counted += e->lengths[target] - front;
    sum->tokens++;
    return FR_OK;
}

/* Targets of a row that count. */
static int64_t row_tokens(const evaluation *e, int64_t row)
{
    int64_t count = 0;
    for (int64_t t = 0; t < e->T; t++)
        count += e->targets[row * e->T + t] >= 0;
    return count;
}

/* Rows of this batch that are wanted: all, or up to the one that reaches max_tokens. */
static int64_t wanted_rows(const evaluation *e, int64_t got)
{
    int64_t tokens = e->tokens, row = 0;
    if (!e->options->max_tokens)
        return got;
    while (row < got && tokens < e->options->max_tokens)
        tokens += row_tokens(e, row++);
    return row;
}

/* False in *more when the set or the wanted part of it is done. */
static fr_status score_batch(evaluation *e, fr_loader *loader, bool *more, fr_error *error)
{
    int64_t got;
    FR_TRY(fr_loader_next_documents(loader, e->rows, e->inputs, e->targets, e->documents, &got, error));
    int64_t rows = wanted_rows(e, got);
    if (rows > 0)
        FR_TRY(e->source(e->context, rows, e->T, e->inputs, e->targets, e->nats, error));
    for (int64_t cell = 0; cell < rows * e->T; cell++)
        FR_TRY(add_target(e, cell, error));
    *more = got == e->rows && rows == got && (!e->options->max_tokens || e->tokens < e->options->max_tokens);
    return FR_OK;
}

static fr_status score_set(evaluation *e, fr_error *error)
{
    fr_loader *loader;
    FR_TRY(open_stream(e, &loader, error));
    double total =
        e->options->max_tokens ? (double)e->options->max_tokens : (double)(e->set.tokens - e->set.documents);
    fr_status status = FR_OK;
    for (bool more = true; more && status == FR_OK;) {
        status = score_batch(e, loader, &more, error);
        fr_progress_update(e->options->progress, "evaluate", (double)e->tokens, total, e->set.name);
        if (status == FR_OK && more && fr_progress_stop(e->options->progress))
            status = fr_error_set(error, FR_STOPPED, "evaluation", NULL, "stopped by request");
    }
    fr_loader_free(loader);
    return status;
}

/* Of a whole set every byte of every document must have been scored, once. */
static fr_status check_coverage(const evaluation *e, fr_error *error)
{
    for (int64_t i = 0; i < e->set.documents; i++) {
        int64_t bytes = fr_corpus_document_bytes(e->corpus, FR_VALID, i);
        if (e->sums[i].bytes != bytes)
            return fr_error_set(error, FR_BAD_DATA, fr_corpus_folder(e->corpus), "import the data again",
                                "document %lld has %lld bytes, its tokens have %lld", (long long)i,
                                (long long)bytes, (long long)e->sums[i].bytes);
    }
    return FR_OK;
}

/* ---- the result ------------------------------------------------------------------------------------- */

static fr_status fill_result(const evaluation *e, fr_bpb_result *result, fr_error *error)
{
    for (int64_t i = 0; i < e->set.documents; i++) {
        result->nats += e->sums[i].nats;
        result->bytes += e->sums[i].counted;
        result->tokens += e->sums[i].tokens;
        result->documents += e->sums[i].tokens > 0;
    }
    if (result->bytes == 0)
        return fr_error_set(error, FR_BAD_DATA, fr_corpus_folder(e->corpus),
                            "import data with validation documents",
                            "the evaluation set '%s' has no bytes to score", e->set.name);
    result->val_bpb = result->nats / (log(2.0) * (double)result->bytes);
    if (e->options->max_tokens) /* part of a set is another set */
        snprintf(result->eval_set, sizeof result->eval_set, "%s/first-%lld-tokens", e->set.name,
                 (long long)e->options->max_tokens);
    else
        snprintf(result->eval_set, sizeof result->eval_set, "%s", e->set.name);
    memcpy(result->text_sha256, e->set.text_sha256, sizeof result->text_sha256);
    fr_tokenizer_hash(fr_corpus_tokenizer(e->corpus), result->tokenizer_sha256);
    snprintf(result->layout, sizeof result->layout, "stream");
    result->context = e->T;
    return FR_OK;
}

static fr_status write_documents(const evaluation *e, const char *path, fr_error *error)
{
    fr_file_writer writer;
    FR_TRY(fr_file_writer_begin(&writer, path, error));
    for (int64_t i = 0; i < e->set.documents; i++) {
        const document_sum *sum = &e->sums[i];
        char line[192];
        int length =
            snprintf(line, sizeof line, "{\"document\":%lld,\"nats\":%.17g,\"bytes\":%lld,\"tokens\":%lld}\n",
                     (long long)i, sum->nats, (long long)sum->bytes, (long long)sum->tokens);
        if (sum->tokens > 0)
            fr_file_writer_append(&writer, line, (size_t)length);
    }
    return fr_file_writer_commit(&writer, error);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static fr_status evaluate(evaluation *e, const fr_recipe *recipe, fr_bpb_result *result, fr_error *error)
{
    bool decoded = strcmp(recipe->data.byte_lengths, "decoded") == 0;
    FR_TRY(choose_shape(e, recipe, error));
    FR_TRY(allocate(e, error));
    fr_tokenizer_byte_lengths(fr_corpus_tokenizer(e->corpus), FR_LENGTHS_RAW, e->raw_lengths);
    fr_tokenizer_byte_lengths(fr_corpus_tokenizer(e->corpus), decoded ? FR_LENGTHS_DECODED : FR_LENGTHS_RAW,
                              e->lengths);
    FR_TRY(score_set(e, error));
    if (!e->options->max_tokens)
        FR_TRY(check_coverage(e, error));
    FR_TRY(fill_result(e, result, error));
    snprintf(result->byte_lengths, sizeof result->byte_lengths, decoded ? "decoded" : "raw");
    return e->options->documents_path ? write_documents(e, e->options->documents_path, error) : FR_OK;
}

fr_status fr_eval_bpb_from(fr_nats_source source, void *context, const fr_recipe *recipe,
                           const fr_corpus *corpus, const fr_bpb_options *options, fr_bpb_result *result,
                           fr_error *error)
{
    evaluation e = {.source = source, .context = context, .corpus = corpus, .options = options};
    fr_bpb_result scored = {0};
    double start = now();
    fr_status status = evaluate(&e, recipe, &scored, error);
    release(&e);
    scored.seconds = now() - start;
    if (status == FR_OK)
        *result = scored;
    return status;
}

static fr_status scorer_source(void *context, int64_t rows, int64_t T, const int32_t *inputs,
                               const int32_t *targets, float *nats, fr_error *error)
{
    return fr_scorer_nats(context, rows, T, inputs, targets, nats, error);
}

/* Ids must mean to the model what they mean in the data. */
static fr_status check_tokenizer(const fr_scorer *scorer, const fr_corpus *corpus, fr_error *error)
{
    const char *hint = "score it on data imported with the run's tokenizer.json";
    int64_t vocab = fr_tokenizer_vocab(fr_corpus_tokenizer(corpus));
    if (fr_scorer_vocab(scorer) != vocab)
        return fr_error_set(error, FR_BAD_USAGE, fr_corpus_folder(corpus), hint,
                            "the model has %lld token ids, the data %lld", (long long)fr_scorer_vocab(scorer),
                            (long long)vocab);
    if (!fr_scorer_tokenizer(scorer))
        return FR_OK;
    char model[65], data[65];
    fr_tokenizer_hash(fr_scorer_tokenizer(scorer), model);
    fr_tokenizer_hash(fr_corpus_tokenizer(corpus), data);
    if (strcmp(model, data) != 0)
        return fr_error_set(error, FR_BAD_USAGE, fr_corpus_folder(corpus), hint,
                            "the run and the data have different tokenizers");
    return FR_OK;
}

fr_status fr_eval_bpb(fr_scorer *scorer, const fr_corpus *corpus, const fr_bpb_options *options,
                      fr_bpb_result *result, fr_error *error)
{
    FR_TRY(check_tokenizer(scorer, corpus, error));
    return fr_eval_bpb_from(scorer_source, scorer, fr_scorer_recipe(scorer), corpus, options, result, error);
}

/* ---- comparing -------------------------------------------------------------------------------------- */

static fr_status refuse(fr_error *error, const char *what, const char *a, const char *b, const char *hint)
{
    return fr_error_set(error, FR_BAD_USAGE, "comparison", hint,
                        "the scores differ in %s: '%.100s' and '%.100s'", what, a, b);
}

fr_status fr_bpb_comparable(const fr_bpb_result *a, const fr_bpb_result *b, bool told, char *note,
                            size_t note_size, fr_error *error)
{
    const char *same_set = "score both runs on the same evaluation set",
               *tell = "score both the same way, or say that it is meant: frontier compare --anyway";
    char one[32], other[32];
    if (note_size)
        note[0] = 0;
    if (strcmp(a->eval_set, b->eval_set) != 0)
        return refuse(error, "evaluation set", a->eval_set, b->eval_set, same_set);
    if (strcmp(a->text_sha256, b->text_sha256) != 0)
        return refuse(error, "the text of the evaluation set", a->text_sha256, b->text_sha256, same_set);
    if (strcmp(a->byte_lengths, b->byte_lengths) != 0)
        return refuse(error, "how token bytes are counted", a->byte_lengths, b->byte_lengths,
                      "score both with the same data.byte_lengths");
    snprintf(one, sizeof one, "%lld", (long long)a->context);
    snprintf(other, sizeof other, "%lld", (long long)b->context);
    if (a->context != b->context && !told)
        return refuse(error, "context", one, other, tell);
    if (strcmp(a->layout, b->layout) != 0 && !told)
        return refuse(error, "layout", a->layout, b->layout, tell);
    snprintf(note, note_size, "%s%s%s",
             strcmp(a->tokenizer_sha256, b->tokenizer_sha256) ? "different tokenizers; " : "",
             a->context != b->context ? "different contexts; " : "",
             strcmp(a->layout, b->layout) ? "different layouts; " : "");
    size_t length = note_size ? strlen(note) : 0;
    if (length >= 2 && note[length - 2] == ';')
        note[length - 2] = 0;
    return FR_OK;
}
