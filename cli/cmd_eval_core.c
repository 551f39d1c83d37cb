/* cli/cmd_eval_core.c: `frontier eval core RUN --bundle B`: a run's score on in-context tasks. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "frontier/core.h"
#include "frontier/report.h"
#include "score.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option options[] = {
    {"bundle", CLI_PATH, "FOLDER", NULL, "folder with core.yaml, eval_meta_data.csv and eval_data/", false,
     true},
    CLI_OPTION_HF,
    {"max-per-task", CLI_COUNT, "N", "0", "score only the first N shuffled items of each task; 0 = all",
     false, false},
    {"tasks", CLI_TEXT, "A,B", NULL, "score only these tasks; the result is then partial", false, false},
    {"ties", CLI_CHOICE, "first|chance", "first",
     "options with equal loss: the first is taken, or the right one counts 1/n", false, false},
    {"csv", CLI_PATH, "FILE", NULL, "write task, accuracy, centred accuracy, as published results come",
     false, false},
    {"plot", CLI_PATH, "FILE.svg", NULL, "draw the centred accuracy of every task, with its standard error", false,
     false},
    {"items", CLI_PATH, "FILE", NULL, "write what became of every item, as JSON lines", false, false},
    {"log", CLI_PATH, "FILE", NULL, "where answers are kept for going on (default: RUN/core.log)", false,
     false},
    {"threads", CLI_COUNT, "N", "0", "threads; 0 = all available", false, false},
    {"numerics", CLI_CHOICE, "fp32|bf16", NULL, "override the recipe's numerics", false, false},
};

/* ---- what is scored --------------------------------------------------------------------------------- */

/* A submission's program gives logits of whole rows; the losses are computed here. */
typedef struct program_source {
    fr_program *program;
    int64_t vocab;
    float *logits;
    int64_t capacity; /* positions */
} program_source;

static double position_nats(const float *z, int64_t vocab, int32_t target)
{
    double most = z[0], sum = 0;
    for (int64_t v = 1; v < vocab; v++)
        most = z[v] > most ? z[v] : most;
    for (int64_t v = 0; v < vocab; v++)
        sum += exp((double)z[v] - most);
    return most + log(sum) - (double)z[target];
}

static bool is_first_choice(const float *z, int64_t vocab, int32_t target)
{
    for (int64_t v = 0; v < vocab; v++)
        if (z[v] > z[target] || (z[v] == z[target] && v < target))
            return false;
    return true;
}

static fr_status grow(program_source *p, int64_t positions, fr_error *error)
{
    if (positions <= p->capacity)
        return FR_OK;
    size_t bytes = (size_t)positions * (size_t)p->vocab * sizeof(float);
    fr_deallocate(p->logits);
    p->capacity = 0;
    p->logits = fr_allocate(bytes);
    if (!p->logits)
        return fr_error_memory(error, bytes, "logits of a program");
    p->capacity = positions;
    return FR_OK;
}

static fr_status program_spans(void *context, int64_t count, fr_span *spans, fr_error *error)
{
    program_source *p = context;
    for (int64_t i = 0; i < count; i++) {
        fr_span *s = &spans[i];
        FR_TRY(grow(p, s->end - s->first, error));
        FR_TRY(fr_program_logits(p->program, i, s->end, s->ids, s->first, p->logits, error));
        s->nats = 0;
        s->followed = true;
        for (int64_t at = s->first; at < s->end; at++) {
            const float *z = p->logits + (at - s->first) * p->vocab;
            s->nats += position_nats(z, p->vocab, s->ids[at + 1]);
            s->followed = s->followed && is_first_choice(z, p->vocab, s->ids[at + 1]);
        }
    }
    return FR_OK;
}

static fr_status evaluate(cli_scored *scored, const fr_core_bundle *bundle, fr_core_options *core,
                          fr_core_result **result, fr_error *error)
{
    if (scored->scorer)
        return fr_eval_core(scored->scorer, bundle, core, result, error);
    program_source source = {.program = scored->program, .vocab = fr_tokenizer_vocab(scored->tokenizer)};
    core->context = scored->recipe.model.context;
    if (strcmp(scored->recipe.model.position, "learned") == 0)
        core->most_tokens = core->context; /* there is no position beyond it */
    fr_status status =
        fr_eval_core_from(program_spans, &source, scored->tokenizer, bundle, core, result, error);
    fr_deallocate(source.logits);
    return status;
}

/* ---- what is told ----------------------------------------------------------------------------------- */

static void print_task(const cli_run *run, const fr_core_task_result *r)
{
    char time[40], notes[160] = "";
    if (!r->done) {
        cli_print(run, "%-34s  %s\n", r->task->label,
                  r->task->present ? "not asked for" : "missing from the bundle");
        return;
    }
    const struct {
        const char *name;
        int64_t count;
    } counts[] = {{"invalid", r->invalid}, {"empty", r->empty}, {"tied", r->tied},
                  {"long", r->longer},     {"cut", r->cut},     {"known", r->resumed}};
    for (int i = 0; i < COUNT(counts); i++)
        if (counts[i].count)
            snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "  %lld %s",
                     (long long)counts[i].count, counts[i].name);
    cli_print(run, "%-34s  %8.4f %7.4f %9.4f %7lld  %9s%s\n", r->task->label, r->accuracy, r->stderr_accuracy,
              r->centered, (long long)r->n, fr_format_duration(time, sizeof time, r->seconds), notes);
}

static void print_result(const cli_run *run, const fr_core_result *result)
{
    char time[40];
    cli_print(run, "%-34s  %8s %7s %9s %7s  %9s\n", "task", "accuracy", "+-", "centred", "items", "time");
    for (int i = 0; i < result->task_count; i++)
        print_task(run, &result->tasks[i]);
    for (int i = 0; i < result->category_count; i++) {
        const fr_core_category *c = &result->categories[i];
        if (c->tasks)
            cli_print(run, "  %-32s  %24.4f  over %d of %d tasks\n", c->name, c->mean, c->tasks,
                      c->tasks + c->missing);
    }
    fr_format_duration(time, sizeof time, result->seconds);
    if (result->missing)
        cli_print(run,
                  "no CORE: %d of %d tasks have no score; the mean of the others is %.4f +- %.4f  (%s)\n",
                  result->missing, result->task_count, result->mean, result->standard_error, time);
    else
        cli_print(run, "CORE %.6f +- %.4f  (%d tasks, ties: %s, %s)\n", result->core, result->standard_error,
                  result->task_count, cli_text(run, "ties"), time);
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *task_json(const fr_core_task_result *r)
{
    return json_pack("{s:o s:o s:I s:o s:o s:I s:I s:I s:I s:I s:o s:s s:s s:f s:f s:I}", "accuracy",
                     number(r->accuracy), "centered", number(r->centered), "n", (json_int_t)r->n, "stderr",
                     number(r->stderr_accuracy), "seconds", cli_round(r->seconds, 3), "invalid",
                     (json_int_t)r->invalid, "empty", (json_int_t)r->empty, "tied", (json_int_t)r->tied,
                     "long", (json_int_t)r->longer, "cut", (json_int_t)r->cut, "stderr_centered",
                     number(r->stderr_centered), "category", r->task->category, "type",
                     fr_core_kind_name(r->task->kind), "chance", r->task->chance, "guess", r->guess, "known",
                     (json_int_t)r->resumed);
}

static void put_result(cli_run *run, const fr_core_result *result)
{
    json_t *partial = json_array(), *tasks = json_object(), *categories = json_object();
    for (int i = 0; i < result->task_count; i++) {
        const fr_core_task_result *r = &result->tasks[i];
        if (r->done)
            json_object_set_new(tasks, r->task->label, task_json(r));
        else
            json_array_append_new(partial, json_string(r->task->label));
    }
    for (int i = 0; i < result->category_count; i++) {
        const fr_core_category *c = &result->categories[i];
        json_object_set_new(categories, c->name,
                            json_pack("{s:o s:o s:i s:i}", "centered", number(c->centered), "mean",
                                      number(c->mean), "tasks", c->tasks, "missing", c->missing));
    }
    cli_put(run, "core", number(result->core));
    cli_put(run, "partial", partial);
    cli_put(run, "mean", number(result->mean));
    cli_put(run, "stderr", number(result->standard_error));
    cli_put(run, "tasks", tasks);
    cli_put(run, "categories", categories);
    cli_put(run, "ties", json_string(cli_text(run, "ties")));
    cli_put(run, "max_per_task", json_integer(cli_int(run, "max-per-task", 0)));
    cli_put(run, "seconds", cli_round(result->seconds, 3));
    cli_put(run, "forecast_s", cli_round(result->forecast_s, 3));
    cli_put(run, "rows", json_integer(result->rows));
    cli_put(run, "tokens", json_integer(result->tokens));
    cli_put(run, "basis", json_string("measured"));
}

static fr_status write_whole(const char *path, fr_buffer *text, fr_error *error)
{
    fr_status status = text->failed ? fr_error_memory(error, text->length, path)
                                    : fr_file_write(path, text->data, text->length, error);
    fr_buffer_release(text);
    return status;
}

static fr_status draw(cli_run *run, const fr_core_result *result, fr_error *error)
{
    char title[200];
    fr_buffer svg, file;
    fr_level *levels = fr_arena_alloc(&run->arena, (size_t)(result->task_count + 1) * sizeof *levels);
    if (!levels)
        return fr_error_memory(error, (size_t)result->task_count * sizeof *levels, "a plot");
    for (int i = 0; i < result->task_count; i++) {
        const fr_core_task_result *r = &result->tasks[i];
        levels[i] = (fr_level){r->task->label, r->done ? r->centered : (double)NAN, r->stderr_centered};
    }
    snprintf(title, sizeof title, result->missing ? "centred accuracy, %d of %d tasks; mean %.4f" :
             "centred accuracy, %d of %d tasks; CORE %.4f", result->task_count - result->missing,
             result->task_count, result->mean);
    fr_buffer_init(&svg, 0);
    fr_buffer_init(&file, 0);
    fr_levels_svg(&svg, title, levels, result->task_count);
    if (!svg.failed)
        fr_svg_file(&file, svg.data);
    file.failed = file.failed || svg.failed;
    fr_buffer_release(&svg);
    return write_whole(cli_text(run, "plot"), &file, error);
}

static fr_status tell(cli_run *run, const fr_core_result *result, fr_error *error)
{
    cli_progress_end();
    print_result(run, result);
    put_result(run, result);
    if (cli_text(run, "csv")) {
        fr_buffer table;
        fr_buffer_init(&table, 0);
        fr_core_csv(result, &table);
        FR_TRY(write_whole(cli_text(run, "csv"), &table, error));
    }
    return cli_text(run, "plot") ? draw(run, result, error) : FR_OK;
}

/* ---- the command ------------------------------------------------------------------------------------ */

/* "a,b" as two names, in the command's arena. */
static fr_status split_tasks(cli_run *run, fr_core_options *core, fr_error *error)
{
    const char *given = cli_text(run, "tasks");
    if (!given)
        return FR_OK;
    char *text = fr_arena_strdup(&run->arena, given);
    const char **names = fr_arena_alloc(&run->arena, (strlen(given) + 1) * sizeof *names);
    if (!text || !names)
        return fr_error_memory(error, strlen(given), "task names");
    for (char *next; text; text = next) {
        next = strchr(text, ',');
        if (next)
            *next++ = 0;
        names[core->task_count++] = text;
    }
    core->tasks = names;
    return FR_OK;
}

static fr_status score(cli_run *run, cli_scored *scored, const fr_core_bundle *bundle, fr_error *error)
{
    char log_path[1200], hash[65];
    fr_core_result *result;
    fr_core_options core = {.max_per_task = cli_int(run, "max-per-task", 0),
                            .ties_chance = strcmp(cli_text(run, "ties"), "chance") == 0,
                            .log_path = cli_text(run, "log"),
                            .model_hash = hash,
                            .items_path = cli_text(run, "items"),
                            .forecast = true,
                            .progress = &run->progress};
    if (!core.log_path)
        core.log_path = fr_path_join(log_path, sizeof log_path, scored->folder, "core.log");
    FR_TRY(split_tasks(run, &core, error));
    FR_TRY(cli_scored_hash(scored, hash, error));
    FR_TRY(evaluate(scored, bundle, &core, &result, error));
    fr_status status = tell(run, result, error);
    fr_core_result_free(result);
    return status;
}

static fr_status run_core(cli_run *run, fr_error *error)
{
    fr_core_bundle *bundle;
    cli_scored scored;
    FR_TRY(fr_core_bundle_open(&bundle, cli_text(run, "bundle"), error));
    fr_status status = cli_scored_open_asked(&scored, run, error);
    if (status == FR_OK) {
        status = score(run, &scored, bundle, error);
        cli_scored_release(&scored);
    }
    fr_core_bundle_free(bundle);
    return status;
}

const cli_command cmd_eval_core = {
    .name = "eval core",
    .arguments = "[RUN]",
    .least = 0,
    .most = 1,
    .summary = "CORE of a run: in-context tasks, centred accuracy",
    .options = options,
    .option_count = COUNT(options),
    .details = "The mean over tasks of (accuracy - chance) / (1 - chance). Items, few-shot examples and "
               "spans are those of the\n"
               "published harness. A task whose file is missing makes the result partial: it is named and "
               "there is no CORE.\n"
               "Answers are kept in RUN/core.log: the same command again goes on where it stopped. With --hf, a "
               "folder of GPT-2,\nLlama or NanoChat is scored as it is, and the log lies there. See docs/core.md.",
    .examples = "  frontier eval core runs/first --bundle data/core\n"
                "  frontier eval core runs/first --bundle eval_bundle --max-per-task 200 --csv core.csv\n"
                "  frontier eval core --hf gpt2 --bundle eval_bundle",
    .run = run_core,
    .schema = "eval-core",
};
