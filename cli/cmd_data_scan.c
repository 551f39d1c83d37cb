/* cli/cmd_data_scan.c: `frontier data scan DATA --bundle B`: is evaluation text in the training data? */
#include <string.h>

#include "commands.h"
#include "frontier/scan.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option options[] = {
    {"bundle", CLI_PATH, "FOLDER", NULL, "folder with core.yaml, eval_meta_data.csv and eval_data/", false, true},
    {"words", CLI_COUNT, "N", "13", "successive words that make a find; 8 to 64", false, false},
    {"split", CLI_CHOICE, "train|valid|all", "train", "which documents", false, false},
    {"documents", CLI_PATH, "FILE", NULL, "write every document with a find, as JSON lines", false, false},
};

static void print_example(const cli_run *run, const fr_scan_result *r, const fr_scan_document *d)
{
    cli_print(run, "  %s document %lld: %lld items; %s line %lld: \"%s\"\n", d->split == FR_TRAIN ? "train" : "valid",
              (long long)d->document, (long long)d->items, r->tasks[d->task].task->label, (long long)d->line,
              d->text);
}

/* Words of a document, for a terminal: without what it would obey, and in whole characters. */
static void make_printable(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    size_t length = strlen(text);
    while (length > 0 && (unsigned char)text[length - 1] >= 0x80)
        text[--length] = 0;
}

static json_t *example_json(const fr_scan_result *r, const fr_scan_document *d)
{
    json_t *text = json_string(d->text);
    return json_pack("{s:s s:I s:I s:s s:I s:o}", "split", d->split == FR_TRAIN ? "train" : "valid", "document",
                     (json_int_t)d->document, "items", (json_int_t)d->items, "task",
                     r->tasks[d->task].task->label, "line", (json_int_t)d->line, "text",
                     text ? text : json_string("(not valid UTF-8)"));
}

static void tell(cli_run *run, fr_scan_result *r)
{
    char time[40];
    json_t *tasks = json_object(), *examples = json_array();
    cli_progress_end();
    cli_print(run, "%-34s  %8s %8s %8s\n", "task", "items", "found", "short");
    for (int i = 0; i < r->task_count; i++) {
        const fr_scan_task *t = &r->tasks[i];
        cli_print(run, "%-34s  %8lld %8lld %8lld\n", t->task->label, (long long)t->items, (long long)t->found,
                  (long long)t->short_items);
        json_object_set_new(tasks, t->task->label,
                            json_pack("{s:I s:I s:I}", "items", (json_int_t)t->items, "found", (json_int_t)t->found,
                                      "short", (json_int_t)t->short_items));
    }
    for (int i = 0; i < r->example_count; i++) {
        make_printable(r->examples[i].text);
        print_example(run, r, &r->examples[i]);
        json_array_append_new(examples, example_json(r, &r->examples[i]));
    }
    cli_print(run, "%lld of %lld items stand in %lld of %lld documents (%d words in a row, %s)\n", (long long)r->found,
              (long long)r->items, (long long)r->documents, (long long)r->scanned, r->words,
              fr_format_duration(time, sizeof time, r->seconds));
    cli_put(run, "found", json_integer(r->found));
    cli_put(run, "items", json_integer(r->items));
    cli_put(run, "documents", json_integer(r->documents));
    cli_put(run, "scanned", json_integer(r->scanned));
    cli_put(run, "missing", json_integer(r->missing));
    cli_put(run, "words", json_integer(r->words));
    cli_put(run, "tasks", tasks);
    cli_put(run, "examples", examples);
    cli_put(run, "seconds", json_real(r->seconds));
}

static fr_status run_scan(cli_run *run, fr_error *error)
{
    fr_core_bundle *bundle;
    fr_corpus *corpus = NULL;
    fr_scan_result *result = NULL;
    const char *split = cli_text(run, "split");
    fr_scan_options scan = {.words = (int)cli_int(run, "words", FR_SCAN_WORDS),
                            .train = strcmp(split, "valid") != 0,
                            .valid = strcmp(split, "train") != 0,
                            .documents_path = cli_text(run, "documents"),
                            .progress = &run->progress};
    FR_TRY(fr_core_bundle_open(&bundle, cli_text(run, "bundle"), error));
    fr_status status = fr_corpus_open(&corpus, run->arguments[0], false, error);
    if (status == FR_OK)
        status = fr_scan(corpus, bundle, &scan, &result, error);
    if (status == FR_OK) {
        tell(run, result);
        status = result->found ? FR_ANSWER_NO : FR_OK;
    }
    fr_scan_result_free(result);
    fr_corpus_free(corpus);
    fr_core_bundle_free(bundle);
    return status;
}

const cli_command cmd_data_scan = {
    .name = "data scan",
    .arguments = "DATA",
    .least = 1,
    .most = 1,
    .summary = "find evaluation text inside training data",
    .options = options,
    .option_count = COUNT(options),
    .details = "An item (with its right answer) is found where 13 of its words in a row stand in a document, or all of an item of 8 to\n"
               "12 words; capitals, punctuation and white space do not matter, nor does wording that more than 64 items share. Documents\n"
               "are named by split and index. Exit code 1 when anything is found. See docs/core.md.",
    .examples = "  frontier data scan data/mine --bundle eval_bundle\n"
                "  frontier data scan data/mine --bundle eval_bundle --documents finds.jsonl --json",
    .run = run_scan,
    .schema = "data-scan",
};
