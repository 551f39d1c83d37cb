/* world_generate.c: a whole data folder from the built-in world.
 *
 * Documents cost almost nothing to write, so they are written twice: once to train the tokenizer on (up to
 * a cap), once to encode. Validation documents are another stream of random numbers; their information,
 * summed in fixed point, divided by their bytes is the corpus's floor: no model that does not know the
 * random numbers can be expected to do better on them.
 */
#include "text/world.h"
#include <string.h>

enum { TOKENIZER_BYTES = 20 * 1000 * 1000, MOST_VALID = 2 * 1000 * 1000, TASK_ITEMS = 300 };

typedef struct word_set { /* hashes of the word types seen; open addressing, 0 = free */
    uint64_t *slots;
    size_t capacity, count;
} word_set;
typedef struct generator {
    const fr_world_options *options;
    world *w;
    world_machine *machine;
    fr_buffer text;
    word_set words;
    int64_t documents[2], bytes[2], cost; /* cost: of validation */
    fr_tokenizer *tokenizer;
    fr_corpus_writer *writer;
} generator;

static void place_word(word_set *set, uint64_t hash)
{
    size_t at = (size_t)hash & (set->capacity - 1);
    while (set->slots[at] && set->slots[at] != hash)
        at = (at + 1) & (set->capacity - 1);
    set->count += set->slots[at] == 0;
    set->slots[at] = hash;
}

static bool make_room(word_set *set)
{
    if (set->slots && set->count < set->capacity / 2)
        return true;
    word_set bigger = {.capacity = set->capacity ? 2 * set->capacity : 1 << 14};
    bigger.slots = fr_allocate(bigger.capacity * sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->slots[i])
            place_word(&bigger, set->slots[i]);
    fr_deallocate(set->slots);
    *set = bigger;
    return true;
}

static bool is_letter(char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

/* A word is a run of letters; case does not make another type. */
static bool add_words(word_set *set, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes;) {
        char word[64];
        size_t length = 0;
        for (; i < bytes && is_letter(text[i]); i++)
            if (length < sizeof word)
                word[length++] = (char)(text[i] | 32);
        if (length == 0)
            i++;
        else if (!make_room(set))
            return false;
        else
            place_word(set, fr_hash64(word, length, 0) | 1);
    }
    return true;
}

static fr_status write_text(generator *g, fr_corpus_split split, int64_t index, fr_error *error)
{
    fr_rng rng = world_document_rng(g->w, g->options->docs_seed, split, index);
    fr_buffer_clear(&g->text);
    return world_write(g->machine, g->w, 0, &rng, &g->text, error);
}

static fr_status train_tokenizer(generator *g, fr_error *error)
{
    fr_tokenizer_options options = {.vocab = g->options->vocab ? g->options->vocab : 2048,
                                    .pool = g->options->pool,
                                    .progress = g->options->progress};
    fr_tokenizer_trainer *trainer;
    FR_TRY(fr_tokenizer_trainer_create(&trainer, &options, error));
    int64_t most = g->options->bytes < TOKENIZER_BYTES ? g->options->bytes : TOKENIZER_BYTES, fed = 0;
    fr_status status = FR_OK;
    for (int64_t i = 0; status == FR_OK && fed < most; i++) {
        status = write_text(g, FR_TRAIN, i, error);
        if (status == FR_OK)
            status = fr_tokenizer_trainer_feed(trainer, g->text.data, g->text.length, error);
        fed += (int64_t)g->text.length;
    }
    if (status == FR_OK)
        status = fr_tokenizer_trainer_finish(trainer, &g->tokenizer, error);
    fr_tokenizer_trainer_free(trainer);
    return status;
}

static fr_status write_split(generator *g, fr_corpus_split split, int64_t least, fr_error *error)
{
    while (g->bytes[split] < least) {
        FR_TRY(write_text(g, split, g->documents[split], error));
        FR_TRY(fr_corpus_writer_document(g->writer, split, g->text.data, g->text.length, error));
        if (split == FR_TRAIN && !add_words(&g->words, g->text.data, g->text.length))
            return fr_error_memory(error, g->words.capacity * sizeof(uint64_t), "counting words");
        if (split == FR_VALID)
            g->cost += g->machine->state.cost;
        g->documents[split]++;
        g->bytes[split] += (int64_t)g->text.length;
        if (g->documents[split] % 256 == 0)
            fr_progress_update(g->options->progress, "documents", (double)g->bytes[split], (double)least,
                               NULL);
        if (fr_progress_stop(g->options->progress))
            return fr_error_set(error, FR_STOPPED, g->options->out_folder, "run the same command again",
                                "stopped");
    }
    return FR_OK;
}

static double floor_of(const generator *g)
{
    return (double)g->cost / 4294967296.0 / (double)g->bytes[FR_VALID];
}

/* Seeds are strings because JSON readers lose digits above 2^53. */
static fr_status finish(generator *g, fr_error *error)
{
    fr_buffer details;
    fr_buffer_init(&details, 0);
    fr_buffer_printf(
        &details,
        "{\"sources\": [{\"name\": \"built-in world\"}], \"licence\": \"CC0-1.0\", \"world_version\": %d, "
        "\"world_seed\": \"%llu\", \"docs_seed\": \"%llu\", \"floor_bpb\": %.17g, \"word_types\": %zu, "
        "\"patterns\": %d}",
        WORLD_VERSION, (unsigned long long)g->options->seed, (unsigned long long)g->options->docs_seed,
        floor_of(g), g->words.count, g->w->patterns);
    fr_status status = details.failed ? fr_error_memory(error, 1024, "corpus details")
                                      : fr_corpus_writer_finish(g->writer, details.data, error);
    fr_buffer_release(&details);
    return status;
}

static fr_status write_corpus(generator *g, fr_error *error)
{
    char path[1200];
    int64_t valid = g->options->bytes / 20 < MOST_VALID ? g->options->bytes / 20 : MOST_VALID;
    FR_TRY(write_split(g, FR_TRAIN, g->options->bytes, error));
    FR_TRY(write_split(g, FR_VALID, valid, error));
    fr_path_join(path, sizeof path, g->options->out_folder, "core");
    FR_TRY(fr_world_tasks(g->options->seed, path, TASK_ITEMS, error));
    return finish(g, error);
}

static fr_status summarise(const generator *g, fr_world_summary *summary, fr_error *error)
{
    fr_corpus *corpus;
    FR_TRY(fr_corpus_open(&corpus, g->options->out_folder, false, error));
    *summary =
        (fr_world_summary){.documents = g->documents[FR_TRAIN] + g->documents[FR_VALID],
                           .bytes = g->bytes[FR_TRAIN] + g->bytes[FR_VALID],
                           .tokens = fr_corpus_tokens(corpus, FR_TRAIN) + fr_corpus_tokens(corpus, FR_VALID),
                           .word_types = (int64_t)g->words.count,
                           .patterns = g->w->patterns,
                           .floor_bpb = floor_of(g)};
    fr_corpus_free(corpus);
    return FR_OK;
}

static fr_status generate(generator *g, fr_world_summary *summary, fr_error *error)
{
    const char *folder = g->options->out_folder;
    FR_TRY(world_create(&g->w, g->options->seed, error));
    g->machine = fr_allocate(sizeof *g->machine);
    if (!g->machine)
        return fr_error_memory(error, sizeof *g->machine, "writing documents");
    FR_TRY(train_tokenizer(g, error));
    if (g->options->overwrite)
        FR_TRY(fr_corpus_remove(folder, error));
    FR_TRY(fr_corpus_writer_create(&g->writer, folder, g->tokenizer, error));
    FR_TRY(write_corpus(g, error));
    return summarise(g, summary, error);
}

fr_status fr_world_generate(const fr_world_options *options, fr_world_summary *summary, fr_error *error)
{
    char path[1200];
    if (options->bytes < 10000 || strlen(options->out_folder) > 1000)
        return fr_error_set(error, FR_BAD_USAGE, options->out_folder, NULL,
                            "ask for at least 10000 bytes, and a path of at most 1000");
    fr_path_join(path, sizeof path, options->out_folder, "corpus.json");
    if (!options->overwrite && fr_path_exists(path))
        return fr_error_set(error, FR_BAD_USAGE, path, "choose another folder, or replace it with --force",
                            "the folder already holds a corpus");
    generator g = {.options = options};
    fr_buffer_init(&g.text, 0);
    fr_status status = generate(&g, summary, error);
    fr_corpus_writer_free(g.writer);
    fr_tokenizer_free(g.tokenizer);
    fr_deallocate(g.words.slots);
    fr_deallocate(g.machine);
    world_free(g.w);
    fr_buffer_release(&g.text);
    return status;
}
