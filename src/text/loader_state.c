/* loader_state.c: a loader's state as JSON, and back.
 *
 * Saved are document numbers and positions, never text: a state of a few kilobytes that a checkpoint can
 * carry. It names the corpus by hash and repeats the options that decide rows, and restoring checks them:
 * rows that silently differ after a resume would be worse than an error. Everything read back is
 * checked against the corpus, because a checkpoint may come from anywhere.
 */
#include "text/loader.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_SCHEMA = 1 };
static const char state_origin[] = "loader state";
static const char damaged_hint[] = "the saved state was altered or belongs to another program version";

/* ---- saving ---- */

/* The options that decide rows; prefetch does not. */
static json_t *format_options(const packer *packing)
{
    const fr_loader_options *options = &packing->options;
    char seed[17];
    snprintf(seed, sizeof seed, "%016llx", (unsigned long long)options->seed);
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:b, s:s}", "corpus", fr_corpus_hash(packing->corpus), "split",
                     options->split == FR_TRAIN ? "train" : "valid", "packing",
                     options->packing == FR_PACK_BEST_FIT ? "best-fit" : "stream", "context", (json_int_t)options->context,
                     "buffer", (json_int_t)options->buffer, "pool_rows", (json_int_t)options->pool_rows, "documents",
                     (json_int_t)options->documents, "once", options->once, "mask_bos_target", options->mask_bos_target,
                     "seed", seed);
}

static int append_integer(json_t *array, int64_t value)
{
    return json_array_append_new(array, json_integer((json_int_t)value));
}

static json_t *format_buffer(const packer *packing)
{
    json_t *array = json_array();
    int failures = 0;
    for (int64_t i = 0; i < packing->count; i++)
        failures |= append_integer(array, packing->entries[i].sequence);
    if (failures == 0)
        return array;
    json_decref(array);
    return NULL;
}

/* [consumed, sequence, start, count, sequence, start, count, ...] */
static json_t *format_row(const packed_row *row)
{
    json_t *array = json_array();
    int failures = append_integer(array, row->consumed);
    for (int64_t i = 0; i < row->count; i++) {
        failures |= append_integer(array, row->pieces[i].sequence);
        failures |= append_integer(array, row->pieces[i].start);
        failures |= append_integer(array, row->pieces[i].count);
    }
    if (failures == 0)
        return array;
    json_decref(array);
    return NULL;
}

static json_t *format_pool(const row_source *source)
{
    json_t *array = json_array();
    int failures = 0;
    for (int64_t i = 0; i < source->pool_count; i++)
        failures |= json_array_append_new(array, format_row(&source->pool[i]));
    if (failures == 0)
        return array;
    json_decref(array);
    return NULL;
}

static bool put_all(json_t *root, const row_source *source)
{
    const packer *packing = &source->packing;
    int failures = json_object_set_new(root, "schema", json_integer(STATE_SCHEMA));
    failures |= json_object_set_new(root, "options", format_options(packing));
    failures |= json_object_set_new(root, "row", json_integer((json_int_t)source->row));
    failures |= json_object_set_new(root, "consumed", json_integer((json_int_t)source->consumed));
    failures |= json_object_set_new(root, "next_row", json_integer((json_int_t)packing->next_row));
    failures |= json_object_set_new(root, "next_sequence", json_integer((json_int_t)packing->next_sequence));
    failures |= json_object_set_new(root, "buffer", format_buffer(packing));
    failures |= json_object_set_new(root, "pool", format_pool(source));
    return failures == 0;
}

static fr_status save_source(const row_source *source, fr_arena *arena, char **json, fr_error *error)
{
    json_t *root = json_object();
    char *text = root && put_all(root, source) ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    *json = text ? fr_arena_strdup(arena, text) : NULL;
    free(text);
    return *json ? FR_OK : fr_error_memory(error, 0, "the loader's state");
}

fr_status fr_loader_save(const fr_loader *loader, fr_arena *arena, char **json, fr_error *error)
{
    return save_source(&loader->source, arena, json, error);
}

static fr_status advance_to(row_source *source, int64_t row, fr_error *error)
{
    packed_row plan = {0};
    fr_status status = FR_OK;
    while (source->row < row && status == FR_OK) {
        status = row_source_next(source, &plan, error);
        if (status == FR_OK && plan.count == 0)
            status = fr_error_set(error, FR_BAD_USAGE, "loader", NULL, "the data ends before row %lld", (long long)row);
    }
    packed_row_release(&plan);
    return status;
}

/* A state is a function of corpus, options and row number, so an earlier one is found again by counting up from
 * zero; only plans are made on the way. */
fr_status fr_loader_save_row(const fr_loader *loader, int64_t row, fr_arena *arena, char **json, fr_error *error)
{
    if (row == loader->source.row)
        return fr_loader_save(loader, arena, json, error);
    row_source source;
    FR_TRY(row_source_init(&source, loader->source.packing.corpus, &loader->source.packing.options, error));
    fr_status status = advance_to(&source, row, error);
    if (status == FR_OK)
        status = save_source(&source, arena, json, error);
    row_source_release(&source);
    return status;
}

/* ---- restoring ---- */

static fr_status damaged(fr_error *error, const char *key)
{
    return fr_error_set(error, FR_BAD_DATA, state_origin, damaged_hint, "'%s' is missing or makes no sense", key);
}

static fr_status get_count(const json_t *root, const char *key, int64_t *out, fr_error *error)
{
    const json_t *value = json_object_get(root, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) >> 56)
        return damaged(error, key);
    *out = json_integer_value(value);
    return FR_OK;
}

/* Names the first option that differs. */
static fr_status check_options(const json_t *root, const packer *packing, fr_error *error)
{
    json_t *own = format_options(packing);
    const json_t *saved = json_object_get(root, "options");
    if (!own)
        return fr_error_memory(error, 0, "the loader's state");
    fr_status status = FR_OK;
    const char *key;
    json_t *value;
    json_object_foreach(own, key, value)
        if (status == FR_OK && !json_equal(value, json_object_get(saved, key)))
            status = fr_error_set(error, FR_BAD_USAGE, state_origin, "resume with the data and settings of the saved run",
                                  "the saved state has another '%s'", key);
    json_decref(own);
    return status;
}

static fr_status parse_buffer(const json_t *root, packer *packing, fr_error *error)
{
    const json_t *array = json_object_get(root, "buffer");
    if (!json_is_array(array) || (int64_t)json_array_size(array) > packing->capacity)
        return damaged(error, "buffer");
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *value = json_array_get(array, i);
        json_int_t sequence = json_is_integer(value) ? json_integer_value(value) : -1;
        if (sequence < 0 || sequence >= packing->next_sequence || !packer_insert(packing, sequence))
            return damaged(error, "buffer");
    }
    return FR_OK;
}

static bool piece_exists(const packer *packing, const packed_piece *piece)
{
    if (piece->sequence < 0 || piece->start < 0 || piece->count < 1)
        return false;
    int64_t length = fr_corpus_document_tokens(packing->corpus, packing->options.split, piece->sequence % packing->documents);
    return piece->start < length && piece->count <= length - piece->start;
}

static int64_t integer_at(const json_t *array, size_t index)
{
    const json_t *value = json_array_get(array, index);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static fr_status parse_row(const json_t *array, const packer *packing, packed_row *row, fr_error *error)
{
    int64_t room = packing->options.context + 1;
    size_t size = json_array_size(array);
    row->consumed = integer_at(array, 0);
    if (!json_is_array(array) || size < 4 || size % 3 != 1 || row->consumed < 0 || row->consumed >> 48)
        return damaged(error, "pool");
    for (size_t i = 1; i < size; i += 3) {
        packed_piece piece = {integer_at(array, i), integer_at(array, i + 1), integer_at(array, i + 2)};
        if (!piece_exists(packing, &piece) || piece.count > room)
            return damaged(error, "pool");
        room -= piece.count;
        FR_TRY(packed_row_add(row, piece, error));
    }
    return FR_OK;
}

static fr_status parse_pool(const json_t *root, row_source *source, fr_error *error)
{
    const json_t *array = json_object_get(root, "pool");
    int64_t most = source->pool ? source->packing.options.pool_rows : 0;
    if (!json_is_array(array) || (int64_t)json_array_size(array) > most)
        return damaged(error, "pool");
    for (size_t i = 0; i < json_array_size(array); i++) {
        FR_TRY(parse_row(json_array_get(array, i), &source->packing, &source->pool[i], error));
        source->pool_count++;
    }
    return FR_OK;
}

static fr_status parse_source(const json_t *root, row_source *source, fr_error *error)
{
    packer *packing = &source->packing;
    if (json_integer_value(json_object_get(root, "schema")) != STATE_SCHEMA)
        return fr_error_set(error, FR_BAD_DATA, state_origin, damaged_hint, "not a loader state of schema %d", STATE_SCHEMA);
    FR_TRY(check_options(root, packing, error));
    FR_TRY(get_count(root, "row", &source->row, error));
    FR_TRY(get_count(root, "consumed", &source->consumed, error));
    FR_TRY(get_count(root, "next_row", &packing->next_row, error));
    FR_TRY(get_count(root, "next_sequence", &packing->next_sequence, error));
    if (packing->next_row > INT64_MAX / 2 / packing->options.context)
        return damaged(error, "next_row");
    if (packing->options.once && packing->next_sequence > packing->documents)
        return damaged(error, "next_sequence");
    FR_TRY(parse_buffer(root, packing, error));
    return parse_pool(root, source, error);
}

fr_status fr_loader_restore(fr_loader *loader, const char *json, fr_error *error)
{
    json_error_t problem;
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &problem);
    if (!root)
        return fr_error_set(error, FR_BAD_DATA, state_origin, damaged_hint, "line %d: %s", problem.line, problem.text);
    const packer *own = &loader->source.packing;
    row_source source;
    fr_status status = row_source_init(&source, own->corpus, &own->options, error);
    if (status == FR_OK) {
        status = parse_source(root, &source, error);
        if (status == FR_OK)
            status = loader_replace(loader, &source, error);
        row_source_release(&source);
    }
    json_decref(root);
    return status;
}
