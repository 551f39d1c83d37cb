/* run_record.c: run.json, the receipt of a run.
 *
 * It names everything that produced the numbers: recipe, data, tokenizer and program by hash, the
 * processor, the kernel of every operator, the clock. It is written when the run starts, after every
 * checkpoint and at the end; `status` says running, finished, stopped or failed. Numbers that do not exist
 * yet are null, and seconds that a virtual or replayed clock made up never give a measured rate: `basis`
 * says simulated and mfu stays null.
 */
#include "train/session.h"

#include "base/json.h"
#include "train/memory.h"

#include <math.h>
#include <string.h>
#include <sys/utsname.h>

enum { RECORD_SCHEMA = 1 };

/* ---- hashes ---- */

static fr_status hash_recipe(const fr_recipe *recipe, char sha256[65], fr_error *error)
{
    fr_buffer text;
    fr_buffer_init(&text, 0);
    fr_recipe_write(recipe, &text);
    fr_status status = text.failed ? fr_error_memory(error, text.length, "the recipe's hash") : FR_OK;
    if (status == FR_OK)
        fr_sha256(text.data, text.length, sha256);
    fr_buffer_release(&text);
    return status;
}

/* The clock section decides how long a run is, not what it computes at a given progress: it may change on resume. The
 * whole text is recipe.toml, by which the file is known again. */
static fr_status hash_recipes(fr_session *session, fr_error *error)
{
    fr_recipe recipe = session->options.recipe, plain;
    FR_TRY(fr_recipe_defaults(&plain, error));
    recipe.clock = plain.clock;
    FR_TRY(hash_recipe(&recipe, session->recipe_sha256, error));
    return hash_recipe(&session->options.recipe, session->recipe_file_sha256, error);
}

fr_status fr_run_record_identify(fr_session *session, fr_error *error)
{
    FR_TRY(hash_recipes(session, error));
    fr_tokenizer_hash(fr_corpus_tokenizer(session->corpus), session->tokenizer_sha256);
    if (fr_sha256_file("/proc/self/exe", session->binary_sha256, NULL) != FR_OK)
        session->binary_sha256[0] = '\0'; /* systems without /proc: null in the record */
    return FR_OK;
}

/* ---- parts of the record ---- */

static bool put_text(json_t *object, const char *key, const char *text)
{
    return text && *text ? fr_json_set_string(object, key, text) : fr_json_set(object, key, json_null());
}

static json_t *hashes_part(const fr_session *session)
{
    json_t *part = json_object();
    bool whole = part && put_text(part, "recipe", session->recipe_sha256) &&
                 put_text(part, "recipe_file", session->recipe_file_sha256) &&
                 put_text(part, "data", fr_corpus_hash(session->corpus)) &&
                 put_text(part, "tokenizer", session->tokenizer_sha256) &&
                 put_text(part, "binary", session->binary_sha256) &&
                 put_text(part, "program", session->options.program_sha256);
    if (whole)
        return part;
    json_decref(part);
    return NULL;
}

static json_t *host_part(const fr_session *session)
{
    fr_cpu_features features;
    struct utsname names;
    char os[200] = "";
    fr_cpu_detect(&features);
    if (uname(&names) == 0)
        snprintf(os, sizeof os, "%.60s %.60s %.60s", names.sysname, names.release, names.machine);
    json_t *part = json_object();
    bool whole = part && put_text(part, "cpu", features.name) && put_text(part, "kernels", features.path) &&
                 put_text(part, "os", os) && put_text(part, "library", fr_cpu_library_version()) &&
                 fr_json_set_int(part, "threads", fr_pool_threads(session->pool)) &&
                 fr_json_set_int(part, "cpus", fr_cpu_available());
    if (whole)
        return part;
    json_decref(part);
    return NULL;
}

typedef struct kernel_list {
    json_t *operators;
    bool failed;
} kernel_list;

/* operator -> {"forward": "name", "backward": "name"}; shapes that chose another kernel are joined with a plus. */
static void add_kernel(void *context, const fr_node *node, fr_pass pass, const fr_kernel *kernel)
{
    kernel_list *list = context;
    const char *key = pass == FR_FORWARD ? "forward" : "backward";
    json_t *entry = json_object_get(list->operators, node->op->name);
    if (!entry) {
        entry = json_object();
        if (!fr_json_set(list->operators, node->op->name, entry)) {
            list->failed = true;
            return;
        }
    }
    const char *known = json_string_value(json_object_get(entry, key));
    char joined[400];
    if (known && strstr(known, kernel->name))
        return;
    snprintf(joined, sizeof joined, "%s%s%s", known ? known : "", known ? " + " : "", kernel->name);
    list->failed |= !fr_json_set_string(entry, key, joined);
}

static json_t *kernels_part(const fr_session *session)
{
    kernel_list list = {.operators = json_object()};
    if (!list.operators)
        return NULL;
    fr_plan_visit(session->plan, add_kernel, &list);
    if (!list.failed)
        return list.operators;
    json_decref(list.operators);
    return NULL;
}

static json_t *clock_part(const fr_session *session)
{
    json_t *part = json_object();
    bool whole = part && put_text(part, "source", fr_clock_source(session->clock)) &&
                 put_text(part, "text", session->options.clock_text) && put_text(part, "machine", NULL) &&
                 put_text(part, "model_version", NULL) &&
                 fr_json_set_real(part, "reserve_s", session->options.clock.reserve) &&
                 fr_json_set_int(part, "free_steps", session->options.clock.free_steps);
    if (whole)
        return part;
    json_decref(part);
    return NULL;
}

static bool put_score(const fr_session *session, json_t *root)
{
    static const char *const later[] = {"val_bpb",         "val_bytes",  "val_tokens",      "val_documents",
                                        "val_context",     "eval_set",   "val_text_sha256", "val_layout",
                                        "val_byte_lengths"};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (!fr_json_set(root, later[i], json_null()))
            return false;
    return fr_json_set_real(root, "val_bpb_last_periodic", session->last_val_bpb);
}

static bool put_time(const fr_session *session, json_t *root)
{
    const fr_run_totals *totals = &session->totals;
    double budget = fr_clock_budget(session->clock);
    double charged = totals->charged, rate = charged > 0 ? (double)totals->tokens / charged : NAN;
    double tokens = (double)(session->shape.micro_rows * session->shape.T);
    double full = fr_plan_flops(session->plan, true) / tokens,
           causal = fr_plan_flops(session->plan, false) / tokens;
    double peak = session->peak_flops > 0 ? session->peak_flops : NAN;
    bool measured = strcmp(fr_clock_source(session->clock), "wall") == 0;
    return fr_json_set_real(root, "budget_s", budget > 0 ? budget : NAN) &&
           fr_json_set_real(root, "startup_s", totals->startup + fr_clock_startup(session->clock)) &&
           fr_json_set_real(root, "charged_s", charged) &&
           fr_json_set_bool(root, "over_budget", fr_clock_over_budget(session->clock)) &&
           fr_json_set_real(root, "tokens_per_s", rate) && fr_json_set_real(root, "flops_per_token", full) &&
           fr_json_set_real(root, "flops_per_token_causal", causal) &&
           fr_json_set_real(root, "peak_flops", peak) &&
           fr_json_set_real(root, "mfu", measured ? rate * full / peak : NAN) &&
           fr_json_set_real(root, "mfu_causal", measured ? rate * causal / peak : NAN) &&
           put_text(root, "basis", measured ? "measured" : "simulated") &&
           fr_json_set_bool(root, "prepared_in_clock", false);
}

static bool put_training(const fr_session *session, json_t *root)
{
    const fr_run_totals *totals = &session->totals;
    const char *numerics = session->numerics == FR_NUMERICS_BF16 ? "bf16" : "fp32";
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)session->options.seed);
    bool small_seed = session->options.seed <= INT64_MAX;
    return fr_json_set_int(root, "steps", totals->step) && fr_json_set_int(root, "tokens", totals->tokens) &&
           fr_json_set_real(root, "epochs", fr_loader_epochs(session->loader)) &&
           fr_json_set_int(root, "params", fr_graph_parameter_elements(session->graph)) &&
           (small_seed ? fr_json_set_int(root, "seed", (int64_t)session->options.seed)
                       : fr_json_set_string(root, "seed", seed)) &&
           fr_json_set_real(root, "loss_first", totals->loss_first) &&
           fr_json_set_real(root, "loss_last", totals->loss_last) &&
           fr_json_set_int(root, "tokens_per_step_declared", session->options.recipe.optim.batch_tokens) &&
           fr_json_set_real(root, "tokens_per_step_measured",
                            totals->step > 0 ? (double)totals->tokens / (double)totals->step : NAN) &&
           fr_json_set_int(root, "shards", session->shape.shards) &&
           fr_json_set_int(root, "micro_rows", session->shape.micro_rows) &&
           fr_json_set_int(root, "context", session->shape.T) && put_text(root, "numerics", numerics) &&
           put_text(root, "recipe", session->options.recipe_name) &&
           put_text(root, "data", session->options.data_folder) &&
           fr_json_set_int(root, "failed_saves", session->failed_saves);
}

/* Seconds of the first worker by operator and by what lies between them. */
static json_t *time_part(const fr_session *session)
{
    json_t *part = json_object();
    bool whole = part != NULL;
    for (int i = 0; whole && i < session->time.count; i++)
        whole = fr_json_set_real(part, session->time.parts[i].name, (double)session->time.parts[i].ns * 1e-9);
    if (whole)
        return part;
    json_decref(part);
    return NULL;
}

static bool put_failure(const fr_session *session, json_t *root)
{
    if (session->state != FR_SESSION_FAILED)
        return true;
    json_t *part = json_object();
    bool whole = part && fr_json_set_int(part, "step", session->totals.step) &&
                 put_text(part, "what", session->failure.what) &&
                 put_text(part, "where", session->failure.where) &&
                 put_text(part, "hint", session->failure.hint);
    if (whole)
        return fr_json_set(root, "failure", part);
    json_decref(part);
    return false;
}

static bool put_all(const fr_session *session, json_t *root, const char *status)
{
    return fr_json_set_int(root, "schema", RECORD_SCHEMA) && put_text(root, "status", status) &&
           put_training(session, root) && put_time(session, root) && put_score(session, root) &&
           put_failure(session, root) && fr_json_set_int(root, "peak_rss_bytes", fr_memory_peak()) &&
           fr_json_set_int(root, "memory_planned_bytes", session->memory_bytes) &&
           fr_json_set(root, "time_s", time_part(session)) &&
           fr_json_set(root, "hashes", hashes_part(session)) &&
           fr_json_set(root, "host", host_part(session)) &&
           fr_json_set(root, "kernels", kernels_part(session)) &&
           fr_json_set(root, "clock", clock_part(session));
}

fr_status fr_run_record_write(fr_session *session, const char *status, fr_error *error)
{
    char path[1024];
    fr_buffer text;
    fr_buffer_init(&text, 0);
    json_t *root = json_object();
    fr_status result = root && put_all(session, root, status) ? FR_OK : fr_error_memory(error, 0, "run.json");
    if (result == FR_OK)
        result = fr_json_write(root, fr_session_path(session, "run.json", path), error);
    if (result == FR_OK) {
        fr_json_print(root, 2, &text);
        char *copy = text.failed ? NULL : fr_allocate(text.length + 1);
        if (copy) {
            memcpy(copy, text.data, text.length + 1);
            fr_deallocate(session->record);
            session->record = copy;
        } else {
            result = fr_error_memory(error, text.length + 1, "run.json");
        }
    }
    fr_buffer_release(&text);
    json_decref(root);
    return result;
}

/* ---- the final score ---- */

static bool set_score(json_t *record, const fr_bpb_result *r, double floor_bpb)
{
    return fr_json_set_real(record, "val_bpb", r->val_bpb) && fr_json_set_real(record, "val_nats", r->nats) &&
           fr_json_set_int(record, "val_bytes", r->bytes) && fr_json_set_int(record, "val_tokens", r->tokens) &&
           fr_json_set_int(record, "val_documents", r->documents) &&
           fr_json_set_string(record, "eval_set", r->eval_set) &&
           fr_json_set_string(record, "val_text_sha256", r->text_sha256) &&
           fr_json_set_string(record, "val_layout", r->layout) &&
           fr_json_set_int(record, "val_context", r->context) &&
           fr_json_set_real(record, "val_seconds", r->seconds) &&
           fr_json_set_string(record, "val_byte_lengths", r->byte_lengths) &&
           fr_json_set_real(record, "floor_bpb", floor_bpb);
}

fr_status fr_run_record_score(const char *run_folder, const fr_bpb_result *result, double floor_bpb,
                              fr_error *error)
{
    json_t *record;
    char path[4096];
    FR_TRY(fr_json_read(&record, fr_path_join(path, sizeof path, run_folder, "run.json"), error));
    fr_status status = set_score(record, result, floor_bpb)
                           ? fr_json_write(record, path, error)
                           : fr_error_set(error, FR_BAD_DATA, path, NULL, "it is no record of a run");
    json_decref(record);
    return status;
}
