/* Looking for the items of a bundle in the documents of a corpus.
 *
 * All windows of all items become a sorted list of (hash, item). A filter of one bit per hash in front of it
 * answers "no" for nearly every window of a document with a single look; the rest is found by bisection. So the
 * cost is that of reading the documents, and memory is that of the items: a document is decoded, looked through
 * and forgotten.
 */
#include "frontier/scan.h"

#include "base/json.h"
#include "eval/scan_words.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FILTER_BITS = 27 };

typedef struct gram {
    uint64_t hash;
    int64_t item;
} gram;

typedef struct scanned_item {
    int task;
    int64_t line;
    int64_t document; /* the last one it was found in, counted over both splits from 1 */
    bool found;
} scanned_item;

typedef struct scan {
    const fr_corpus *corpus;
    const fr_scan_options *options;
    fr_scan_result *result;
    gram *grams;
    scanned_item *items;
    int64_t gram_count, gram_capacity, item_count, item_capacity;
    bool lengths[SCAN_MOST_WORDS + 1]; /* windows in use */
    scan_window *windows;
    int window_count;
    uint64_t *filter;
    int64_t document;
    int32_t *ids;
    int64_t ids_capacity;
    fr_buffer text;
    fr_file_writer *writer;
} scan;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *room(void *array, int64_t count, int64_t *capacity, size_t item)
{
    if (count < *capacity)
        return array;
    int64_t wanted = *capacity ? 2 * *capacity : 1024;
    void *bigger = fr_reallocate(array, (size_t)wanted * item);
    if (bigger)
        *capacity = wanted;
    return bigger;
}

/* ---- items -------------------------------------------------------------------------------------------- */

static fr_status add_gram(scan *s, uint64_t hash, fr_error *error)
{
    gram *grams = room(s->grams, s->gram_count, &s->gram_capacity, sizeof *grams);
    if (!grams)
        return fr_error_memory(error, (size_t)s->gram_capacity * 2 * sizeof *grams, "evaluation text");
    s->grams = grams;
    s->grams[s->gram_count++] = (gram){hash, s->item_count};
    return FR_OK;
}

/* Windows of an item: of `words` words, or of all it has. False in *told when it has too few. */
static fr_status add_windows(scan *s, const fr_buffer *text, bool *told, fr_error *error)
{
    scan_reader reader = {text->data ? text->data : "", text->length, 0};
    scan_word word;
    scan_window window;
    int count = 0, words = s->result->words;
    while (count < words && scan_next_word(&reader, &word))
        count++;
    *told = count >= FR_SCAN_LEAST_WORDS || count == words;
    if (!*told)
        return FR_OK;
    reader.at = 0;
    scan_window_init(&window, count);
    s->lengths[count] = true;
    while (scan_next_word(&reader, &word))
        if (scan_window_add(&window, &word))
            FR_TRY(add_gram(s, scan_window_hash(&window), error));
    return FR_OK;
}

/* What it says with its right answer. */
static void item_text(const fr_core_task *task, const fr_core_item *item, fr_buffer *text)
{
    const fr_core_text *answer = &item->options[item->gold];
    const fr_core_text *first = task->kind == FR_CORE_SCHEMA ? answer : &item->text;
    const fr_core_text *second = task->kind == FR_CORE_SCHEMA ? &item->text : answer;
    fr_buffer_clear(text);
    fr_buffer_append(text, first->bytes, first->count);
    fr_buffer_append(text, task->delimiter, strlen(task->delimiter));
    fr_buffer_append(text, second->bytes, second->count);
}

static fr_status add_item(scan *s, int task, const fr_core_items *items, int64_t index, fr_error *error)
{
    fr_scan_task *t = &s->result->tasks[task];
    scanned_item *list = room(s->items, s->item_count, &s->item_capacity, sizeof *list);
    bool told;
    if (!list)
        return fr_error_memory(error, (size_t)s->item_capacity * 2 * sizeof *list, "items");
    s->items = list;
    item_text(t->task, &items->items[index], &s->text);
    if (s->text.failed)
        return fr_error_memory(error, s->text.length, "an item");
    FR_TRY(add_windows(s, &s->text, &told, error));
    list[s->item_count++] = (scanned_item){.task = task, .line = items->items[index].line};
    t->items++;
    t->short_items += !told;
    return FR_OK;
}

static fr_status add_task(scan *s, int task, fr_error *error)
{
    fr_core_task plain = *s->result->tasks[task].task;
    fr_core_items items;
    plain.shots = 0; /* few items are enough here */
    FR_TRY(fr_core_items_load(&items, &plain, 0, error));
    fr_status status = FR_OK;
    for (int64_t i = 0; status == FR_OK && i < items.count; i++)
        status = add_item(s, task, &items, i, error);
    fr_core_items_release(&items);
    return status;
}

static int by_hash(const void *left, const void *right)
{
    const gram *a = left, *b = right;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* Sorted, every (hash, item) once, without what too many items share; and the filter over the rest. */
static fr_status sort_grams(scan *s, fr_error *error)
{
    size_t bytes = ((size_t)1 << FILTER_BITS) / 8;
    int64_t kept = 0;
    qsort(s->grams, (size_t)s->gram_count, sizeof *s->grams, by_hash);
    for (int64_t at = 0, end; at < s->gram_count; at = end) {
        int64_t first = kept;
        for (end = at; end < s->gram_count && s->grams[end].hash == s->grams[at].hash; end++)
            if (end == at || s->grams[end].item != s->grams[end - 1].item)
                s->grams[kept++] = s->grams[end];
        if (kept - first > FR_SCAN_MOST_ITEMS)
            kept = first;
    }
    s->gram_count = kept;
    s->filter = fr_allocate(bytes);
    if (!s->filter)
        return fr_error_memory(error, bytes, "a scan");
    for (int64_t i = 0; i < kept; i++) {
        uint64_t bit = s->grams[i].hash >> (64 - FILTER_BITS);
        s->filter[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    return FR_OK;
}

static fr_status load_items(scan *s, const fr_core_bundle *bundle, fr_error *error)
{
    fr_scan_result *r = s->result;
    int count = fr_core_bundle_tasks(bundle);
    r->tasks = fr_arena_alloc(&r->arena, (size_t)(count + 1) * sizeof *r->tasks);
    if (!r->tasks)
        return fr_error_memory(error, (size_t)count * sizeof *r->tasks, "tasks");
    for (int i = 0; i < count; i++) {
        const fr_core_task *task = fr_core_bundle_task(bundle, i);
        if (!task->present) {
            r->missing++;
            continue;
        }
        r->tasks[r->task_count++] = (fr_scan_task){.task = task};
        FR_TRY(add_task(s, r->task_count - 1, error));
    }
    FR_TRY(sort_grams(s, error));
    s->windows = fr_arena_alloc(&r->arena, (SCAN_MOST_WORDS + 1) * sizeof *s->windows);
    if (!s->windows)
        return fr_error_memory(error, SCAN_MOST_WORDS * sizeof *s->windows, "a scan");
    for (int words = 1; words <= SCAN_MOST_WORDS; words++)
        if (s->lengths[words])
            scan_window_init(&s->windows[s->window_count++], words);
    return FR_OK;
}

/* ---- documents ---------------------------------------------------------------------------------------- */

static int64_t first_of(const scan *s, uint64_t hash)
{
    int64_t low = 0, high = s->gram_count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s->grams[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void see_find(scan *s, int64_t item, const scan_window *window, size_t end, fr_scan_document *d)
{
    scanned_item *found = &s->items[item];
    if (found->document == s->document)
        return;
    found->document = s->document;
    s->result->tasks[found->task].found += !found->found;
    s->result->found += !found->found;
    found->found = true;
    if (d->items++ == 0) {
        size_t start = scan_window_start(window), length = end - start;
        d->task = found->task;
        d->line = found->line;
        snprintf(d->text, sizeof d->text, "%.*s", (int)(length < 190 ? length : 190), s->text.data + start);
    }
}

static void look_through(scan *s, fr_scan_document *d)
{
    scan_reader reader = {s->text.data ? s->text.data : "", s->text.length, 0};
    scan_word word;
    for (int i = 0; i < s->window_count; i++)
        s->windows[i].seen = (int64_t)(s->windows[i].sum = 0);
    while (scan_next_word(&reader, &word))
        for (int i = 0; i < s->window_count; i++) {
            if (!scan_window_add(&s->windows[i], &word))
                continue;
            uint64_t hash = scan_window_hash(&s->windows[i]), bit = hash >> (64 - FILTER_BITS);
            if (!(s->filter[bit / 64] >> bit % 64 & 1))
                continue;
            for (int64_t g = first_of(s, hash); g < s->gram_count && s->grams[g].hash == hash; g++)
                see_find(s, s->grams[g].item, &s->windows[i], word.end, d);
        }
}

static void keep_example(fr_scan_result *r, const fr_scan_document *d)
{
    int at = r->example_count < FR_SCAN_EXAMPLES ? r->example_count++ : FR_SCAN_EXAMPLES;
    while (at > 0 && r->examples[at - 1].items < d->items) {
        if (at < FR_SCAN_EXAMPLES)
            r->examples[at] = r->examples[at - 1];
        at--;
    }
    if (at < FR_SCAN_EXAMPLES)
        r->examples[at] = *d;
}

static fr_status write_document(const scan *s, const fr_scan_document *d, fr_error *error)
{
    json_t *line = json_object();
    bool good = fr_json_set_string(line, "split", d->split == FR_TRAIN ? "train" : "valid") &&
                fr_json_set_int(line, "document", d->document) && fr_json_set_int(line, "items", d->items) &&
                fr_json_set_string(line, "task", s->result->tasks[d->task].task->label) &&
                fr_json_set_int(line, "line", d->line) && fr_json_set_string(line, "text", d->text);
    char *text = good ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    if (!text)
        return fr_error_memory(error, sizeof d->text, "a line of finds");
    fr_file_writer_append(s->writer, text, strlen(text));
    fr_file_writer_append(s->writer, "\n", 1);
    free(text);
    return FR_OK;
}

static fr_status read_document(scan *s, fr_corpus_split split, int64_t index, fr_error *error)
{
    int64_t count = fr_corpus_document_tokens(s->corpus, split, index);
    if (count > s->ids_capacity) {
        int32_t *ids = fr_reallocate(s->ids, (size_t)count * sizeof *ids);
        if (!ids)
            return fr_error_memory(error, (size_t)count * sizeof *ids, "a document");
        s->ids = ids;
        s->ids_capacity = count;
    }
    count = fr_corpus_document(s->corpus, split, index, s->ids, s->ids_capacity);
    fr_buffer_clear(&s->text);
    return fr_tokenizer_decode(fr_corpus_tokenizer(s->corpus), s->ids, count, false, &s->text, error);
}

static fr_status scan_split(scan *s, fr_corpus_split split, fr_error *error)
{
    int64_t count = fr_corpus_documents(s->corpus, split);
    for (int64_t i = 0; i < count; i++) {
        fr_scan_document d = {.split = split, .document = i};
        s->document++;
        if (i % 64 == 0)
            fr_progress_update(s->options->progress, "scan", (double)i, (double)count, NULL);
        if (fr_progress_stop(s->options->progress))
            return fr_error_set(error, FR_STOPPED, "scan", NULL, "stopped by request");
        FR_TRY(read_document(s, split, i, error));
        look_through(s, &d);
        if (!d.items)
            continue;
        s->result->documents++;
        keep_example(s->result, &d);
        if (s->writer)
            FR_TRY(write_document(s, &d, error));
    }
    s->result->scanned += count;
    return FR_OK;
}

/* ---- all ---------------------------------------------------------------------------------------------- */

static fr_status run(scan *s, const fr_core_bundle *bundle, fr_error *error)
{
    FR_TRY(load_items(s, bundle, error));
    s->result->items = s->item_count;
    if (s->options->train)
        FR_TRY(scan_split(s, FR_TRAIN, error));
    return s->options->valid ? scan_split(s, FR_VALID, error) : FR_OK;
}

static fr_status run_written(scan *s, const fr_core_bundle *bundle, fr_error *error)
{
    fr_file_writer writer;
    if (!s->options->documents_path)
        return run(s, bundle, error);
    FR_TRY(fr_file_writer_begin(&writer, s->options->documents_path, error));
    s->writer = &writer;
    fr_status status = run(s, bundle, error);
    if (status == FR_OK)
        return fr_file_writer_commit(&writer, error);
    fr_file_writer_abort(&writer);
    return status;
}

fr_status fr_scan(const fr_corpus *corpus, const fr_core_bundle *bundle, const fr_scan_options *options,
                  fr_scan_result **out, fr_error *error)
{
    double start = now();
    int words = options->words ? options->words : FR_SCAN_WORDS;
    *out = NULL;
    if (words < FR_SCAN_LEAST_WORDS || words > SCAN_MOST_WORDS || (!options->train && !options->valid))
        return fr_error_set(error, FR_BAD_USAGE, "scan", NULL, "windows of %d to %d words, of some split",
                            FR_SCAN_LEAST_WORDS, SCAN_MOST_WORDS);
    fr_scan_result *result = fr_allocate(sizeof *result);
    if (!result)
        return fr_error_memory(error, sizeof *result, "a scan");
    fr_arena_init(&result->arena, 1 << 14);
    result->words = words;
    scan s = {.corpus = corpus, .options = options, .result = result};
    fr_buffer_init(&s.text, 0);
    fr_status status = run_written(&s, bundle, error);
    fr_deallocate(s.grams);
    fr_deallocate(s.items);
    fr_deallocate(s.filter);
    fr_deallocate(s.ids);
    fr_buffer_release(&s.text);
    result->seconds = now() - start;
    if (status == FR_OK)
        *out = result;
    else
        fr_scan_result_free(result);
    return status;
}

void fr_scan_result_free(fr_scan_result *result)
{
    if (!result)
        return;
    fr_arena_release(&result->arena);
    fr_deallocate(result);
}
