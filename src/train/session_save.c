/* session_save.c: checkpoints that survive any kill, and continuing from one.
 *
 * A checkpoint is two files, weights and everything else; the second (optimizer.safetensors) carries the
 * session's own state and a checksum of the weights it belongs to. Both are first written whole under
 * *.next names, then renamed, optimizer first. A kill between the renames leaves new state beside old
 * weights with the new ones still waiting as model.safetensors.next; the checksum tells, and the resume
 * finishes what was begun. At every other moment the two final names hold one consistent checkpoint.
 *
 * A resume is exact: the loader continues with the next row, the clock with the charge so far. It refuses
 * another recipe, corpus, seed, program or kind of clock, since their mixture would be a run nobody could repeat.
 */
#include "train/session.h"

#include "base/files.h"
#include "base/json.h"
#include "train/optimizer.h"
#include "train/timing.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STATE_SCHEMA = 1 };
static const char model_name[] = "model.safetensors", model_next[] = "model.safetensors.next";
static const char state_name[] = "optimizer.safetensors", state_next[] = "optimizer.safetensors.next";

int64_t fr_session_checkpoint_bytes(const fr_graph *graph, int64_t optimizer_bytes)
{
    return fr_graph_flat_elements(graph) * (int64_t)sizeof(float) + optimizer_bytes;
}

static void weights_checksum(const fr_session *session, char out[17])
{
    size_t bytes = (size_t)fr_graph_flat_elements(session->graph) * sizeof(float);
    snprintf(out, 17, "%016" PRIx64, fr_checksum64(session->parameters, bytes));
}

/* ---- saving ---- */

static const char *program_of(const fr_session *session)
{
    return session->options.program_sha256 ? session->options.program_sha256 : "";
}

static bool put_state(const fr_session *session, json_t *root, const char *loader_state)
{
    const fr_run_totals *totals = &session->totals;
    char checksum[17], seed[17];
    weights_checksum(session, checksum);
    snprintf(seed, sizeof seed, "%016" PRIx64, session->options.seed);
    return fr_json_set_int(root, "schema", STATE_SCHEMA) && fr_json_set_int(root, "step", totals->step) &&
           fr_json_set_int(root, "tokens", totals->tokens) &&
           fr_json_set_real(root, "charged_s", totals->charged) &&
           fr_json_set_real(root, "startup_s", totals->startup + fr_clock_startup(session->clock)) &&
           fr_json_set_real(root, "loss_first", totals->loss_first) &&
           fr_json_set_real(root, "loss_last", totals->loss_last) && fr_json_set_string(root, "seed", seed) &&
           fr_json_set_string(root, "recipe_sha256", session->recipe_sha256) &&
           fr_json_set_string(root, "data_sha256", fr_corpus_hash(session->corpus)) &&
           fr_json_set_string(root, "program_sha256", program_of(session)) &&
           fr_json_set_string(root, "clock", fr_clock_source(session->clock)) &&
           fr_json_set_string(root, "weights_checksum", checksum) &&
           fr_json_set_string(root, "loader", loader_state);
}

/* The loader's state after the last finished step: rows of a step begun since then were not trained on. */
static fr_status loader_state(fr_session *session, fr_arena *arena, char **out, fr_error *error)
{
    bool rows_taken = session->scalars.step == session->totals.step && session->loader_row >= 0;
    int64_t row = rows_taken ? session->loader_row : fr_loader_row(session->loader);
    return fr_loader_save_row(session->loader, row, arena, out, error);
}

static fr_status state_text(fr_session *session, fr_buffer *out, fr_error *error)
{
    fr_arena arena;
    char *rows = NULL;
    fr_arena_init(&arena, 1 << 14);
    json_t *root = json_object();
    fr_status status = loader_state(session, &arena, &rows, error);
    if (status == FR_OK && root && put_state(session, root, rows))
        fr_json_print(root, 0, out);
    else if (status == FR_OK)
        out->failed = true;
    if (status == FR_OK && out->failed)
        status = fr_error_memory(error, out->length, "the state of a run");
    json_decref(root);
    fr_arena_release(&arena);
    return status;
}

static fr_status rename_next(const fr_session *session, const char *from, const char *to, fr_error *error)
{
    char source[1024], target[1024];
    fr_session_path(session, from, source);
    fr_session_path(session, to, target);
    if (rename(source, target) != 0)
        return fr_file_error(error, target, "write", errno);
    return fr_file_sync_folder(target, error);
}

static fr_status write_next(fr_session *session, const char *text, fr_error *error)
{
    char path[1024];
    FR_TRY(fr_model_save(session->graph, session->parameters, fr_session_path(session, model_next, path),
                         error));
    return fr_optimizer_save(session->optimizer, fr_session_path(session, state_next, path), text, error);
}

static void remove_next(const fr_session *session)
{
    char path[1024];
    unlink(fr_session_path(session, model_next, path));
    unlink(fr_session_path(session, state_next, path));
}

fr_status fr_session_save(fr_session *session, fr_error *error)
{
    fr_buffer text;
    int64_t start = fr_monotonic_ns();
    fr_buffer_init(&text, 0);
    fr_status status = state_text(session, &text, error);
    if (status == FR_OK)
        status = write_next(session, text.data, error);
    fr_buffer_release(&text);
    if (status != FR_OK) {
        remove_next(session);
        return status;
    }
    FR_TRY(rename_next(session, state_next, state_name, error));
    FR_TRY(rename_next(session, model_next, model_name, error));
    session->saved_step = session->totals.step;
    session->save_seconds = fmax(session->save_seconds, (double)(fr_monotonic_ns() - start) * 1e-9);
    return FR_OK;
}

/* ---- resuming ---- */

static fr_status check_same(const json_t *root, const char *key, const char *want, const char *what,
                            const char *path, fr_error *error)
{
    const char *saved;
    FR_TRY(fr_json_get_string(root, key, &saved, path, error));
    if (strcmp(saved, want) == 0)
        return FR_OK;
    return fr_error_set(error, FR_BAD_USAGE, path,
                        "resume with what the run was started with, or start a new run",
                        "the checkpoint was made with another %s", what);
}

static fr_status check_identity(const fr_session *session, const json_t *root, const char *path,
                                fr_error *error)
{
    char seed[17];
    int64_t schema;
    snprintf(seed, sizeof seed, "%016" PRIx64, session->options.seed);
    FR_TRY(fr_json_get_int(root, "schema", STATE_SCHEMA, STATE_SCHEMA, &schema, path, error));
    FR_TRY(check_same(root, "recipe_sha256", session->recipe_sha256, "recipe", path, error));
    FR_TRY(check_same(root, "data_sha256", fr_corpus_hash(session->corpus), "data folder", path, error));
    FR_TRY(check_same(root, "seed", seed, "seed", path, error));
    if (!fr_json_has(root, "clock")) /* an older frontier saved it */
        return FR_OK;
    FR_TRY(check_same(root, "program_sha256", program_of(session), "program", path, error));
    return check_same(root, "clock", fr_clock_source(session->clock), "kind of clock", path, error);
}

/* Losses are null before the first step. */
static double loss_of(const json_t *root, const char *key)
{
    double value;
    return fr_json_get_real(root, key, &value, "", NULL) == FR_OK ? value : NAN;
}

static fr_status read_totals(fr_session *session, const json_t *root, const char *path, fr_error *error)
{
    fr_run_totals *totals = &session->totals;
    FR_TRY(fr_json_get_int(root, "step", 0, INT64_MAX / 2, &totals->step, path, error));
    FR_TRY(fr_json_get_int(root, "tokens", 0, INT64_MAX / 2, &totals->tokens, path, error));
    FR_TRY(fr_json_get_real(root, "charged_s", &totals->charged, path, error));
    FR_TRY(fr_json_get_real(root, "startup_s", &totals->startup, path, error));
    totals->loss_first = loss_of(root, "loss_first");
    totals->loss_last = loss_of(root, "loss_last");
    if (!(totals->charged >= 0) || !(totals->startup >= 0) ||
        totals->step < fr_optimizer_steps(session->optimizer))
        return fr_error_set(error, FR_BAD_DATA, path, NULL, "the state of the run contradicts itself");
    return FR_OK;
}

/* Loads the weights that belong to the state, finishing a save that was cut off between its two renames. */
static fr_status load_weights(fr_session *session, const char *want, fr_error *error)
{
    char path[1024], found[17];
    fr_status status =
        fr_model_load(session->graph, session->parameters, fr_session_path(session, model_name, path), error);
    weights_checksum(session, found);
    if (status == FR_OK && strcmp(found, want) == 0)
        return FR_OK;
    fr_session_path(session, model_next, path);
    if (!fr_path_exists(path))
        return status != FR_OK
                   ? status
                   : fr_error_set(error, FR_BAD_DATA, session->options.run_folder,
                                  "restore both files from one checkpoint",
                                  "model.safetensors and optimizer.safetensors are from different steps");
    FR_TRY(fr_model_load(session->graph, session->parameters, path, error));
    weights_checksum(session, found);
    if (strcmp(found, want) != 0)
        return fr_error_set(error, FR_BAD_DATA, session->options.run_folder,
                            "restore both files from one checkpoint",
                            "no weights here belong to optimizer.safetensors");
    return session->options.rehearsal ? FR_OK : rename_next(session, model_next, model_name, error);
}

static fr_status restore_from(fr_session *session, const json_t *root, const char *path, fr_error *error)
{
    const char *rows, *checksum;
    FR_TRY(check_identity(session, root, path, error));
    FR_TRY(read_totals(session, root, path, error));
    FR_TRY(fr_json_get_string(root, "loader", &rows, path, error));
    FR_TRY(fr_json_get_string(root, "weights_checksum", &checksum, path, error));
    FR_TRY(load_weights(session, checksum, error));
    FR_TRY(fr_loader_restore(session->loader, rows, error));
    session->saved_step = session->totals.step;
    session->data_repeats = fr_loader_epochs(session->loader) > 1;
    fr_clock_restore(session->clock, session->totals.charged, session->totals.step);
    return FR_OK;
}

fr_status fr_session_restore(fr_session *session, bool *found, fr_error *error)
{
    char path[1024], *text = NULL;
    json_t *root = NULL;
    *found = fr_path_exists(fr_session_path(session, state_name, path));
    if (!*found && fr_path_exists(fr_session_path(session, model_name, path)))
        return fr_error_set(error, FR_BAD_DATA, session->options.run_folder,
                            "restore optimizer.safetensors, or start a new run in another folder",
                            "there are weights, but no optimizer.safetensors to continue them with");
    if (!*found)
        return FR_OK;
    fr_session_path(session, state_name, path);
    fr_arena arena;
    fr_arena_init(&arena, 1 << 14);
    fr_status status = fr_optimizer_load(session->optimizer, path, &arena, &text, error);
    if (status == FR_OK)
        status = fr_json_parse(&root, text, strlen(text), path, error);
    if (status == FR_OK)
        status = restore_from(session, root, path, error);
    json_decref(root);
    fr_arena_release(&arena);
    return status;
}
