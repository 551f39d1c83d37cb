/* From an item to rows of tokens and the span of each that is judged.
 *
 * A prompt is the few-shot examples, each followed by a blank line, then the item. Every prompt is
 * tokenized whole, BOS first, and the spans are found among tokens, because a tokenizer may cut the same
 * text differently in another company:
 *
 *     choice     after the longest beginning that all options share, to each one's end
 *     schema     the longest ending that all options share
 *     language   after the tokens of the prompt without its answer
 *
 * That last prompt is stripped at both ends, so the space before the answer is the answer's.
 */
#include "eval/core_text.h"

#include <string.h>

/* ---- text ------------------------------------------------------------------------------------------- */

static void append(fr_buffer *out, fr_core_text text)
{
    fr_buffer_append(out, text.bytes, text.count);
}

static void append_filled(fr_buffer *out, const fr_core_task *task, const fr_core_item *item, int option)
{
    fr_core_text delimiter = {task->delimiter, strlen(task->delimiter)}, none = {"", 0};
    bool schema = task->kind == FR_CORE_SCHEMA;
    fr_core_text part = option >= 0 ? item->options[option] : none;
    append(out, schema ? part : item->text);
    append(out, delimiter);
    append(out, schema ? item->text : part);
}

/* The examples of an item, common to all its prompts. */
static fr_status append_examples(fr_buffer *out, const fr_core_task *task, const fr_core_items *items,
                                 int64_t index, fr_error *error)
{
    int64_t *shots = fr_allocate((size_t)(task->shots + 1) * sizeof *shots);
    if (!shots)
        return fr_error_memory(error, (size_t)task->shots * sizeof *shots, "examples");
    fr_core_examples(index, items->count, task->shots, shots);
    for (int64_t i = 0; i < task->shots; i++) {
        const fr_core_item *example = &items->items[shots[i]];
        append_filled(out, task, example, example->gold);
        fr_buffer_append(out, "\n\n", 2);
    }
    fr_deallocate(shots);
    return FR_OK;
}

static fr_core_text whole(const fr_buffer *text, int option)
{
    fr_core_text all = {text->data, text->length};
    return option < 0 ? core_strip(all) : all;
}

fr_status fr_core_prompt(fr_buffer *out, const fr_core_task *task, const fr_core_items *items, int64_t index,
                         int option, fr_error *error)
{
    fr_buffer text;
    fr_buffer_init(&text, 0);
    fr_status status = append_examples(&text, task, items, index, error);
    append_filled(&text, task, &items->items[index], option);
    if (status == FR_OK && !text.failed)
        append(out, whole(&text, option));
    if (status == FR_OK && (text.failed || out->failed))
        status = fr_error_memory(error, text.length, "a prompt");
    fr_buffer_release(&text);
    return status;
}

/* ---- tokens ----------------------------------------------------------------------------------------- */

static fr_status tokenize(fr_core_row *row, fr_arena *arena, fr_core_text text, const fr_tokenizer *tokenizer,
                          fr_error *error)
{
    row->ids = fr_arena_alloc(arena, (text.count + 2) * sizeof *row->ids);
    if (!row->ids)
        return fr_error_memory(error, text.count * sizeof *row->ids, "a prompt's tokens");
    int32_t bos = fr_tokenizer_bos(tokenizer);
    int64_t front = bos >= 0;
    row->ids[0] = bos;
    row->count =
        fr_tokenizer_encode(tokenizer, text.bytes, text.count, row->ids + front, (int64_t)text.count + 1);
    if (row->count < 0)
        return fr_tokenizer_encode_error(tokenizer, text.count, "a prompt", error);
    row->count += front;
    return FR_OK;
}

/* Tokenizes the examples plus one option; `text` holds the examples and is left as it was. */
static fr_status make_row(fr_core_row *row, fr_arena *arena, fr_buffer *text, const fr_core_task *task,
                          const fr_core_item *item, int option, const fr_tokenizer *tokenizer,
                          fr_error *error)
{
    size_t examples = text->length;
    append_filled(text, task, item, option);
    if (text->failed)
        return fr_error_memory(error, text->length, "a prompt");
    fr_status status = tokenize(row, arena, whole(text, option), tokenizer, error);
    if (text->length > examples) {
        text->length = examples;
        text->data[examples] = 0;
    }
    return status;
}

static bool agree(const fr_core_rows *rows, int64_t at, bool from_end)
{
    const fr_core_row *first = &rows->rows[0];
    for (int i = 0; i < rows->count; i++) {
        const fr_core_row *row = &rows->rows[i];
        if (at >= row->count || row->ids[from_end ? row->count - 1 - at : at] !=
                                    first->ids[from_end ? first->count - 1 - at : at])
            return false;
    }
    return true;
}

static void set_spans(fr_core_rows *rows, fr_core_kind kind)
{
    int64_t shared = 0;
    while (agree(rows, shared, kind == FR_CORE_SCHEMA))
        shared++;
    for (int i = 0; i < rows->count; i++) {
        fr_core_row *row = &rows->rows[i];
        row->end = row->count;
        row->first = kind == FR_CORE_SCHEMA ? row->count - shared : shared;
        if (row->first < 1) /* nothing stands before the first token */
            row->first = row->end;
    }
}

static void set_language_span(fr_core_rows *rows, const fr_core_row *without)
{
    fr_core_row *with = &rows->rows[0];
    /* Equal ones leave nothing to judge, and nothing is no right answer. */
    rows->misaligned = without->count >= with->count || without->count < 1 ||
                       memcmp(without->ids, with->ids, (size_t)without->count * sizeof *with->ids) != 0;
    with->end = with->count;
    with->first = rows->misaligned ? with->end : without->count;
}

static void shorten(fr_core_rows *rows, int64_t most)
{
    for (int i = 0; most > 0 && i < rows->count; i++) {
        fr_core_row *row = &rows->rows[i];
        int64_t drop = row->count - most;
        if (drop <= 0)
            continue;
        rows->cut++;
        row->ids += drop;
        row->count -= drop;
        row->end -= drop;
        row->first = row->first > drop ? row->first - drop : 1;
    }
}

static fr_status fill(fr_core_rows *out, fr_arena *arena, fr_buffer *text, const fr_core_task *task,
                      const fr_core_item *item, const fr_tokenizer *tokenizer, fr_error *error)
{
    for (int i = 0; i < out->count; i++)
        FR_TRY(make_row(&out->rows[i], arena, text, task, item, i, tokenizer, error));
    if (task->kind != FR_CORE_LANGUAGE) {
        set_spans(out, task->kind);
        return FR_OK;
    }
    fr_core_row without;
    FR_TRY(make_row(&without, arena, text, task, item, -1, tokenizer, error));
    set_language_span(out, &without);
    return FR_OK;
}

fr_status fr_core_rows_make(fr_core_rows *out, fr_arena *arena, const fr_core_task *task,
                            const fr_core_items *items, int64_t index, const fr_tokenizer *tokenizer,
                            int64_t most, fr_error *error)
{
    const fr_core_item *item = &items->items[index];
    fr_buffer text;
    *out = (fr_core_rows){.count = item->option_count};
    out->rows = fr_arena_alloc(arena, (size_t)out->count * sizeof *out->rows);
    if (!out->rows)
        return fr_error_memory(error, (size_t)out->count * sizeof *out->rows, "prompts");
    fr_buffer_init(&text, 0);
    fr_status status = append_examples(&text, task, items, index, error);
    if (status == FR_OK)
        status = fill(out, arena, &text, task, item, tokenizer, error);
    fr_buffer_release(&text);
    shorten(out, most);
    return status;
}
