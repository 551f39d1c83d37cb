/* cli/cmd_report.c: `frontier report RUN`: a page a person can read and send to somebody. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "frontier/report.h"
#include "run_folder.h"
#include "score.h"

static const cli_option options[] = {
    {"html", CLI_PATH, "FILE", NULL, "where to write the page (default RUN/report.html)", false, false},
    {"sample", CLI_COUNT, "TOKENS", "0", "show a sample of that many tokens", false, false},
    {"prompt", CLI_TEXT, "TEXT", "The", "what the sample continues", false, false},
};

static const char *number_text(fr_arena *arena, const json_t *record, const char *key, int digits,
                               double scale, const char *unit)
{
    double value = cli_number(record, key);
    if (!isfinite(value))
        return "-";
    char text[64];
    snprintf(text, sizeof text, "%.*f%s", digits, value * scale, unit);
    return fr_arena_strdup(arena, text);
}

static const char *count_text(fr_arena *arena, const json_t *record, const char *key)
{
    double value = cli_number(record, key);
    char text[40];
    return isfinite(value) ? fr_arena_strdup(arena, fr_format_count(text, sizeof text, (int64_t)value)) : "-";
}

static void add_cards(fr_arena *arena, fr_buffer *page, const json_t *record)
{
    char charged[40] = "-", rss[40] = "-";
    if (isfinite(cli_number(record, "charged_s")))
        fr_format_duration(charged, sizeof charged, cli_number(record, "charged_s"));
    if (isfinite(cli_number(record, "peak_rss_bytes")))
        fr_format_bytes(rss, sizeof rss, cli_number(record, "peak_rss_bytes"));
    const fr_card cards[] = {
        {"validation bits per byte", number_text(arena, record, "val_bpb", 4, 1, ""),
         cli_string(record, "eval_set")},
        {"last training loss", number_text(arena, record, "loss_last", 4, 1, ""), "nats per token"},
        {"charged time", charged, cli_string(json_object_get(record, "clock"), "source")},
        {"steps", count_text(arena, record, "steps"), NULL},
        {"tokens", count_text(arena, record, "tokens"), NULL},
        {"epochs", number_text(arena, record, "epochs", 2, 1, ""), NULL},
        {"parameters", count_text(arena, record, "params"), NULL},
        {"tokens per second", count_text(arena, record, "tokens_per_s"), cli_string(record, "basis")},
        {"of the machine's peak", number_text(arena, record, "mfu", 1, 100, " %"), "model FLOPs utilisation"},
        {"peak memory", rss, NULL},
        {"status", cli_string(record, "status"), NULL},
    };
    fr_page_cards(page, cards, (int)(sizeof cards / sizeof *cards));
}

static void add_plots(fr_buffer *page, const json_t *record, const cli_run_log *log)
{
    double floor = cli_number(record, "floor_bpb"), final_bpb = cli_number(record, "val_bpb");
    double final_time = cli_number(record, "charged_s");
    const char *x_label = "charged seconds";
    fr_series loss = {"loss", log->charged_s, log->loss, log->count, false};
    fr_plot_svg(page, &(fr_plot){.title = "Training loss",
                                 .y_label = "nats per token",
                                 .x_label = x_label,
                                 .series = &loss,
                                 .series_count = 1});
    fr_series bpb[2] = {{"during training", log->scored_s, log->val_bpb, log->scores, true},
                        {"final", &final_time, &final_bpb, 1, true}};
    fr_plot_svg(page, &(fr_plot){.title = "Validation",
                                 .y_label = "bits per byte",
                                 .x_label = x_label,
                                 .series = bpb,
                                 .series_count = 2,
                                 .y_line = floor,
                                 .y_line_name = isfinite(floor) ? "floor" : NULL});
    fr_series lr = {"lr", log->charged_s, log->lr, log->count, false};
    fr_plot_svg(page, &(fr_plot){.title = "Learning rate",
                                 .y_label = "of the matrices",
                                 .x_label = x_label,
                                 .series = &lr,
                                 .series_count = 1,
                                 .from_zero = true});
    fr_series speed = {"speed", log->charged_s, log->tokens_per_s, log->count, false};
    fr_plot_svg(page, &(fr_plot){.title = "Speed",
                                 .y_label = "tokens per second",
                                 .x_label = x_label,
                                 .series = &speed,
                                 .series_count = 1,
                                 .from_zero = true});
    fr_series norm = {"norm", log->charged_s, log->grad_norm, log->count, false};
    fr_plot_svg(page, &(fr_plot){.title = "Gradient norm",
                                 .x_label = x_label,
                                 .series = &norm,
                                 .series_count = 1,
                                 .from_zero = true});
}

static void add_time(fr_buffer *page, const json_t *record)
{
    const json_t *time = json_object_get(record, "time_s");
    fr_part parts[64];
    const char *key;
    json_t *value;
    int count = 0;
    json_object_foreach((json_t *)time, key, value) if (count < 64 && json_is_number(value)) parts[count++] =
        (fr_part){key, json_number_value(value)};
    for (int i = 1; i < count; i++) /* insertion sort, largest first */
        for (int j = i; j > 0 && parts[j].value > parts[j - 1].value; j--) {
            fr_part swap = parts[j];
            parts[j] = parts[j - 1];
            parts[j - 1] = swap;
        }
    if (count)
        fr_bars_svg(page, "Where the time went", "s", parts, count);
}

static void add_receipt(fr_arena *arena, fr_buffer *page, const json_t *record)
{
    const char *cells[2 * 80] = {"key", "value"};
    const char *key;
    json_t *value;
    int rows = 1;
    json_object_foreach((json_t *)record, key, value)
    {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_SORT_KEYS | JSON_REAL_PRECISION(8));
        if (text && rows < 80) {
            cells[2 * rows] = key;
            cells[2 * rows + 1] = fr_arena_strdup(arena, text);
            rows++;
        }
        free(text);
    }
    fr_page_heading(page, "Receipt");
    fr_page_table(page, cells, rows, 2);
}

static fr_status write_page(cli_run *run, const char *folder, const char *path, const json_t *record,
                            const cli_run_log *log, const char *sample, fr_error *error)
{
    fr_buffer page;
    fr_buffer_init(&page, 256u << 20);
    fr_page_begin(&page, folder, cli_string(record, "recipe"));
    add_cards(&run->arena, &page, record);
    fr_page_heading(&page, "Over time");
    add_plots(&page, record, log);
    add_time(&page, record);
    if (sample) {
        fr_page_heading(&page, "A sample");
        fr_page_preformatted(&page, sample);
    }
    add_receipt(&run->arena, &page, record);
    char *recipe, recipe_path[1200];
    size_t bytes;
    if (fr_file_read(&run->arena, fr_path_join(recipe_path, sizeof recipe_path, folder, "recipe.toml"),
                     &recipe, &bytes, error) == FR_OK) {
        fr_page_heading(&page, "Recipe");
        fr_page_preformatted(&page, recipe);
    }
    fr_page_end(&page);
    fr_status status = page.failed ? fr_error_memory(error, page.length, path)
                                   : fr_file_write(path, page.data, page.length, error);
    fr_buffer_release(&page);
    return status;
}

static bool collect(void *context, const char *bytes, size_t count)
{
    fr_buffer_append(context, bytes, count);
    return !cli_interrupted();
}

/* The prompt and its continuation, in the arena; *sample stays NULL when none was asked for. */
static fr_status make_sample(cli_run *run, const char *folder, char **sample, fr_error *error)
{
    cli_scored scored;
    fr_buffer text;
    fr_sample_options sampling = {
        .tokens = cli_int(run, "sample", 0), .temperature = 0.8, .seed = 1, .stop_at_bos = true};
    if (sampling.tokens <= 0)
        return FR_OK;
    FR_TRY(cli_scored_open(&scored, folder, 0, NULL, error));
    fr_buffer_init(&text, 16 << 20);
    fr_buffer_printf(&text, "%s", cli_text(run, "prompt"));
    fr_status status =
        cli_scored_sample(&scored, cli_text(run, "prompt"), &sampling, collect, &text, NULL, error);
    if (status == FR_OK && !text.failed)
        *sample = fr_arena_strdup(&run->arena, text.data);
    fr_buffer_release(&text);
    cli_scored_release(&scored);
    return status;
}

static fr_status run_report(cli_run *run, fr_error *error)
{
    const char *folder = run->arguments[0], *path = cli_text(run, "html");
    char beside[1200], *sample = NULL;
    json_t *record;
    cli_run_log log;
    if (!path)
        path = fr_path_join(beside, sizeof beside, folder, "report.html");
    FR_TRY(cli_run_record(folder, &record, error));
    if (strcmp(cli_string(record, "status"), "imported") == 0) {
        json_decref(record);
        return fr_error_set(error, FR_BAD_USAGE, folder, "'frontier info RUN' and 'frontier eval bpb RUN' describe it",
                            "an imported model was not trained here: there is nothing to report");
    }
    fr_status status = cli_run_log_read(&run->arena, folder, &log, error);
    if (status == FR_OK)
        status = make_sample(run, folder, &sample, error);
    if (status == FR_OK)
        status = write_page(run, folder, path, record, &log, sample, error);
    if (status == FR_OK) {
        cli_print(run, "%s\n", path);
        cli_put(run, "html", fr_json_text(path, strlen(path)));
    }
    json_decref(record);
    return status;
}

const cli_command cmd_report = {
    .name = "report",
    .arguments = "RUN",
    .least = 1,
    .most = 1,
    .summary = "write a self-contained HTML page about a run",
    .options = options,
    .option_count = (int)(sizeof options / sizeof *options),
    .examples = "  frontier report runs/first --sample 80\n  frontier report runs/first --html first.html",
    .run = run_report,
    .schema = "report",
};
