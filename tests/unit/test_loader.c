/* The loader against a naive reading of its specification, and its promises: same rows whatever the batch size,
 * prefetch or interruption; every evaluation target exactly once. */
#include "test.h"
#include "text_fixture.h"

#include "text/corpus_writer.h"

typedef struct shape {
    int64_t documents, longest;
    uint64_t seed;
} shape;

static fr_corpus *make_corpus(const char *name, shape wanted)
{
    fr_error error = {0};
    fr_tokenizer *tokenizer = fixture_tokenizer(0);
    fr_corpus_writer *writer = NULL;
    fr_corpus *corpus = NULL;
    char text[4096];
    CHECK_OK(fr_corpus_writer_create(&writer, fixture_path(name), tokenizer, &error));
    corpus_writer_set_sizes(writer, 20000, 1 << 21);
    for (int64_t i = 0; i < wanted.documents; i++) {
        size_t length = 1 + (size_t)(fr_rng_at(wanted.seed, 1, (uint64_t)i) % (uint64_t)wanted.longest);
        for (size_t c = 0; c < length; c++)
            text[c] = (char)('a' + fr_rng_at(wanted.seed, 2, (uint64_t)i * 4096 + c) % 26);
        CHECK_OK(fr_corpus_writer_document(writer, FR_TRAIN, text, length, &error));
        if (i % 5 == 0)
            CHECK_OK(fr_corpus_writer_document(writer, FR_VALID, text, length, &error));
    }
    CHECK_OK(fr_corpus_writer_finish(writer, NULL, &error));
    fr_corpus_writer_free(writer);
    fr_tokenizer_free(tokenizer);
    CHECK_OK(fr_corpus_open(&corpus, fixture_path(name), true, &error));
    return corpus;
}

/* ---- the naive reference: lists of documents, linear searches, as in baseline.md 4.3 ---- */

typedef struct naive {
    const fr_corpus *corpus;
    int64_t context, least;
    int64_t buffer[2048], count, next;
    bool once;
} naive;

static int64_t naive_length(const naive *state, int64_t i)
{
    return fr_corpus_document_tokens(state->corpus, FR_TRAIN, state->buffer[i] % fr_corpus_documents(state->corpus, FR_TRAIN));
}

static void naive_refill(naive *state)
{
    int64_t documents = fr_corpus_documents(state->corpus, FR_TRAIN);
    while (state->count < state->least)
        for (int i = 0; i < 128; i++) {
            if (state->once && state->next == documents)
                return;
            state->buffer[state->count++] = state->next++;
        }
}

/* Index to place: longest that fits, else shortest; lowest index on ties. */
static int64_t naive_choose(const naive *state, int64_t room)
{
    int64_t best = -1, shortest = 0;
    for (int64_t i = 0; i < state->count; i++) {
        int64_t length = naive_length(state, i);
        if (length <= room && (best < 0 || length > naive_length(state, best)))
            best = i;
        if (length < naive_length(state, shortest))
            shortest = i;
    }
    return best >= 0 ? best : shortest;
}

/* Fills row[0..T]; returns the number of ids. */
static int64_t naive_row(naive *state, int32_t *row)
{
    int64_t pos = 0;
    static int32_t ids[4200];
    while (pos < state->context + 1) {
        naive_refill(state);
        if (state->count == 0)
            return pos;
        int64_t room = state->context + 1 - pos, j = naive_choose(state, room), length = naive_length(state, j);
        int64_t count = length < room ? length : room;
        fr_corpus_document(state->corpus, FR_TRAIN, state->buffer[j] % fr_corpus_documents(state->corpus, FR_TRAIN), ids, 4200);
        memcpy(row + pos, ids, (size_t)count * sizeof *ids);
        pos += count;
        state->count--;
        memmove(&state->buffer[j], &state->buffer[j + 1], (size_t)(state->count - j) * sizeof *state->buffer);
    }
    return pos;
}

static void compare_best_fit(const fr_corpus *corpus, int64_t context, int64_t buffer, bool once, int64_t rows)
{
    fr_error error = {0};
    fr_loader *loader = NULL;
    fr_loader_options options = {.split = FR_TRAIN, .packing = FR_PACK_BEST_FIT, .context = context, .buffer = buffer, .once = once};
    CHECK_OK(fr_loader_create(&loader, corpus, &options, &error));
    naive state = {.corpus = corpus, .context = context, .least = buffer ? buffer : 512, .once = once};
    int32_t *row = calloc((size_t)context + 1, sizeof *row), *inputs = calloc((size_t)context, sizeof *row), *targets = calloc((size_t)context, sizeof *row);
    int32_t bos = fr_tokenizer_bos(fr_corpus_tokenizer(corpus));
    for (int64_t r = 0; r < rows; r++) {
        int64_t got = -1, count = naive_row(&state, row);
        CHECK_INT(fr_loader_row(loader), r);
        CHECK_OK(fr_loader_next(loader, 1, inputs, targets, &got, &error));
        CHECK_INT(got, count > 0);
        for (int64_t i = 0; i < context; i++) {
            CHECK(inputs[i] == (i < count ? row[i] : bos));
            CHECK(targets[i] == (i + 1 < count ? row[i + 1] : -1));
        }
        if (count == 0)
            break;
        CHECK(inputs[0] == bos);
    }
    free(row);
    free(inputs);
    free(targets);
    fr_loader_free(loader);
}

TEST(best_fit_equals_the_naive_reference)
{
    static const shape shapes[] = {{700, 60, 1}, {40, 5, 2}, {900, 200, 3}, {5, 300, 4}, {600, 12, 5}};
    static const int64_t contexts[] = {1, 16, 64, 100}, buffers[] = {0, 1, 100, 1000};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        char name[32];
        snprintf(name, sizeof name, "naive-%zu", s);
        fr_corpus *corpus = make_corpus(name, shapes[s]);
        for (size_t i = 0; corpus && i < 4; i++)
            compare_best_fit(corpus, contexts[i], buffers[(i + s) % 4], false, 150);
        if (corpus)
            compare_best_fit(corpus, 64, 100, true, 5000); /* to the end */
        fr_corpus_free(corpus);
    }
}

/* ---- stream ---- */

TEST(stream_scores_every_id_once)
{
    fr_corpus *corpus = make_corpus("stream", (shape){300, 90, 6});
    fr_error error = {0};
    int64_t tokens = fr_corpus_tokens(corpus, FR_VALID);
    static const int64_t contexts[] = {1, 7, 64, 1000, 100000};
    for (size_t c = 0; c < 5; c++) {
        int64_t T = contexts[c], rows = (tokens - 1 + T - 1) / T, got = 0;
        fr_loader *loader = NULL;
        fr_loader_options options = {.split = FR_VALID, .packing = FR_PACK_STREAM, .context = T, .once = true, .prefetch = c % 2};
        CHECK_OK(fr_loader_create(&loader, corpus, &options, &error));
        CHECK_INT(fr_loader_once_rows(loader), rows);
        size_t size = (size_t)((rows + 2) * T) * sizeof(int32_t);
        int32_t *inputs = malloc(size), *targets = malloc(size), *documents = malloc(size), ids[4200];
        CHECK_OK(fr_loader_next_documents(loader, rows + 2, inputs, targets, documents, &got, &error));
        CHECK_INT(got, rows);
        int64_t at = 0;
        for (int64_t d = 0; d < fr_corpus_documents(corpus, FR_VALID); d++) {
            int64_t count = fr_corpus_document(corpus, FR_VALID, d, ids, 4200);
            for (int64_t i = 0; i < count; i++, at++) {
                CHECK(at == tokens - 1 || inputs[at] == ids[i]);
                CHECK(at == 0 || (targets[at - 1] == ids[i] && documents[at - 1] == d));
            }
        }
        for (int64_t i = tokens - 1; i < (rows + 2) * T; i++)
            CHECK(targets[i] == -1 && documents[i] == -1);
        CHECK_NEAR(fr_loader_epochs(loader), 1, 1.0 / (double)tokens, 0);
        free(inputs);
        free(targets);
        free(documents);
        fr_loader_free(loader);
    }
    fr_corpus_free(corpus);
}

TEST(stream_goes_round_and_masks_bos)
{
    fr_corpus *corpus = make_corpus("round", (shape){20, 30, 7});
    fr_error error = {0};
    enum { T = 16, ROWS = 200 };
    static int32_t inputs[T * ROWS], targets[T * ROWS], masked[T * ROWS], all[4096];
    int64_t tokens = fr_corpus_tokens(corpus, FR_TRAIN), at = 0, got = 0;
    for (int64_t d = 0; d < 20; d++)
        at += fr_corpus_document(corpus, FR_TRAIN, d, all + at, 4096 - at);
    CHECK_INT(at, tokens);
    fr_loader *plain = NULL, *bos = NULL;
    fr_loader_options options = {.split = FR_TRAIN, .packing = FR_PACK_STREAM, .context = T};
    CHECK_OK(fr_loader_create(&plain, corpus, &options, &error));
    options.mask_bos_target = true;
    CHECK_OK(fr_loader_create(&bos, corpus, &options, &error));
    CHECK_OK(fr_loader_next(plain, ROWS, inputs, targets, &got, &error));
    CHECK_OK(fr_loader_next(bos, ROWS, inputs, masked, &got, &error));
    for (int64_t i = 0; i < T * ROWS; i++) {
        CHECK(inputs[i] == all[i % tokens] && targets[i] == all[(i + 1) % tokens]);
        CHECK(masked[i] == (targets[i] == all[0] ? -1 : targets[i]));
    }
    CHECK_INT(fr_loader_epoch(plain), T * ROWS / tokens);
    CHECK_INT(fr_loader_epoch_tokens(plain), tokens);
    fr_loader_free(plain);
    fr_loader_free(bos);
    fr_corpus_free(corpus);
}

TEST(an_evaluation_prefix_ends_with_its_documents)
{
    fr_corpus *corpus = make_corpus("prefix", (shape){100, 30, 8});
    fr_error error = {0};
    int64_t tokens = 0, got = 0;
    for (int64_t d = 0; d < 4; d++)
        tokens += fr_corpus_document_tokens(corpus, FR_VALID, d);
    fr_loader *loader = NULL;
    fr_loader_options options = {.split = FR_VALID, .packing = FR_PACK_STREAM, .context = 1, .once = true, .documents = 4};
    CHECK_OK(fr_loader_create(&loader, corpus, &options, &error));
    int32_t input, target, document = 0, last = 0;
    int64_t rows = 0;
    for (;; rows++, last = document) {
        CHECK_OK(fr_loader_next_documents(loader, 1, &input, &target, &document, &got, &error));
        if (got == 0)
            break;
    }
    CHECK_INT(rows, tokens - 1);
    CHECK_INT(last, 3);
    fr_loader_free(loader);
    fr_corpus_free(corpus);
}

/* ---- the same rows whatever happens ---- */

enum { SAME_T = 32, SAME_ROWS = 300 };
typedef struct rows {
    int32_t inputs[SAME_T * SAME_ROWS], targets[SAME_T * SAME_ROWS];
} rows;

static int64_t deliver(fr_loader *loader, rows *out, int64_t first, int64_t count, int64_t batch)
{
    fr_error error = {0};
    int64_t total = 0;
    while (total < count) {
        int64_t want = count - total < batch ? count - total : batch, got = 0;
        int64_t at = (first + total) * SAME_T;
        CHECK_OK(fr_loader_next(loader, want, out->inputs + at, out->targets + at, &got, &error));
        total += got;
        if (got < want)
            break;
    }
    return total;
}

static const fr_loader_options variants[] = {
    {.split = FR_TRAIN, .packing = FR_PACK_BEST_FIT, .context = SAME_T},
    {.split = FR_TRAIN, .packing = FR_PACK_BEST_FIT, .context = SAME_T, .buffer = 40, .pool_rows = 17, .seed = 9},
    {.split = FR_TRAIN, .packing = FR_PACK_STREAM, .context = SAME_T, .pool_rows = 50, .seed = 10},
    {.split = FR_TRAIN, .packing = FR_PACK_STREAM, .context = SAME_T, .once = true},
    {.split = FR_TRAIN, .packing = FR_PACK_BEST_FIT, .context = SAME_T, .once = true, .pool_rows = 5, .mask_bos_target = true},
};

TEST(batch_size_prefetch_and_resume_change_nothing)
{
    fr_corpus *corpus = make_corpus("same", (shape){250, 40, 11});
    fr_error error = {0};
    static rows whole, parts;
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        fr_loader *loader = NULL;
        CHECK_OK(fr_loader_create(&loader, corpus, &variants[v], &error));
        int64_t count = deliver(loader, &whole, 0, SAME_ROWS, 8);
        fr_loader_free(loader);
        for (int64_t cut = 0; cut <= count; cut += 37) {
            fr_loader_options options = variants[v];
            options.prefetch = cut % 2 == 0;
            fr_arena arena;
            fr_arena_init(&arena, 1 << 12);
            char *state = NULL;
            memset(&parts, 0, sizeof parts);
            CHECK_OK(fr_loader_create(&loader, corpus, &options, &error));
            CHECK_INT(deliver(loader, &parts, 0, cut, 5), cut);
            CHECK_OK(fr_loader_save(loader, &arena, &state, &error));
            double epochs = fr_loader_epochs(loader);
            char *again = NULL;
            deliver(loader, &parts, 0, 3, 1); /* the state of an earlier row can still be had */
            CHECK_OK(fr_loader_save_row(loader, cut, &arena, &again, &error));
            CHECK_STR(again, state);
            fr_loader_free(loader);
            options.prefetch = cut % 3 == 0;
            CHECK_OK(fr_loader_create(&loader, corpus, &options, &error));
            deliver(loader, &parts, 0, 3, 1); /* a state replaces whatever was before */
            CHECK_OK(fr_loader_restore(loader, state, &error));
            CHECK_INT(fr_loader_row(loader), cut);
            CHECK_NEAR(fr_loader_epochs(loader), epochs, 0, 0);
            CHECK_INT(deliver(loader, &parts, cut, SAME_ROWS - cut, 11), count - cut);
            CHECK(memcmp(parts.inputs, whole.inputs, (size_t)(count * SAME_T) * sizeof(int32_t)) == 0);
            CHECK(memcmp(parts.targets, whole.targets, (size_t)(count * SAME_T) * sizeof(int32_t)) == 0);
            fr_loader_free(loader);
            fr_arena_release(&arena);
        }
    }
    fr_corpus_free(corpus);
}

static int compare_rows(const void *a, const void *b)
{
    return memcmp(a, b, SAME_T * sizeof(int32_t));
}

TEST(the_pool_reorders_rows_and_loses_none)
{
    fr_corpus *corpus = make_corpus("pool", (shape){150, 40, 12});
    fr_error error = {0};
    static rows plain, shuffled, other;
    int64_t counts[3];
    rows *all[3] = {&plain, &shuffled, &other};
    for (int i = 0; i < 3; i++) {
        fr_loader_options options = {.split = FR_TRAIN, .packing = FR_PACK_STREAM, .context = SAME_T, .once = true,
                                     .pool_rows = i ? 20 : 0, .seed = (uint64_t)i};
        fr_loader *loader = NULL;
        CHECK_OK(fr_loader_create(&loader, corpus, &options, &error));
        counts[i] = deliver(loader, all[i], 0, SAME_ROWS, 4);
        fr_loader_free(loader);
    }
    CHECK(counts[0] > 50 && counts[0] < SAME_ROWS && counts[1] == counts[0] && counts[2] == counts[0]);
    CHECK(memcmp(shuffled.inputs, plain.inputs, sizeof plain.inputs) != 0);
    CHECK(memcmp(shuffled.inputs, other.inputs, sizeof plain.inputs) != 0);
    for (int i = 0; i < 3; i++)
        qsort(all[i]->inputs, (size_t)counts[i], SAME_T * sizeof(int32_t), compare_rows);
    CHECK(memcmp(shuffled.inputs, plain.inputs, sizeof plain.inputs) == 0);
    CHECK(memcmp(shuffled.inputs, other.inputs, sizeof plain.inputs) == 0);
    fr_corpus_free(corpus);
}

/* ---- forecast ---- */

TEST(the_forecast_matches_an_epoch)
{
    fr_corpus *corpus = make_corpus("forecast", (shape){3000, 90, 13});
    fr_error error = {0};
    fr_loader *loader = NULL;
    fr_loader_options options = {.split = FR_TRAIN, .packing = FR_PACK_BEST_FIT, .context = SAME_T, .buffer = 100};
    CHECK_OK(fr_loader_create(&loader, corpus, &options, &error));
    int64_t forecast = fr_loader_epoch_tokens(loader), got = 0, count = 0;
    CHECK_INT(fr_loader_row(loader), 0); /* no side effect */
    static rows sink;
    while (fr_loader_epoch(loader) == 0) {
        CHECK_OK(fr_loader_next(loader, 1, sink.inputs, sink.targets, &got, &error));
        count++;
    }
    CHECK_NEAR(forecast, count * SAME_T, 0, 0.02);
    CHECK(forecast < fr_corpus_tokens(corpus, FR_TRAIN)); /* cropping loses some */
    fr_loader_free(loader);
    fr_corpus_free(corpus);
}

/* ---- bad input ---- */

TEST(bad_options_and_states_are_refused)
{
    fr_corpus *corpus = make_corpus("bad", (shape){60, 20, 14});
    fr_error error = {0};
    fr_loader *loader = NULL;
    static const fr_loader_options bad[] = {{.context = 0}, {.context = 8, .buffer = -1}, {.context = 8, .buffer = 1 << 20},
                                            {.context = 8, .pool_rows = -2}, {.context = 8, .documents = 61}, {.context = 1 << 23}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_INT(fr_loader_create(&loader, corpus, &bad[i], &error), FR_BAD_USAGE);
        CHECK(loader == NULL);
    }
    fr_loader_options options = {.split = FR_TRAIN, .packing = FR_PACK_BEST_FIT, .context = SAME_T, .buffer = 10, .pool_rows = 3};
    CHECK_OK(fr_loader_create(&loader, corpus, &options, &error));
    static rows before, after;
    deliver(loader, &before, 0, 4, 4);
    fr_arena arena;
    fr_arena_init(&arena, 1 << 12);
    char *state = NULL;
    CHECK_OK(fr_loader_save(loader, &arena, &state, &error));
    static const struct {
        const char *from, *to;
        fr_status status;
    } edits[] = {
        {"{", "", FR_BAD_DATA},
        {"\"schema\":1", "\"schema\":2", FR_BAD_DATA},
        {"\"context\":32", "\"context\":33", FR_BAD_USAGE},
        {"\"corpus\":\"", "\"corpus\":\"0", FR_BAD_USAGE},
        {"\"row\":4", "\"row\":-4", FR_BAD_DATA},
        {"\"consumed\":", "\"consumed\":9.5,\"x\":", FR_BAD_DATA},
        {"\"buffer\":[", "\"buffer\":[999999999,", FR_BAD_DATA},
        {"\"buffer\":[", "\"buffer\":[-1,", FR_BAD_DATA},
        {"\"pool\":[[", "\"pool\":[[5,0,0,900],[", FR_BAD_DATA},
        {"\"pool\":[[", "\"pool\":[[5,-1,0,1],[", FR_BAD_DATA},
        {"\"pool\":[[", "\"pool\":[7,[", FR_BAD_DATA},
        {"\"pool\":[[", "\"pool\":[[1,0,0],[", FR_BAD_DATA},
        {"\"pool\":", "\"pool\":3,\"x\":", FR_BAD_DATA},
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        char *found = strstr(state, edits[i].from), edited[8192];
        CHECK(found != NULL);
        if (found)
            snprintf(edited, sizeof edited, "%.*s%s%s", (int)(found - state), state, edits[i].to, found + strlen(edits[i].from));
        CHECK_INT(fr_loader_restore(loader, edited, &error), edits[i].status);
    }
    CHECK_INT(fr_loader_row(loader), 4); /* a refused state changes nothing */
    deliver(loader, &before, 4, 10, 2);
    CHECK_OK(fr_loader_restore(loader, state, &error));
    deliver(loader, &after, 4, 10, 10);
    CHECK(memcmp(before.inputs + 4 * SAME_T, after.inputs + 4 * SAME_T, 10 * SAME_T * sizeof(int32_t)) == 0);
    fr_arena_release(&arena);
    fr_loader_free(loader);
    fr_corpus_free(corpus);
}

static fr_status whole_life(const fr_corpus *corpus, const fr_loader_options *options, const char *state, fr_error *error)
{
    fr_loader *loader = NULL;
    static rows sink;
    int64_t got;
    FR_TRY(fr_loader_create(&loader, corpus, options, error));
    fr_status status = fr_loader_next(loader, 20, sink.inputs, sink.targets, &got, error);
    fr_arena arena;
    fr_arena_init(&arena, 1 << 12);
    char *json;
    if (status == FR_OK)
        status = fr_loader_save(loader, &arena, &json, error);
    if (status == FR_OK && state)
        status = fr_loader_restore(loader, state, error);
    if (status == FR_OK)
        status = fr_loader_next(loader, 5, sink.inputs, sink.targets, &got, error);
    fr_arena_release(&arena);
    fr_loader_free(loader);
    return status;
}

TEST(failed_allocations_are_reported)
{
    fr_corpus *corpus = make_corpus("memory", (shape){60, 20, 15});
    fr_error error = {0};
    for (int v = 0; v < 4; v++) {
        fr_loader_options options = {.split = FR_TRAIN, .packing = v & 1 ? FR_PACK_STREAM : FR_PACK_BEST_FIT, .context = SAME_T,
                                     .buffer = 20, .pool_rows = 4, .prefetch = v >= 2};
        fr_loader *loader = NULL;
        fr_arena arena;
        char *state = NULL;
        fr_arena_init(&arena, 1 << 12);
        CHECK_OK(fr_loader_create(&loader, corpus, &options, &error));
        CHECK_OK(fr_loader_save(loader, &arena, &state, &error));
        fr_loader_free(loader);
        bool done = false;
        for (int64_t n = 0; !done && n < 3000; n++) {
            fr_allocate_fail_after(n);
            fr_status status = whole_life(corpus, &options, state, &error);
            fr_allocate_fail_after(-1);
            done = status == FR_OK;
            CHECK(done || status == FR_BAD_ENVIRONMENT);
        }
        CHECK(done);
        fr_arena_release(&arena);
    }
    fr_corpus_free(corpus);
}

/* A bit flipped in the third shard: rows before it come, then an error that names the shard; never a row made of it. */
TEST(a_damaged_shard_is_found_before_it_is_used)
{
    fr_error error = {0};
    fr_corpus *corpus = make_corpus("flipped", (shape){60, 2000, 5});
    char path[700];
    snprintf(path, sizeof path, "%s", fixture_path("flipped/train-00002.tok"));
    CHECK(access(path, F_OK) == 0);
    FILE *file = fopen(path, "r+b");
    fseek(file, 1001, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, 1001, SEEK_SET);
    fputc(byte ^ 1, file); /* still an id of the vocabulary */
    fclose(file);
    fr_corpus_free(corpus);
    for (int prefetch = 0; prefetch < 2; prefetch++) {
        int32_t inputs[64], targets[64];
        int64_t got, came = 0;
        fr_loader *loader = NULL;
        fr_loader_options options = {.split = FR_TRAIN, .packing = FR_PACK_STREAM, .context = 64, .prefetch = prefetch == 1};
        CHECK_OK(fr_corpus_open(&corpus, fixture_path("flipped"), false, &error));
        CHECK_OK(fr_loader_create(&loader, corpus, &options, &error));
        while (came < 10000 && fr_loader_next(loader, 1, inputs, targets, &got, &error) == FR_OK)
            came++;
        CHECK(came > 300 && came < 700); /* two shards of about 20,000 ids */
        CHECK_STR(error.what, "content checksum does not match");
        CHECK(strstr(error.where, "train-00002.tok") != NULL);
        fr_loader_free(loader);
        fr_corpus_free(corpus);
    }
}

TEST_MAIN(loader)
