/* test_world: the built-in world. Its documents are a function of the seeds, its grammar has one parse per
 * document, its facts are stated often, its tasks are new text in CORE's format. The 1,000-document round
 * trip, xz and other seeds are in tests/slow/test_world_slow.c.
 */
#include "test.h"
#include "scratch.h"
#include "frontier/text.h"
#include "text/world.h"
#include <jansson.h>

static fr_error error;

static void document(uint64_t seed, uint64_t docs_seed, fr_corpus_split split, int64_t index, fr_buffer *out,
                     double *bits)
{
    fr_buffer_clear(out);
    CHECK_OK(fr_world_document(seed, docs_seed, split, index, out, bits, &error));
}

TEST(documents_never_change)
{
    fr_buffer all;
    char hex[65];
    fr_buffer_init(&all, 0);
    for (int i = 0; i < 40; i++) {
        CHECK_OK(fr_world_document(1, 1, FR_TRAIN, i, &all, NULL, &error));
        CHECK_OK(fr_world_document(1, 1, FR_VALID, i, &all, NULL, &error));
        CHECK_OK(fr_world_document(2, 3, FR_TRAIN, i, &all, NULL, &error));
    }
    fr_sha256(all.data, all.length, hex);
    /* A change of any template, word or weight lands here: raise WORLD_VERSION, then state the new hash. */
    CHECK_STR(hex, "3f9f7dad57a90f19c5bc48a677b175d4f3522dfb5b978993edc518a492cac6f3");
    fr_buffer_release(&all);
}

TEST(seeds_and_streams_make_other_documents)
{
    fr_buffer a, b;
    double bits_a, bits_b;
    fr_buffer_init(&a, 0);
    fr_buffer_init(&b, 0);
    document(1, 1, FR_TRAIN, 5, &a, &bits_a);
    document(1, 1, FR_TRAIN, 5, &b, &bits_b);
    CHECK_STR(a.data, b.data);
    CHECK(bits_a == bits_b && bits_a > 20);
    document(1, 1, FR_VALID, 5, &b, NULL);
    CHECK(strcmp(a.data, b.data) != 0);
    document(1, 2, FR_TRAIN, 5, &b, NULL);
    CHECK(strcmp(a.data, b.data) != 0);
    document(2, 1, FR_TRAIN, 5, &b, NULL);
    CHECK(strcmp(a.data, b.data) != 0);
    document(1, 1, FR_TRAIN, 6, &b, NULL);
    CHECK(strcmp(a.data, b.data) != 0);
    fr_buffer_release(&a);
    fr_buffer_release(&b);
}

/* Another documents' seed is the same world: a person's facts do not move. */
TEST(facts_belong_to_the_world_seed)
{
    world *a, *b;
    CHECK_OK(world_create(&a, 7, &error));
    CHECK_OK(world_create(&b, 7, &error));
    int people = world_find_class(a, "person", 6);
    CHECK(people >= 0);
    for (int i = 0; i < a->classes[people].choice.count; i++) {
        world_ref who = {(int16_t)people, (int16_t)i};
        world_ref home_a = world_attribute_of(a, who, ATTRIBUTE_HOME),
                  home_b = world_attribute_of(b, who, ATTRIBUTE_HOME);
        CHECK_STR(world_form_of(a, who, FORM_FULL).data, world_form_of(b, who, FORM_FULL).data);
        CHECK_STR(world_form_of(a, home_a, FORM_BASE).data, world_form_of(b, home_b, FORM_BASE).data);
        world_ref friend_of = world_attribute_of(a, who, ATTRIBUTE_FRIEND);
        CHECK(friend_of.kind == who.kind && friend_of.entry != who.entry);
    }
    world_free(a);
    world_free(b);
}

static void check_round_trip(const world *w, world_machine *machine, fr_rng rng)
{
    fr_buffer text, again;
    fr_arena arena;
    world_parse parse;
    int64_t cost = 0;
    fr_buffer_init(&text, 0);
    fr_buffer_init(&again, 0);
    fr_arena_init(&arena, 1 << 14);
    CHECK_OK(world_write(machine, w, 0, &rng, &text, &error));
    CHECK_OK(world_parse_text(w, text.data, text.length, &arena, &parse, &error));
    CHECK_INT(parse.parses, 1);
    CHECK_INT(parse.cost, machine->state.cost);
    CHECK_OK(world_replay(w, &parse, &again, &cost, &error));
    CHECK_STR(again.data, text.data);
    CHECK_INT(cost, machine->state.cost);
    fr_arena_release(&arena);
    fr_buffer_release(&text);
    fr_buffer_release(&again);
}

TEST(explain_recovers_the_choices_of_200_documents)
{
    world *w;
    CHECK_OK(world_create(&w, 1, &error));
    world_machine *machine = fr_allocate(sizeof *machine);
    for (int i = 0; i < 200; i++)
        check_round_trip(w, machine, world_document_rng(w, 1, FR_VALID, i));
    fr_deallocate(machine);
    world_free(w);
}

TEST(explain_gives_an_account_with_the_bits)
{
    fr_buffer text, out;
    double written, explained;
    fr_buffer_init(&text, 0);
    fr_buffer_init(&out, 0);
    document(3, 4, FR_VALID, 9, &text, &written);
    CHECK_OK(fr_world_explain(3, text.data, text.length, &out, &explained, &error));
    CHECK(written == explained);
    CHECK(strstr(out.data, "document") && strstr(out.data, "bits per byte"));
    fr_buffer_release(&text);
    fr_buffer_release(&out);
}

TEST(explain_refuses_what_the_world_did_not_write)
{
    fr_buffer text, out;
    fr_buffer_init(&text, 0);
    fr_buffer_init(&out, 0);
    document(3, 4, FR_VALID, 9, &text, NULL);
    CHECK_INT(fr_world_explain(3, text.data, text.length - 1, &out, NULL, &error), FR_BAD_DATA);
    CHECK_INT(fr_world_explain(3, text.data, 0, &out, NULL, &error), FR_BAD_DATA);
    CHECK_INT(fr_world_explain(3, "\0\xff{P}", 5, &out, NULL, &error), FR_BAD_DATA);
    CHECK(strstr(error.what, "nothing fits after byte 0"));
    CHECK_INT(fr_world_explain(4, text.data, text.length, &out, NULL, &error), FR_BAD_DATA);
    for (size_t i = 0; i < text.length; i += 7) {
        char held = text.data[i];
        text.data[i] = '#';
        CHECK_INT(fr_world_explain(3, text.data, text.length, &out, NULL, &error), FR_BAD_DATA);
        text.data[i] = held;
    }
    fr_buffer_release(&text);
    fr_buffer_release(&out);
}

TEST(log2_is_exact_to_a_billionth)
{
    CHECK_INT(world_log2(1), 0);
    CHECK_INT(world_log2(1u << 20), (int64_t)20 << 32);
    for (uint64_t x = 1; x < (uint64_t)1 << 40; x = x * 3 + 1)
        CHECK_NEAR((double)world_log2(x) / 4294967296.0, log2((double)x), 1e-9, 0);
}

TEST(draws_follow_the_weights)
{
    fr_arena arena;
    world_choice choice;
    uint32_t weights[4] = {1, 2, 4, 9};
    int64_t seen[4] = {0};
    fr_arena_init(&arena, 4096);
    CHECK_OK(world_weigh(&arena, &choice, "test", weights, 4, &error));
    for (uint32_t ticket = 0; ticket < 16; ticket++)
        seen[world_draw(&choice, ticket)]++;
    for (int i = 0; i < 4; i++) {
        CHECK_INT(seen[i], weights[i]);
        CHECK_NEAR((double)choice.cost[i] / 4294967296.0, log2(16.0 / weights[i]), 1e-9, 0);
    }
    fr_arena_release(&arena);
}

/* In 5 MB of training text, every attribute of every person, pet, place, trade, animal and treasure. */
TEST(every_fact_is_stated_20_times)
{
    world *w;
    fr_buffer text;
    CHECK_OK(world_create(&w, 1, &error));
    world_machine *machine = fr_allocate(sizeof *machine);
    machine->mentions = fr_allocate((size_t)world_fact_count(w) * sizeof(int64_t));
    fr_buffer_init(&text, 0);
    for (int64_t i = 0, bytes = 0; bytes < 5000000; i++, bytes += (int64_t)text.length) {
        fr_rng rng = world_document_rng(w, 1, FR_TRAIN, i);
        fr_buffer_clear(&text);
        CHECK_OK(world_write(machine, w, 0, &rng, &text, &error));
    }
    int facts = 0;
    for (int c = 0; c < w->class_count; c++)
        for (int e = 0; e < w->classes[c].choice.count; e++)
            for (int k = 0; k < w->classes[c].entries[e].attribute_count; k++, facts++)
                CHECK(machine->mentions[world_fact_index(w, (world_ref){(int16_t)c, (int16_t)e}, k)] >= 20);
    CHECK(facts > 700);
    fr_buffer_release(&text);
    fr_deallocate(machine->mentions);
    fr_deallocate(machine);
    world_free(w);
}

TEST(no_document_is_said_twice)
{
    enum { DOCUMENTS = 4000 };
    static uint64_t hashes[2 * DOCUMENTS];
    world *w;
    fr_buffer text;
    CHECK_OK(world_create(&w, 1, &error));
    world_machine *machine = fr_allocate(sizeof *machine);
    fr_buffer_init(&text, 0);
    for (int i = 0; i < 2 * DOCUMENTS; i++) {
        fr_rng rng = world_document_rng(w, 1, i % 2 ? FR_VALID : FR_TRAIN, i / 2);
        fr_buffer_clear(&text);
        CHECK_OK(world_write(machine, w, 0, &rng, &text, &error));
        hashes[i] = fr_hash64(text.data, text.length, 0);
    }
    int doubles = 0;
    for (int i = 0; i < 2 * DOCUMENTS; i++)
        for (int j = 0; j < i; j++)
            doubles += hashes[i] == hashes[j];
    CHECK_INT(doubles, 0);
    fr_buffer_release(&text);
    fr_deallocate(machine);
    world_free(w);
}

TEST(memory_that_runs_out_is_an_error)
{
    fr_buffer text;
    bool done = false;
    for (int n = 0; n < 200 && !done; n++) {
        fr_buffer_init(&text, 0);
        fr_allocate_fail_after(n);
        fr_status status = fr_world_document(1, 1, FR_TRAIN, 0, &text, NULL, &error);
        fr_allocate_fail_after(-1);
        done = status == FR_OK;
        if (!done)
            CHECK_INT(status, FR_BAD_ENVIRONMENT);
        fr_buffer_release(&text);
    }
    CHECK(done);
}

/* ---- the data folder ---- */

static char folder[512];

static const char *fresh_folder(const char *name)
{
    snprintf(folder, sizeof folder, "%s", scratch(name));
    return folder;
}

TEST(generate_writes_a_data_folder_with_its_floor)
{
    fr_world_summary summary, again;
    fr_world_options options = {
        .out_folder = fresh_folder("generate"), .seed = 1, .docs_seed = 1, .bytes = 300000, .vocab = 1024};
    CHECK_OK(fr_world_generate(&options, &summary, &error));
    CHECK(summary.floor_bpb > 0.4 && summary.floor_bpb < 1.2);
    CHECK(summary.patterns > 400);
    CHECK(summary.bytes >= 315000 && summary.bytes < 320000);
    fr_corpus *corpus;
    CHECK_OK(fr_corpus_open(&corpus, folder, true, &error));
    CHECK(fr_corpus_floor_bpb(corpus) == summary.floor_bpb);
    CHECK_INT(fr_corpus_bytes(corpus, FR_TRAIN) + fr_corpus_bytes(corpus, FR_VALID), summary.bytes);
    int32_t ids[4096];
    fr_buffer text, want;
    fr_buffer_init(&text, 0);
    fr_buffer_init(&want, 0);
    int64_t count = fr_corpus_document(corpus, FR_VALID, 3, ids, 4096);
    CHECK_OK(fr_tokenizer_decode(fr_corpus_tokenizer(corpus), ids, count, false, &text, &error));
    document(1, 1, FR_VALID, 3, &want, NULL);
    CHECK_STR(text.data, want.data);
    fr_buffer_release(&text);
    fr_buffer_release(&want);
    char first[65];
    snprintf(first, sizeof first, "%s", fr_corpus_hash(corpus));
    fr_corpus_free(corpus);

    CHECK_INT(fr_world_generate(&options, &again, &error), FR_BAD_USAGE); /* not over a corpus */
    options.overwrite = true;
    CHECK_OK(fr_world_generate(&options, &again, &error));
    CHECK_OK(fr_corpus_open(&corpus, folder, true, &error));
    CHECK_STR(fr_corpus_hash(corpus), first);
    fr_corpus_free(corpus);
}

TEST(generate_refuses_sizes_without_sense)
{
    fr_world_summary summary;
    fr_world_options options = {.out_folder = fresh_folder("refuse"), .bytes = 0};
    CHECK_INT(fr_world_generate(&options, &summary, &error), FR_BAD_USAGE);
    CHECK(!fr_path_exists(folder));
}

/* ---- tasks ---- */

enum { ITEMS = 60 };
static const struct {
    const char *label, *kind;
} want_tasks[] = {{"world_trades", "multiple_choice"}, {"world_homes", "multiple_choice"},
                  {"world_sounds", "schema"},          {"world_rivers", "schema"},
                  {"world_pets", "language_modeling"}, {"world_reading", "language_modeling"}};

static const char *text_at(const json_t *item, const char *key, size_t i)
{
    const json_t *value = json_object_get(item, key);
    return json_string_value(json_is_array(value) ? json_array_get(value, i) : value);
}

/* The whole text of the right answer must not occur in the training text. */
static void check_new(const char *training, const char *context, const char *rest)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s %s", context, rest);
    CHECK(strstr(training, whole) == NULL);
}

static void check_item(const char *kind, const json_t *item, const char *training)
{
    size_t gold = (size_t)json_integer_value(json_object_get(item, "gold"));
    if (strcmp(kind, "multiple_choice") == 0) {
        const json_t *choices = json_object_get(item, "choices");
        CHECK_INT(json_array_size(choices), 4);
        CHECK(gold < 4);
        for (size_t i = 0; i < 4; i++)
            for (size_t j = 0; j < i; j++)
                CHECK(strcmp(text_at(item, "choices", i), text_at(item, "choices", j)) != 0);
        check_new(training, text_at(item, "query", 0), text_at(item, "choices", gold));
    } else if (strcmp(kind, "schema") == 0) {
        CHECK_INT(json_array_size(json_object_get(item, "context_options")), 2);
        CHECK(gold < 2);
        CHECK(strcmp(text_at(item, "context_options", 0), text_at(item, "context_options", 1)) != 0);
        check_new(training, text_at(item, "context_options", gold), text_at(item, "continuation", 0));
    } else {
        check_new(training, text_at(item, "context", 0), text_at(item, "continuation", 0));
    }
}

static void check_task(const char *label, const char *kind, const char *training)
{
    char path[600], line[4096];
    snprintf(path, sizeof path, "%s/eval_data/world/%s.jsonl", folder, label);
    FILE *file = fopen(path, "r");
    int items = 0, golds[4] = {0};
    CHECK(file != NULL);
    while (file && fgets(line, sizeof line, file)) {
        json_error_t problem;
        json_t *item = json_loads(line, JSON_REJECT_DUPLICATES, &problem);
        CHECK(json_is_object(item));
        check_item(kind, item, training);
        golds[json_integer_value(json_object_get(item, "gold")) & 3]++;
        json_decref(item);
        items++;
    }
    CHECK_INT(items, ITEMS);
    CHECK(strcmp(kind, "language_modeling") == 0 || golds[0] < ITEMS * 3 / 4); /* the gold place varies */
    if (file)
        fclose(file);
}

static void training_text(fr_buffer *out, int64_t documents)
{
    world *w;
    CHECK_OK(world_create(&w, 1, &error));
    world_machine *machine = fr_allocate(sizeof *machine);
    for (int64_t i = 0; i < documents; i++) {
        fr_rng rng = world_document_rng(w, 1, FR_TRAIN, i);
        CHECK_OK(world_write(machine, w, 0, &rng, out, &error));
    }
    fr_deallocate(machine);
    world_free(w);
}

TEST(tasks_are_valid_and_new)
{
    fr_buffer training;
    fr_buffer_init(&training, 0);
    training_text(&training, 4000);
    CHECK_OK(fr_world_tasks(1, fresh_folder("tasks"), ITEMS, &error));
    for (size_t i = 0; i < sizeof want_tasks / sizeof want_tasks[0]; i++)
        check_task(want_tasks[i].label, want_tasks[i].kind, training.data);
    fr_buffer_release(&training);
}

TEST(tasks_bundle_lists_six_tasks)
{
    fr_arena arena;
    char path[600], *text;
    size_t bytes;
    fr_arena_init(&arena, 1 << 14);
    CHECK_OK(fr_world_tasks(1, fresh_folder("bundle"), 2, &error));
    snprintf(path, sizeof path, "%s/core.yaml", folder);
    CHECK_OK(fr_file_read(&arena, path, &text, &bytes, &error));
    for (size_t i = 0; i < sizeof want_tasks / sizeof want_tasks[0]; i++)
        CHECK(strstr(text, want_tasks[i].label) != NULL);
    snprintf(path, sizeof path, "%s/eval_meta_data.csv", folder);
    CHECK_OK(fr_file_read(&arena, path, &text, &bytes, &error));
    CHECK(strstr(text, "world_homes,world,multiple_choice,2,2,25,,") != NULL);
    CHECK_INT(fr_world_tasks(1, folder, 0, &error), FR_BAD_USAGE);
    fr_arena_release(&arena);
}

TEST_MAIN(world)
