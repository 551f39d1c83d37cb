/* import_reader.c: cutting files into records without holding files.
 *
 * A window slides over the decompressed bytes; how a record ends depends on the format and the split, one small
 * function each. The window grows to the longest record and no further than 256 MiB: a line that never
 * ends, or a few kilobytes that decompress to terabytes without a line end, become an error and not a dead
 * machine. Scanning resumes where it stopped, so a giant line costs linear time. Records are copied
 * into a batch of a few megabytes: the unit that threads share and the bound on memory.
 */
#include "text/import_reader.h"

#include "text/import_report.h"

#include <string.h>

enum { MOST_RECORD = 256 << 20, WINDOW = 1 << 20, BATCH_BYTES = 4 << 20, BATCH_RECORDS = 16384, AUTO_FILES = 20, AUTO_BLOCK = 4096 };

/* ---- batch ---- */

void import_batch_release(import_batch *batch)
{
    fr_deallocate(batch->text);
    fr_deallocate(batch->records);
    memset(batch, 0, sizeof *batch);
}

static fr_status batch_reserve(import_batch *batch, size_t bytes, fr_error *error)
{
    if (batch->bytes + bytes > batch->capacity) {
        size_t capacity = batch->bytes + bytes + BATCH_BYTES;
        char *text = fr_reallocate(batch->text, capacity);
        if (!text)
            return fr_error_memory(error, capacity, "a batch of documents");
        batch->text = text;
        batch->capacity = capacity;
    }
    if (batch->count == batch->record_capacity) {
        int64_t capacity = batch->record_capacity * 2 + 256;
        import_record *records = fr_reallocate(batch->records, (size_t)capacity * sizeof *records);
        if (!records)
            return fr_error_memory(error, (size_t)capacity * sizeof *records, "a batch of documents");
        batch->records = records;
        batch->record_capacity = capacity;
    }
    return FR_OK;
}

/* ---- where a record ends ---- */

typedef struct record_span {
    size_t bytes, next; /* from the window's start: length of the record, start of the next */
    bool found;
} record_span;

static bool is_blank(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return false;
    return true;
}

/* The line that begins `from` beyond start: its end without line break; false when more bytes are needed. */
static bool find_line(import_reader *reader, size_t from, size_t *end, size_t *next)
{
    const char *text = reader->window + reader->start;
    size_t have = reader->end - reader->start, at = reader->scanned > from ? reader->scanned : from;
    const char *newline = at < have ? memchr(text + at, '\n', have - at) : NULL;
    if (newline) {
        *end = (size_t)(newline - text);
        *next = *end + 1;
        return true;
    }
    reader->scanned = have;
    *end = *next = have;
    return reader->at_end && have > from;
}

static record_span end_of_line(import_reader *reader)
{
    size_t end, next;
    if (!find_line(reader, 0, &end, &next))
        return (record_span){0, 0, false};
    const char *text = reader->window + reader->start;
    if (is_blank(text, end)) /* a separator, no record */
        end = 0;
    else if (next > end && end > 0 && text[end - 1] == '\r')
        end--;
    return (record_span){end, next, true};
}

/* Lines up to a blank one, or on over blank ones until there are split_bytes of text. */
static record_span end_of_block(import_reader *reader)
{
    size_t end, next;
    while (find_line(reader, reader->line_start, &end, &next)) {
        const char *text = reader->window + reader->start;
        size_t from = reader->line_start;
        bool blank = is_blank(text + from, end - from);
        bool full = blank && (reader->content == 0 || reader->content >= reader->split_bytes);
        if (!blank)
            reader->content = end;
        if (full)
            return (record_span){reader->content, next, true};
        reader->line_start = next;
    }
    if (!reader->at_end)
        return (record_span){0, 0, false};
    return (record_span){reader->content, reader->end - reader->start, true};
}

static record_span end_of_piece(import_reader *reader)
{
    size_t have = reader->end - reader->start, cut = reader->split_bytes;
    const char *text = reader->window + reader->start;
    if (have <= cut)
        return (record_span){have, have, reader->at_end};
    for (int i = 0; i < 3 && cut > 0 && ((uint8_t)text[cut] & 0xC0) == 0x80; i++)
        cut--;
    cut = cut == 0 || ((uint8_t)text[cut] & 0xC0) == 0x80 ? reader->split_bytes : cut;
    return (record_span){cut, cut, true};
}

static record_span end_of_file(import_reader *reader)
{
    size_t have = reader->end - reader->start;
    return (record_span){have, have, reader->at_end};
}

static record_span find_record(import_reader *reader)
{
    if (reader->files->list[reader->file].format == IMPORT_JSONL)
        return end_of_line(reader);
    switch (reader->split) {
    case FR_SPLIT_LINES: return end_of_line(reader);
    case FR_SPLIT_BYTES: return end_of_piece(reader);
    case FR_SPLIT_BLANK_LINES: return end_of_block(reader);
    default: return end_of_file(reader);
    }
}

/* ---- the window ---- */

static fr_status window_room(import_reader *reader, fr_error *error)
{
    if (reader->start > 0) {
        memmove(reader->window, reader->window + reader->start, reader->end - reader->start);
        reader->end -= reader->start;
        reader->start = 0;
    }
    if (reader->capacity - reader->end >= WINDOW / 2)
        return FR_OK;
    if (reader->end >= MOST_RECORD)
        return fr_error_set(error, FR_BAD_DATA, reader->files->list[reader->file].path,
                            "--split makes smaller documents of a text file", "line %lld: a document or line of more than %d MiB",
                            (long long)reader->line, MOST_RECORD >> 20);
    size_t capacity = reader->capacity ? reader->capacity * 2 : WINDOW;
    char *window = fr_reallocate(reader->window, capacity);
    if (!window)
        return fr_error_memory(error, capacity, "a document");
    reader->window = window;
    reader->capacity = capacity;
    return FR_OK;
}

/* UTF-16 read as bytes would be a text of NULs; its mark says what it is. */
static fr_status refuse_utf16(const import_reader *reader, fr_error *error)
{
    const char *text = reader->window + reader->start;
    bool marked = reader->end - reader->start >= 2 &&
                  (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0);
    if (!marked)
        return FR_OK;
    return fr_error_set(error, FR_BAD_DATA, reader->files->list[reader->file].path,
                        "convert it: iconv -f UTF-16 -t UTF-8 FILE", "the file is UTF-16, text must be UTF-8");
}

static fr_status skip_mark(import_reader *reader, fr_error *error)
{
    bool ended = reader->at_end || reader->source.truncated;
    if (reader->started || (reader->end - reader->start < 3 && !ended))
        return FR_OK;
    reader->started = true;
    FR_TRY(refuse_utf16(reader, error));
    if (reader->end - reader->start >= 3 && memcmp(reader->window + reader->start, "\xEF\xBB\xBF", 3) == 0) {
        reader->start += 3;
        if (reader->summary)
            import_report(reader->summary, FR_IMPORT_BOM, reader->files->list[reader->file].path, 1);
    }
    return FR_OK;
}

static fr_status fill(import_reader *reader, fr_error *error)
{
    size_t got;
    FR_TRY(window_room(reader, error));
    FR_TRY(import_source_read(&reader->source, reader->window + reader->end, reader->capacity - reader->end, &got, error));
    reader->end += got;
    reader->at_end = got == 0 && !reader->source.truncated;
    return skip_mark(reader, error);
}

static int64_t count_lines(const char *text, size_t bytes)
{
    int64_t lines = 0;
    const char *at = text, *end = text + bytes;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        lines++;
        at++;
    }
    return lines;
}

static void advance(import_reader *reader, size_t bytes)
{
    reader->line += count_lines(reader->window + reader->start, bytes);
    reader->start += bytes;
    reader->scanned = reader->content = reader->line_start = 0;
}

/* ---- files ---- */

static fr_status open_file(import_reader *reader, fr_error *error)
{
    const import_file *file = &reader->files->list[reader->file];
    if (file->format == IMPORT_PARQUET)
        FR_TRY(import_parquet_open(&reader->parquet, reader->library, file->path, reader->column, error));
    else
        FR_TRY(import_source_open(&reader->source, file->path, file->compression, error));
    reader->open = true;
    reader->started = reader->at_end = false;
    reader->start = reader->end = 0;
    reader->scanned = reader->content = reader->line_start = 0;
    reader->line = 1;
    reader->found = 0;
    return FR_OK;
}

static void close_file(import_reader *reader)
{
    const import_file *file = &reader->files->list[reader->file];
    if (reader->summary && reader->source.truncated)
        import_report(reader->summary, FR_IMPORT_TRUNCATED, file->path, reader->line);
    else if (reader->summary && reader->found == 0)
        import_report(reader->summary, FR_IMPORT_EMPTY, file->path, 1);
    import_source_close(&reader->source);
    import_parquet_close(&reader->parquet);
    reader->done_bytes += file->bytes;
    reader->open = false;
    reader->file++;
}

static fr_status append_record(import_reader *reader, const char *text, size_t bytes, import_batch *batch, fr_error *error)
{
    FR_TRY(batch_reserve(batch, bytes, error));
    batch->records[batch->count++] = (import_record){batch->bytes, bytes, reader->file, reader->line};
    memcpy(batch->text + batch->bytes, text, bytes);
    batch->bytes += bytes;
    return FR_OK;
}

static fr_status emit(import_reader *reader, const record_span *span, import_batch *batch, fr_error *error)
{
    if (span->bytes > 0) {
        FR_TRY(append_record(reader, reader->window + reader->start, span->bytes, batch, error));
        reader->found++;
    }
    advance(reader, span->next);
    return FR_OK;
}

/* One row of a .parquet. Rows without text never become records: they are counted here. */
static fr_status step_row(import_reader *reader, import_batch *batch, fr_error *error)
{
    const char *text, *path = reader->files->list[reader->file].path;
    size_t bytes;
    bool found;
    FR_TRY(import_parquet_next(&reader->parquet, &found, &text, &bytes, error));
    if (!found) {
        close_file(reader);
        return FR_OK;
    }
    reader->found++;
    reader->line = reader->parquet.row;
    if (bytes > MOST_RECORD)
        return fr_error_set(error, FR_BAD_DATA, path, "leave it out", "row %lld: a document of more than %d MiB",
                            (long long)reader->line, MOST_RECORD >> 20);
    if (bytes > 0)
        return append_record(reader, text, bytes, batch, error);
    if (reader->summary)
        import_report(reader->summary, text ? FR_IMPORT_EMPTY : FR_IMPORT_NULL_TEXT, path, reader->line);
    return FR_OK;
}

/* One step: a record, more bytes, or the end of the file. What a cut file leaves after its last whole record is
 * dropped, however complete it looks. */
static fr_status step(import_reader *reader, import_batch *batch, fr_error *error)
{
    if (reader->files->list[reader->file].format == IMPORT_PARQUET)
        return step_row(reader, batch, error);
    record_span span = {0, 0, false};
    bool empty = reader->start == reader->end;
    if (reader->started && !empty)
        span = find_record(reader);
    if (span.found)
        return emit(reader, &span, batch, error);
    if (!reader->source.truncated && !(reader->at_end && empty))
        return fill(reader, error);
    close_file(reader);
    return FR_OK;
}

void import_reader_init(import_reader *reader, const import_files *files, const fr_import_options *options,
                        const duckdb_library *library, fr_import_summary *summary)
{
    fr_split_kind split = options->split;
    memset(reader, 0, sizeof *reader);
    reader->files = files;
    reader->summary = summary;
    reader->column = options->column;
    reader->library = library;
    int64_t texts = 0;
    for (int64_t i = 0; i < files->count; i++)
        texts += files->list[i].format == IMPORT_TEXT;
    bool blocks = split == FR_SPLIT_AUTO && texts < AUTO_FILES;
    reader->split = split != FR_SPLIT_AUTO ? split : blocks ? FR_SPLIT_BLANK_LINES : FR_SPLIT_FILE;
    reader->split_bytes = split == FR_SPLIT_AUTO ? AUTO_BLOCK : (size_t)options->split_bytes;
}

fr_status import_reader_next(import_reader *reader, import_batch *batch, fr_error *error)
{
    batch->bytes = 0;
    batch->count = 0;
    while (reader->file < reader->files->count && batch->bytes < BATCH_BYTES && batch->count < BATCH_RECORDS) {
        if (!reader->open)
            FR_TRY(open_file(reader, error));
        FR_TRY(step(reader, batch, error));
    }
    return FR_OK;
}

int64_t import_reader_done(const import_reader *reader)
{
    if (!reader->open)
        return reader->done_bytes;
    const import_parquet *parquet = &reader->parquet;
    double share = parquet->rows > 0 ? (double)parquet->row / (double)parquet->rows : 0;
    return reader->done_bytes + reader->source.read_bytes + (int64_t)(share * (double)reader->files->list[reader->file].bytes);
}

void import_reader_release(import_reader *reader)
{
    import_source_close(&reader->source);
    import_parquet_close(&reader->parquet);
    fr_deallocate(reader->window);
    memset(reader, 0, sizeof *reader);
}
