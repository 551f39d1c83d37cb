/* tests/unit/session_fixture.h: a corpus of a few words, a tiny recipe, and runs of it. */
#ifndef TEST_SESSION_FIXTURE_H
#define TEST_SESSION_FIXTURE_H
#include "frontier/train.h"
#include "base/json.h"
#include "test.h"
#include "text_fixture.h"

/* Documents of words that follow each other predictably, so that a tiny model learns something in ten steps. */
static inline const char *session_corpus(void)
{
    static const char *const words[] = {"the ", "cat ", "sat ", "on ",  "mat ",
                                        "and ", "rat ", "ran ", "far ", "away. "};
    const char *folder = fixture_path("corpus");
    if (fixture_exists(folder, "corpus.json"))
        return folder;
    fr_tokenizer *tokenizer = fixture_tokenizer(11);
    fr_corpus_writer *writer = NULL;
    fr_error error = {0};
    CHECK_OK(fr_corpus_writer_create(&writer, folder, tokenizer, &error));
    for (int d = 0; d < 150; d++) {
        char text[4000] = "";
        int count = 20 + (int)(fr_rng_at(4, (uint64_t)d, 0) % 80), word = d % 10;
        for (int w = 0; w < count; w++) {
            strcat(text, words[word]);
            word = fr_rng_at(4, (uint64_t)d, (uint64_t)w + 1) % 8 ? (word + 1) % 10 : d % 10;
        }
        CHECK_OK(fr_corpus_writer_document(writer, d % 15 ? FR_TRAIN : FR_VALID, text, strlen(text), &error));
    }
    CHECK_OK(fr_corpus_writer_finish(writer, NULL, &error));
    fr_corpus_writer_free(writer);
    fr_tokenizer_free(tokenizer);
    return folder;
}

/* 4 shards of 4 rows of 16 ids in micro-batches of 2 rows; `more` are further assignments, NULL-terminated. */
static inline fr_recipe session_recipe(const char *const *more)
{
    static const char *const base[] = {"model.depth=2",    "model.width=32",      "model.head_dim=16",
                                       "model.context=16", "model.numerics=fp32", "optim.batch_tokens=256",
                                       "optim.shards=4",   "optim.micro_rows=2"};
    fr_recipe recipe;
    fr_error error = {0};
    CHECK_OK(fr_recipe_defaults(&recipe, &error));
    for (size_t i = 0; i < sizeof base / sizeof base[0]; i++)
        CHECK_OK(fr_recipe_set(&recipe, base[i], &error));
    for (; more && *more; more++)
        CHECK_OK(fr_recipe_set(&recipe, *more, &error));
    return recipe;
}

/* A virtual clock of 1 s a step and `steps` steps. */
static inline fr_train_options session_options(const char *name, int steps, int threads,
                                               const char *const *more)
{
    return (fr_train_options){
        .recipe = session_recipe(more),
        .data_folder = session_corpus(),
        .run_folder = fixture_path(name),
        .clock = {.kind = FR_CLOCK_VIRTUAL, .seconds_per_step = 1, .budget = steps, .startup_cap = 60},
        .clock_text = "virtual:1",
        .seed = 7,
        .threads = threads,
    };
}

static inline const char *file_hash(const char *run, const char *name)
{
    static char hex[8][65];
    static int next;
    char path[1024];
    fr_error error = {0};
    char *out = hex[next++ % 8];
    CHECK_OK(fr_sha256_file(fr_path_join(path, sizeof path, fixture_path(run), name), out, &error));
    return out;
}

static inline const char *model_hash(const char *run)
{
    return file_hash(run, "model.safetensors");
}

static inline json_t *run_record(const char *run)
{
    char path[1024];
    json_t *root = NULL;
    fr_error error = {0};
    CHECK_OK(fr_json_read(&root, fr_path_join(path, sizeof path, fixture_path(run), "run.json"), &error));
    return root;
}

static inline int log_lines(const char *run)
{
    char path[1024], *text = NULL;
    size_t bytes = 0;
    int lines = 0;
    fr_arena arena;
    fr_error error = {0};
    fr_arena_init(&arena, 1024);
    CHECK_OK(fr_file_read(&arena, fr_path_join(path, sizeof path, fixture_path(run), "log.jsonl"), &text,
                          &bytes, &error));
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    fr_arena_release(&arena);
    return lines;
}

/* Runs to the end and gives the model's hash. */
static inline const char *train_hash(const char *run, int steps, int threads, const char *const *more)
{
    fr_train_options options = session_options(run, steps, threads, more);
    fr_error error = {0};
    CHECK_OK(fr_train(&options, &error));
    return model_hash(run);
}

/* One whole step by hand. */
static inline void one_step(fr_session *session)
{
    fr_error error = {0};
    CHECK(fr_session_begin_step(session, &error));
    CHECK_OK(fr_session_gradients(session, &error));
    CHECK_OK(fr_session_update(session, &error));
    CHECK_OK(fr_session_end_step(session, &error));
}

#endif
