/* CORE: bundles, prompts, spans, choosing, and what known models must score.
 *
 * The source of losses is made up, so the right score is known without a model: one that finds every token
 * equally likely must score near chance, one that knows the answers 1. Published results of GPT-2 give CORE
 * from accuracies.
 */
#include "frontier/core.h"
#include "eval/core_bundle.h"
#include "eval/core_text.h"

#include "model_fixture.h"
#include "test.h"

#include <jansson.h>

static const char yaml_text[] =
    "# tasks\nicl_tasks:\n-\n  label: pick\n  dataset_uri: a/pick.jsonl\n  num_fewshot: [2]\n"
    "  icl_task_type: multiple_choice\n  continuation_delimiter: \"\\nAnswer: \"\n"
    "- label: fit # a comment\n  dataset_uri: 'a/fit.jsonl'\n  num_fewshot: [0]\n"
    "  icl_task_type: schema\n-\n  label: tell\n  dataset_uri: a/tell.jsonl\n"
    "  num_fewshot: [1]\n  icl_task_type: language_modeling\n";
static const char table_text[] =
    "Eval Task,Task Category,Task Type,#shots,#datapoints,Random baseline,Centered "
    "Metric?,Description\r\npick,\"cat, one\",mc,2,4,25,,\"say \"\"hi\"\",\nthere\"\n"
    "fit,two,schema,0,4,50,,x\ntell,\"cat, one\",lm,1,4,0,,x\nother,x,x,0,0,9.1,,x\n";
static const char pick_text[] =
    "{\"query\": \"the cat\", \"choices\": [\"sat on\", \"sat\", \"ran\"], \"gold\": 1}\n"
    "{\"query\": \"the rat\", \"choices\": [\"sat\", \"hat\", \"and\"], \"gold\": 0}\n\n"
    "{\"query\": \"a mat\", \"choices\": [\"the\", \"a\", \"on\"], \"gold\": 2, \"category\": \"x\"}\n"
    "{\"query\": \"the hat\", \"choices\": [\"cat\", \"mat\", \"rat\"], \"gold\": 1}";
static const char fit_text[] =
    "{\"context_options\": [\"the cat and\", \"the hat and\"], \"continuation\": \"the mat sat.\", \"gold\": "
    "0}\n"
    "{\"context_options\": [\"a rat on\", \"a cat on\"], \"continuation\": \"the hat ran\", \"gold\": 1}\n"
    "{\"context_options\": [\"same\", \"same\"], \"continuation\": \"here\", \"gold\": 1}\n";
static const char tell_text[] =
    "{\"context\": \"\\u00a0 the cat sat on \\n\", \"continuation\": \"the mat\"}\n"
    "{\"context\": \"the rat\", \"continuation\": \"ran\"}\n"
    "{\"context\": \"a hat\", \"continuation\": \"\"}\n";

static const char *write_bundle(const char *name)
{
    static const char *const files[][2] = {{"core.yaml", yaml_text},
                                           {"eval_meta_data.csv", table_text},
                                           {"eval_data/a/pick.jsonl", pick_text},
                                           {"eval_data/a/fit.jsonl", fit_text},
                                           {"eval_data/a/tell.jsonl", tell_text}};
    const char *folder = fixture_path(name);
    char path[900];
    fr_error error = {0};
    CHECK_OK(fr_folder_make(fr_path_join(path, sizeof path, folder, "eval_data/a"), &error));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        CHECK_OK(fr_file_write(fr_path_join(path, sizeof path, folder, files[i][0]), files[i][1],
                               strlen(files[i][1]), &error));
    return folder;
}

static fr_core_bundle *open_bundle(const char *folder)
{
    fr_core_bundle *bundle = NULL;
    fr_error error = {0};
    CHECK_OK(fr_core_bundle_open(&bundle, folder, &error));
    return bundle;
}

static fr_core_bundle *outside_bundle(void)
{
    const char *shared = getenv("FRONTIER_SHARED");
    char path[900];
    fr_path_join(path, sizeof path, shared && *shared ? shared : "../shared", "data/core");
    return fr_path_is_folder(path) ? open_bundle(path) : NULL;
}

/* ---- bundle ----------------------------------------------------------------------------------------- */

TEST(bundles_are_read)
{
    fr_core_bundle *bundle = open_bundle(write_bundle("bundle"));
    CHECK_INT(fr_core_bundle_tasks(bundle), 3);
    const fr_core_task *pick = fr_core_bundle_task(bundle, 0), *fit = fr_core_bundle_task(bundle, 1);
    CHECK_STR(pick->label, "pick");
    CHECK_STR(pick->delimiter, "\nAnswer: ");
    CHECK_STR(pick->category, "cat, one");
    CHECK_INT(pick->shots, 2);
    CHECK_NEAR(pick->chance, 0.25, 0, 0);
    CHECK(pick->present && pick->kind == FR_CORE_CHOICE);
    CHECK_STR(fit->label, "fit");
    CHECK_STR(fit->delimiter, " ");
    CHECK(fit->kind == FR_CORE_SCHEMA);
    CHECK(fr_core_bundle_task(bundle, 3) == NULL);
    fr_core_bundle_free(bundle);
}

TEST(byte_order_marks_and_carriage_returns_change_nothing)
{
    static const char *const files[][2] = {{"core.yaml", yaml_text},
                                           {"eval_meta_data.csv", table_text},
                                           {"eval_data/a/pick.jsonl", pick_text},
                                           {"eval_data/a/fit.jsonl", fit_text},
                                           {"eval_data/a/tell.jsonl", tell_text}};
    const char *folder = write_bundle("marked");
    fr_error error = {0};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[900];
        fr_buffer text;
        fr_buffer_init(&text, 0);
        fr_buffer_printf(&text, "\xEF\xBB\xBF");
        for (const char *at = files[i][1]; *at; at++)
            fr_buffer_printf(&text, *at == '\n' && at > files[i][1] && at[-1] != '\r' ? "\r\n" : "%c", *at);
        CHECK_OK(fr_file_write(fr_path_join(path, sizeof path, folder, files[i][0]), text.data, text.length,
                               &error));
        fr_buffer_release(&text);
    }
    fr_core_bundle *bundle = open_bundle(folder);
    static const int64_t counts[] = {4, 3, 3};
    for (int i = 0; i < 3; i++) {
        fr_core_items items;
        CHECK_OK(fr_core_items_load(&items, fr_core_bundle_task(bundle, i), 0, &error));
        CHECK_INT(items.count, counts[i]);
        fr_core_items_release(&items);
    }
    CHECK_STR(fr_core_bundle_task(bundle, 0)->delimiter, "\nAnswer: ");
    fr_core_bundle_free(bundle);
}

static void refuse_yaml(const char *text, int line, const char *what)
{
    fr_core_bundle *bundle = fr_allocate(sizeof *bundle);
    fr_error error = {0};
    char where[40];
    fr_arena_init(&bundle->arena, 4096);
    snprintf(where, sizeof where, "f.yaml:%d", line);
    CHECK_INT(core_yaml_parse(bundle, text, strlen(text), "f.yaml", &error), FR_BAD_DATA);
    CHECK_STR(error.where, where);
    if (!strstr(error.what, what))
        test_fail_format(__FILE__, __LINE__, "%s: want '%s'", error.what, what);
    fr_core_bundle_free(bundle);
}

TEST(odd_yaml_is_refused_with_its_line)
{
#define TASK "icl_tasks:\n-\n  label: a\n  dataset_uri: b\n  num_fewshot: [1]\n"
    refuse_yaml("", 0, "no tasks");
    refuse_yaml("tasks:\n", 1, "icl_tasks");
    refuse_yaml("- label: a\n", 1, "under 'icl_tasks:'");
    refuse_yaml(TASK, 2, "no 'icl_task_type'");
    refuse_yaml(TASK "  icl_task_type: nonsense\n", 6, "not one of");
    refuse_yaml(TASK "  num_fewshoot: [1]\n", 6, "num_fewshot");
    refuse_yaml(TASK "  label: b\n", 6, "twice");
    refuse_yaml(TASK "   icl_task_type: schema\n", 6, "column");
    refuse_yaml(TASK "  continuation_delimiter: \"a\n", 6, "does not end");
    refuse_yaml(TASK "  continuation_delimiter: \"\\q\"\n", 6, "escape");
    refuse_yaml(TASK "  continuation_delimiter: \"a\" b\n", 6, "follows");
    refuse_yaml(TASK "  icl_task_type: *anchor\n", 6, "not supported");
    refuse_yaml("icl_tasks:\n- label: a\n  dataset_uri: ../b\n", 3, "below eval_data");
    refuse_yaml("icl_tasks:\n- label: a\n  num_fewshot: [1, 2]\n", 3, "one whole number");
    refuse_yaml("icl_tasks:\n- label: a\n  num_fewshot: [1\n", 3, "end with ]");
    refuse_yaml("icl_tasks:\n\t- label: a\n", 2, "tabs");
}

static void refuse_table(const char *text, int line, const char *what)
{
    fr_core_bundle *bundle = fr_allocate(sizeof *bundle);
    fr_error error = {0};
    char where[40];
    fr_arena_init(&bundle->arena, 4096);
    bundle->tasks[bundle->count++] = (fr_core_task){.label = "a"};
    snprintf(where, sizeof where, "f.csv:%d", line);
    CHECK_INT(core_table_parse(bundle, text, strlen(text), "f.csv", &error), FR_BAD_DATA);
    CHECK_STR(error.where, where);
    if (!strstr(error.what, what))
        test_fail_format(__FILE__, __LINE__, "%s: want '%s'", error.what, what);
    fr_core_bundle_free(bundle);
}

TEST(odd_tables_are_refused_with_their_line)
{
#define HEAD "Eval Task,Task Category,Random baseline\n"
    refuse_table("", 1, "no column 'Eval Task'");
    refuse_table("Eval Task,Task Category\n", 1, "'Random baseline'");
    refuse_table(HEAD "b,x,1\n", 2, "no row for the task 'a'");
    refuse_table(HEAD "a,x,100\n", 2, "below 100");
    refuse_table(HEAD "a,x,1\na,x,1\n", 3, "second row");
    refuse_table(HEAD "a,x\n", 2, "no field");
    refuse_table(HEAD "a,\"x\n,1\n", 2, "does not end");
    refuse_table(HEAD "a,\"x\"y,1\n", 2, "follows a quote");
}

/* ---- items ------------------------------------------------------------------------------------------ */

static void refuse_items(const char *text, fr_status status, const char *where_end, const char *what)
{
    fr_core_bundle *bundle = open_bundle(write_bundle("odd"));
    char path[900];
    fr_core_items items;
    fr_error error = {0};
    CHECK_OK(fr_file_write(fr_path_join(path, sizeof path, fixture_path("odd"), "eval_data/a/pick.jsonl"),
                           text, strlen(text), &error));
    CHECK_INT(fr_core_items_load(&items, fr_core_bundle_task(bundle, 0), 0, &error), status);
    if (!strstr(error.where, where_end) || !strstr(error.what, what))
        test_fail_format(__FILE__, __LINE__, "%s: %s: want '%s': '%s'", error.where, error.what, where_end,
                         what);
    fr_core_bundle_free(bundle);
}

TEST(malformed_lines_are_named)
{
#define GOOD "{\"query\": \"q\", \"choices\": [\"a\"], \"gold\": 0}\n"
    refuse_items("", FR_BAD_DATA, "pick.jsonl", "no items");
    refuse_items(GOOD GOOD, FR_BAD_DATA, "pick.jsonl", "only 2 items");
    refuse_items(GOOD "{\"query\": \"q\"", FR_BAD_DATA, "pick.jsonl:2", "");
    refuse_items(GOOD "\nnot json\n" GOOD, FR_BAD_DATA, "pick.jsonl:3", "");
    refuse_items(GOOD "{\"query\": 1, \"choices\": [\"a\"], \"gold\": 0}\n", FR_BAD_DATA, "pick.jsonl:2",
                 "'query'");
    refuse_items("{\"query\": \"q\", \"choices\": [], \"gold\": 0}\n", FR_BAD_DATA, "pick.jsonl:1",
                 "'choices'");
    refuse_items("{\"query\": \"q\", \"choices\": [\"a\", 2], \"gold\": 0}\n", FR_BAD_DATA, "pick.jsonl:1",
                 "'choices'");
    refuse_items("{\"query\": \"q\", \"choices\": [\"a\"], \"gold\": 1}\n", FR_BAD_DATA, "pick.jsonl:1",
                 "'gold'");
    refuse_items("{\"query\": \"q\", \"choices\": [\"a\"], \"gold\": -1}\n", FR_BAD_DATA, "pick.jsonl:1",
                 "'gold'");
    refuse_items("{\"query\": \"q\", \"choices\": [\"a\"]}\n", FR_BAD_DATA, "pick.jsonl:1", "'gold'");
}

TEST(spaces_are_stripped_as_python_does)
{
    static const char text[] = "\xe3\x80\x80\x1c \t\xc2\xa0"
                               "a b\xe2\x80\x8b\xc2\x85\n";
    fr_core_text left = core_strip((fr_core_text){text, sizeof text - 1});
    CHECK_INT(left.count, 6); /* a zero-width space is none to Python */
    CHECK(memcmp(left.bytes, "a b\xe2\x80\x8b", 6) == 0);
    CHECK_INT(core_strip((fr_core_text){" \n ", 3}).count, 0);
}

/* The item whose first option is `option`, wherever the shuffle put it. */
static int64_t find_item(const fr_core_items *items, const char *option)
{
    for (int64_t i = 0; i < items->count; i++)
        if (items->items[i].options[0].count == strlen(option) &&
            memcmp(items->items[i].options[0].bytes, option, strlen(option)) == 0)
            return i;
    return -1;
}

static void check_prompt(const fr_core_task *task, const fr_core_items *items, int64_t index, int option,
                         const char *want)
{
    fr_buffer text;
    fr_error error = {0};
    fr_buffer_init(&text, 0);
    CHECK_OK(fr_core_prompt(&text, task, items, index, option, &error));
    CHECK_STR(text.data, want);
    fr_buffer_release(&text);
}

TEST(prompts_read_as_published)
{
    fr_core_bundle *bundle = open_bundle(write_bundle("prompts"));
    fr_core_items items;
    fr_error error = {0};
    CHECK_OK(fr_core_items_load(&items, fr_core_bundle_task(bundle, 1), 0, &error));
    check_prompt(fr_core_bundle_task(bundle, 1), &items, find_item(&items, "a rat on"), 1,
                 "a cat on the hat ran");
    fr_core_items_release(&items);
    CHECK_OK(fr_core_items_load(&items, fr_core_bundle_task(bundle, 2), 2, &error));
    CHECK_INT(items.count, 2); /* so the other one is the example */
    char want[200], whole[260];
    fr_core_item *shot = &items.items[1], *item = &items.items[0];
    snprintf(want, sizeof want, "%.*s %.*s\n\n%.*s", (int)shot->text.count, shot->text.bytes,
             (int)shot->options[0].count, shot->options[0].bytes, (int)item->text.count, item->text.bytes);
    snprintf(whole, sizeof whole, "%s %.*s", want, (int)item->options[0].count, item->options[0].bytes);
    check_prompt(fr_core_bundle_task(bundle, 2), &items, 0, -1, want);
    check_prompt(fr_core_bundle_task(bundle, 2), &items, 0, 0, whole);
    fr_core_items_release(&items);
    fr_core_bundle_free(bundle);
}

static void check_decoded(const fr_tokenizer *tokenizer, const fr_core_row *row, const char *want)
{
    fr_buffer text;
    fr_error error = {0};
    fr_buffer_init(&text, 0);
    CHECK_OK(
        fr_tokenizer_decode(tokenizer, row->ids + row->first, row->end - row->first, true, &text, &error));
    CHECK_STR(text.data, want);
    fr_buffer_release(&text);
}

TEST(spans_are_what_options_differ_in)
{
    fr_core_bundle *bundle = open_bundle(write_bundle("spans"));
    fr_tokenizer *bytes = fixture_tokenizer(0);
    fr_core_items items;
    fr_core_rows rows;
    fr_arena arena;
    fr_error error = {0};
    fr_arena_init(&arena, 1 << 16);
    const fr_core_task *pick = fr_core_bundle_task(bundle, 0), *fit = fr_core_bundle_task(bundle, 1),
                       *tell = fr_core_bundle_task(bundle, 2);
    CHECK_OK(fr_core_items_load(&items, pick, 0, &error));
    CHECK_OK(fr_core_rows_make(&rows, &arena, pick, &items, find_item(&items, "cat"), bytes, 0, &error));
    check_decoded(bytes, &rows.rows[0], "cat");
    check_decoded(bytes, &rows.rows[2], "rat");
    CHECK_INT(rows.rows[0].ids[0], fr_tokenizer_bos(bytes));
    CHECK_OK(fr_core_rows_make(&rows, &arena, pick, &items, find_item(&items, "cat"), bytes, 10, &error));
    CHECK_INT(rows.cut, 3);
    CHECK_INT(rows.rows[0].count, 10);
    check_decoded(bytes, &rows.rows[0], "cat");
    fr_core_items_release(&items);
    CHECK_OK(fr_core_items_load(&items, fit, 0, &error));
    CHECK_OK(
        fr_core_rows_make(&rows, &arena, fit, &items, find_item(&items, "the cat and"), bytes, 0, &error));
    check_decoded(bytes, &rows.rows[1], "at and the mat sat."); /* tokens, not words */
    CHECK_OK(fr_core_rows_make(&rows, &arena, fit, &items, find_item(&items, "same"), bytes, 0, &error));
    CHECK(rows.rows[0].first >= rows.rows[0].end); /* nothing differs: nothing stands before it */
    fr_core_items_release(&items);
    CHECK_OK(fr_core_items_load(&items, tell, 0, &error));
    CHECK_OK(fr_core_rows_make(&rows, &arena, tell, &items, find_item(&items, "the mat"), bytes, 0, &error));
    CHECK(!rows.misaligned);
    check_decoded(bytes, &rows.rows[0], " the mat");
    fr_core_task bare =
        *tell; /* an empty continuation behind nothing: no token to judge, so no right answer */
    bare.delimiter = "";
    for (int64_t i = 0; i < items.count; i++) {
        CHECK_OK(fr_core_rows_make(&rows, &arena, &bare, &items, i, bytes, 0, &error));
        CHECK_INT(rows.misaligned, items.items[i].options[0].count == 0);
    }
    fr_core_items_release(&items);
    fr_arena_release(&arena);
    fr_tokenizer_free(bytes);
    fr_core_bundle_free(bundle);
}

TEST(choosing_follows_the_reference)
{
    static const struct {
        double losses[3];
        int gold, prediction, tied;
        bool gold_tied;
    } cases[] = {{{2, 1, 3}, 1, 1, 1, true},   {{2, 1, 1}, 2, 1, 2, true},
                 {{1, 1, 1}, 2, 0, 3, true},   {{NAN, 1, 2}, 1, 0, 1, true},
                 {{2, NAN, 1}, 2, 2, 1, true}, {{NAN, NAN, NAN}, 1, 0, 0, false},
                 {{1, NAN, 1}, 1, 0, 2, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fr_core_answer a = {0};
        fr_core_choose(cases[i].losses, 3, cases[i].gold, &a);
        CHECK_INT(a.prediction, cases[i].prediction);
        CHECK_INT(a.correct, cases[i].prediction == cases[i].gold);
        CHECK_INT(a.tied, cases[i].tied);
        CHECK_INT(a.gold_tied, cases[i].gold_tied);
    }
}

/* ---- published results ------------------------------------------------------------------------------ */

static int read_accuracies(const char *path, fr_core_result *result, double *core)
{
    char line[300], label[100];
    double accuracy, centered;
    int found = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "CORE , , %lf", core) == 1)
            continue;
        if (sscanf(line, "%99[^ ,] , %lf , %lf", label, &accuracy, &centered) != 3)
            continue;
        for (int i = 0; i < result->task_count; i++)
            if (strcmp(result->tasks[i].task->label, label) == 0) {
                result->tasks[i].accuracy = accuracy;
                result->tasks[i].n = 500;
                result->tasks[i].done = true;
                found++;
            }
    }
    if (file)
        fclose(file);
    return found;
}

TEST(core_of_gpt2_follows_from_its_accuracies)
{
    static const struct {
        const char *name;
        double core;
    } published[] = {{"", 0.113891}, {"-medium", 0.184903}, {"-large", 0.214641}, {"-xl", 0.256525}};
    fr_core_bundle *bundle = outside_bundle();
    fr_error error = {0};
    if (!bundle)
        SKIP("the published results need ../shared");
    for (int i = 0; i < 4; i++) {
        fr_core_result *result = NULL;
        const char *shared = getenv("FRONTIER_SHARED");
        char path[900];
        double core = 0;
        CHECK_OK(fr_core_result_create(&result, bundle, &error));
        snprintf(path, sizeof path, "%s/data/core/reference_results/openai-community-gpt2%s.csv",
                 shared && *shared ? shared : "../shared", published[i].name);
        CHECK_INT(read_accuracies(path, result, &core), 22);
        CHECK(isnan(result->core));
        fr_core_summarize(result);
        CHECK_NEAR(result->core, published[i].core, 1e-6, 0);
        CHECK_NEAR(core, published[i].core, 1e-9, 0);
        CHECK_INT(result->category_count, 5);
        result->tasks[3].done = false; /* one missing: no CORE */
        fr_core_summarize(result);
        CHECK(isnan(result->core) && result->missing == 1 && isfinite(result->mean));
        fr_core_result_free(result);
    }
    fr_core_bundle_free(bundle);
}

/* ---- known models ----------------------------------------------------------------------------------- */

typedef struct fake {
    enum { UNIFORM, HASHED, BROKEN } kind;
    int64_t calls, spans, stop_after; /* spans answered before it refuses; 0: never */
} fake;

/* Every token costs the same; or something that depends on the whole row; or is not a number. */
static fr_status fake_source(void *context, int64_t count, fr_span *spans, fr_error *error)
{
    fake *f = context;
    f->calls++;
    for (int64_t i = 0; i < count; i++) {
        fr_span *s = &spans[i];
        if (f->stop_after && f->spans >= f->stop_after)
            return fr_error_set(error, FR_STOPPED, "fake", NULL, "stopped");
        f->spans++;
        uint64_t hash = fr_hash64(s->ids, (size_t)(s->end + 1) * sizeof *s->ids, 1);
        s->nats = f->kind == UNIFORM ? 3.0 * (double)(s->end - s->first) : (double)(hash >> 11);
        s->followed = f->kind == HASHED && hash % 3 == 0;
        if (f->kind == BROKEN && hash % 2)
            s->nats = NAN;
    }
    return FR_OK;
}

static fr_core_result *evaluate(fake *f, const fr_core_bundle *bundle, const fr_core_options *options)
{
    static fr_tokenizer *tokenizer;
    fr_core_result *result = NULL;
    fr_error error = {0};
    if (!tokenizer)
        tokenizer = fixture_tokenizer(20);
    CHECK_OK(fr_eval_core_from(fake_source, f, tokenizer, bundle, options, &result, &error));
    return result;
}

TEST(an_even_model_scores_chance)
{
    fr_core_bundle *bundle = outside_bundle();
    if (!bundle)
        SKIP("the tasks need ../shared");
    fr_core_options options = {.max_per_task = 30, .ties_chance = true, .context = 1024};
    fr_core_result *result = evaluate(&(fake){.kind = UNIFORM}, bundle, &options);
    CHECK_INT(result->missing, 4);
    CHECK(isnan(result->core));
    for (int i = 0; i < result->task_count; i++) {
        const fr_core_task_result *r = &result->tasks[i];
        /* Two published baselines are not one over the number of options. */
        if (!r->done || strcmp(r->task->label, "boolq") == 0 ||
            strcmp(r->task->label, "bigbench_language_identification") == 0)
            continue;
        if (r->task->kind == FR_CORE_LANGUAGE)
            CHECK_NEAR(r->accuracy, 0, 0, 0);
        else
            CHECK_NEAR(r->accuracy, r->task->chance, 0.07, 0);
        CHECK_INT(r->n, 30);
        CHECK_INT(r->invalid, 0);
    }
    fr_core_result_free(result);
    fr_core_bundle_free(bundle);
}

/* An oracle knows the answers' texts: it finds the tokens of a right ending likely. */
typedef struct oracle {
    const fr_core_bundle *bundle;
    uint64_t *right; /* hashes of the rows with the right option */
    int64_t count;
} oracle;

static void oracle_learn(oracle *o, const fr_tokenizer *tokenizer, int64_t max_per_task)
{
    fr_error error = {0};
    fr_arena arena;
    fr_arena_init(&arena, 1 << 20);
    o->right = malloc(100000 * sizeof *o->right);
    for (int t = 0; t < fr_core_bundle_tasks(o->bundle); t++) {
        const fr_core_task *task = fr_core_bundle_task(o->bundle, t);
        fr_core_items items;
        if (!task->present)
            continue;
        CHECK_OK(fr_core_items_load(&items, task, max_per_task, &error));
        for (int64_t i = 0; i < items.count; i++) {
            fr_core_rows rows;
            CHECK_OK(fr_core_rows_make(&rows, &arena, task, &items, i, tokenizer, 0, &error));
            const fr_core_row *row = &rows.rows[items.items[i].gold];
            o->right[o->count++] = fr_hash64(row->ids, (size_t)row->count * sizeof *row->ids, 7);
        }
        fr_core_items_release(&items);
        fr_arena_clear(&arena);
    }
    fr_arena_release(&arena);
}

static fr_status oracle_source(void *context, int64_t count, fr_span *spans, fr_error *error)
{
    const oracle *o = context;
    (void)error;
    for (int64_t i = 0; i < count; i++) {
        uint64_t hash = fr_hash64(spans[i].ids, (size_t)(spans[i].end + 1) * sizeof *spans[i].ids, 7);
        bool right = false;
        for (int64_t k = 0; k < o->count; k++)
            right = right || o->right[k] == hash;
        spans[i].nats = (right ? 0.1 : 2.0) * (double)(spans[i].end - spans[i].first);
        spans[i].followed = right;
    }
    return FR_OK;
}

TEST(an_oracle_scores_one)
{
    fr_core_bundle *bundle = outside_bundle();
    fr_core_result *result = NULL;
    fr_error error = {0};
    if (!bundle)
        SKIP("the tasks need ../shared");
    fr_tokenizer *tokenizer = fixture_tokenizer(20);
    oracle o = {.bundle = bundle};
    oracle_learn(&o, tokenizer, 15);
    fr_core_options options = {.max_per_task = 15, .context = 1024};
    CHECK_OK(fr_eval_core_from(oracle_source, &o, tokenizer, bundle, &options, &result, &error));
    for (int i = 0; result && i < result->task_count; i++)
        if (result->tasks[i].done && !result->tasks[i].empty)
            CHECK_NEAR(result->tasks[i].accuracy, 1, 0, 0);
    CHECK_NEAR(result->mean, 1, 0.01, 0);
    fr_core_result_free(result);
    free(o.right);
    fr_tokenizer_free(tokenizer);
    fr_core_bundle_free(bundle);
}

/* ---- counting, going on, refusing ------------------------------------------------------------------- */

TEST(broken_losses_count_as_wrong_and_are_told)
{
    fr_core_bundle *bundle = open_bundle(write_bundle("broken"));
    fr_core_options options = {.context = 20};
    fr_core_result *result = evaluate(&(fake){.kind = BROKEN}, bundle, &options);
    CHECK(result->tasks[0].invalid > 0);
    CHECK(result->tasks[0].correct <= result->tasks[0].n - result->tasks[0].invalid);
    CHECK_INT(result->tasks[0].longer, 4); /* two examples are longer than 20 tokens */
    CHECK_INT(result->tasks[1].empty, 1);
    CHECK_INT(result->tasks[2].n, 3);
    CHECK(isfinite(result->core)); /* all tasks are there */
    fr_core_result_free(result);
    fr_core_bundle_free(bundle);
}

TEST(a_stopped_evaluation_goes_on)
{
    fr_core_bundle *bundle = open_bundle(write_bundle("resumed"));
    fr_tokenizer *tokenizer = fixture_tokenizer(20);
    const char *log = fixture_path("core.log");
    fr_core_options plain = {.context = 64};
    fr_core_options logged = {.context = 64, .log_path = log, .model_hash = "m"};
    fr_core_result *whole = evaluate(&(fake){.kind = HASHED}, bundle, &plain), *result = NULL;
    fake stopping = {.kind = HASHED, .stop_after = 13}, rest = {.kind = HASHED}, none = {.kind = HASHED},
         other = {.kind = HASHED};
    fr_error error = {0};
    CHECK_INT(fr_eval_core_from(fake_source, &stopping, tokenizer, bundle, &logged, &result, &error),
              FR_STOPPED);
    fr_tokenizer_free(tokenizer);
    result = evaluate(&rest, bundle, &logged);
    CHECK_INT(result->tasks[0].resumed, 4);
    CHECK(rest.spans > 0 && rest.spans < whole->rows);
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(result->tasks[i].accuracy, whole->tasks[i].accuracy, 0, 0);
    fr_core_result_free(result);
    result = evaluate(&none, bundle, &logged);
    CHECK_INT(none.spans, 0);
    CHECK_NEAR(result->core, whole->core, 0, 0);
    fr_core_result_free(result);
    logged.model_hash = "another";
    result = evaluate(&other, bundle, &logged);
    CHECK_INT(other.spans, whole->rows);
    fr_core_result_free(result);
    fr_core_result_free(whole);
    fr_core_bundle_free(bundle);
}

TEST(what_makes_no_sense_is_refused)
{
    fr_core_bundle *bundle = open_bundle(write_bundle("refused")), *none;
    fr_tokenizer *tokenizer = fixture_tokenizer(20);
    fr_core_result *result;
    fr_error error = {0};
    fake f = {.kind = UNIFORM};
    fr_core_options options = {.tasks = (const char *const[]){"pck"}, .task_count = 1};
    CHECK_INT(fr_eval_core_from(fake_source, &f, tokenizer, bundle, &options, &result, &error), FR_BAD_USAGE);
    CHECK_STR(error.hint, "did you mean 'pick'?");
    options = (fr_core_options){.max_per_task = 2};
    CHECK_INT(fr_eval_core_from(fake_source, &f, tokenizer, bundle, &options, &result, &error), FR_BAD_USAGE);
    CHECK_STR(error.where, "max-per-task");
    CHECK_INT(f.calls, 0);
    CHECK_INT(fr_core_bundle_open(&none, fixture_path("nowhere"), &error), FR_BAD_DATA);
    options = (fr_core_options){.tasks = (const char *const[]){"fit"}, .task_count = 1};
    CHECK_OK(fr_eval_core_from(fake_source, &f, tokenizer, bundle, &options, &result, &error));
    CHECK(isnan(result->core) && result->missing == 2 && result->tasks[1].done);
    fr_core_result_free(result);
    fr_tokenizer_free(tokenizer);
    fr_core_bundle_free(bundle);
}

TEST_MAIN(core)
