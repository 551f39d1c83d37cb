/* src/report/neuron_page.c: a kernel's time as one HTML file to look into: timeline, memory, source.
 *
 * The page is style, a head with the numbers, and data in JSON that the script (timeline_script.c) draws:
 *     total, rows, names, sources [file, line], files {name, text or null}, stalls,
 *     events: 7 numbers each: row, start, length, name, source, stall, time waited (ns)
 *     memory: {name, limit, points: time, bytes, time, bytes ...}
 * Events are streamed to the file as the timing pass tells them. Past EVENTS of them the page stops growing
 * and says so: a browser would not draw more. Texts of source files are read when the page is written; a
 * file that is gone is listed by its line numbers.
 */
#include "frontier/report.h"
#include "report/timeline.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS = 200000, ROWS = 2 * 2 * FR_NEURON_DMA, SOURCE_BYTES = 1 << 20 };

typedef struct life { /* of a tensor, found by its records */
    int64_t first, last;
    uint32_t bytes;
} life;

typedef struct change {
    double at;
    int64_t bytes;
    int which; /* 2 * core + PSUM */
} change;

typedef struct page {
    const fr_neuron *core;
    fr_file_writer writer;
    fr_arena arena;
    life *lives;
    uint32_t tensors;
    change *changes;
    int64_t change_count, change_room;
    int64_t events, left_out;
    uint32_t *source_number; /* by source of the records: number in the page + 1 */
    uint32_t source_room, source_count;
    uint32_t *sources; /* by number in the page */
    const char **files;
    int file_count;
} page;

static const char *const stall_texts[FR_NEURON_STALLS] = {
    "nothing",      "a result of another engine", "a buffer still in use",
    "a transfer",   "a PSUM bank or port",        "an activation table",
    "the throttle", "the DMA queue or HBM"};

/* ---- text ----------------------------------------------------------------------------------------- */

static void put(page *p, const char *text)
{
    fr_file_writer_append(&p->writer, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void print(page *p, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put(p, text);
}

/* A JSON string that no HTML parser can misread: '<' and everything beyond ASCII is escaped. UTF-8 of the
 * basic plane is decoded; other bytes become U+FFFD. */
static const char *put_character(page *p, const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    unsigned code = 0xfffd;
    int bytes = 1;
    if (c[0] < 0x80) {
        code = c[0];
    } else if ((c[0] & 0xe0) == 0xc0 && (c[1] & 0xc0) == 0x80) {
        code = (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
        bytes = 2;
    } else if ((c[0] & 0xf0) == 0xe0 && (c[1] & 0xc0) == 0x80 && (c[2] & 0xc0) == 0x80) {
        code = (c[0] & 0x0fu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
        bytes = 3;
    }
    char plain = (char)code;
    if (code >= 0x20 && code < 0x7f && code != '"' && code != '\\' && code != '<')
        fr_file_writer_append(&p->writer, &plain, 1);
    else
        print(p, "\\u%04x", code);
    return text + bytes;
}

static void put_string(page *p, const char *text)
{
    put(p, "\"");
    while (text && *text)
        text = put_character(p, text);
    put(p, "\"");
}

/* ---- sources and tiles ---------------------------------------------------------------------------- */

static uint32_t number_of(page *p, uint32_t source)
{
    if (source >= p->source_room)
        return UINT32_MAX;
    if (!p->source_number[source]) {
        p->sources[p->source_count++] = source;
        p->source_number[source] = p->source_count;
    }
    return p->source_number[source] - 1;
}

static bool on_chip(const fr_neuron_region *region)
{
    return region->memory == FR_NEURON_SBUF || region->memory == FR_NEURON_PSUM;
}

/* First pass: who lives when, which sources there are. */
static fr_status survey(page *p, fr_error *error)
{
    int64_t count = fr_neuron_record_count(p->core);
    uint32_t sources = 0;
    while (fr_neuron_tensor_at(p->core, p->tensors))
        p->tensors++;
    for (int64_t i = 0; i < count; i++) {
        uint32_t source = fr_neuron_record_at(p->core, i)->source;
        sources = source >= sources && source < UINT32_MAX ? source + 1 : sources;
    }
    p->source_room = sources;
    p->change_room = 2 * (int64_t)p->tensors;
    p->lives = fr_arena_alloc(&p->arena, sizeof *p->lives * ((size_t)p->tensors + 1));
    p->changes = fr_arena_alloc(&p->arena, sizeof *p->changes * ((size_t)p->change_room + 1));
    p->source_number = fr_arena_alloc(&p->arena, sizeof *p->source_number * ((size_t)sources + 1));
    p->sources = fr_arena_alloc(&p->arena, sizeof *p->sources * ((size_t)sources + 1));
    p->files = fr_arena_alloc(&p->arena, sizeof *p->files * ((size_t)sources + 1));
    if (!p->lives || !p->changes || !p->source_number || !p->sources || !p->files)
        return fr_error_memory(error, sizeof *p->lives * p->tensors, "the timeline page");
    for (int64_t i = count - 1; i >= 0; i--) {
        const fr_neuron_record *record = fr_neuron_record_at(p->core, i);
        for (int r = 0; r < record->regions; r++) {
            const fr_neuron_region *region = &record->region[r];
            if (region->tensor >= p->tensors || !on_chip(region))
                continue;
            life *l = &p->lives[region->tensor];
            l->last = l->bytes ? l->last : i;
            l->first = i;
            l->bytes = region->last > l->bytes ? region->last : l->bytes;
        }
    }
    return FR_OK;
}

static void note_tiles(page *p, const fr_neuron_event *event, const fr_neuron_record *record)
{
    for (int r = 0; r < record->regions; r++) {
        const fr_neuron_region *region = &record->region[r];
        if (region->tensor >= p->tensors || !on_chip(region))
            continue;
        life *l = &p->lives[region->tensor];
        int which = 2 * record->core + (region->memory == FR_NEURON_PSUM);
        if (l->bytes && l->first == event->record && p->change_count < p->change_room) {
            p->changes[p->change_count++] = (change){event->start_ns, l->bytes, which};
            l->first = -1;
        }
        if (l->bytes && l->last == event->record && l->first < 0 && p->change_count < p->change_room) {
            p->changes[p->change_count++] = (change){event->visible_ns, -(int64_t)l->bytes, which};
            l->bytes = 0;
        }
    }
}

/* ---- events --------------------------------------------------------------------------------------- */

static int row_of(const fr_neuron_event *event, const fr_neuron_record *record, bool transfer)
{
    int engine = event->engine == FR_NEURON_DMA ? record->trigger : event->engine;
    engine = engine > FR_NEURON_ANY && engine < FR_NEURON_DMA ? engine : FR_NEURON_SYNC;
    return (record->core & 1) * 2 * FR_NEURON_DMA + (transfer ? FR_NEURON_DMA : 0) + engine;
}

static void put_event(page *p, int row, double start, double end, const fr_neuron_record *record, int stall,
                      double waited)
{
    uint32_t source = number_of(p, record->source);
    print(p, "%s%d,%.1f,%.1f,%u,%lld,%d,%.1f", p->events++ ? "," : "", row, start, end - start,
          record->instruction, source == UINT32_MAX ? -1ll : (long long)source, stall, waited);
}

/* Software on GpSimd makes descriptors itself. */
static double trigger_ns(const page *p, const fr_neuron_record *record)
{
    const fr_neuron_machine *machine = fr_neuron_machine_of(p->core);
    bool software = record->trigger == FR_NEURON_GPSIMD && (record->flags & FR_NEURON_DYNAMIC);
    double made = machine->dma_dynamic_issue_ns + record->descriptors * machine->dma_dynamic_descriptor_ns;
    return software ? made : machine->dma_static_issue_ns;
}

static void tell(void *user, const fr_neuron_event *event, const fr_neuron_record *record)
{
    page *p = user;
    bool continued =
        event->record > 0 && (fr_neuron_record_at(p->core, event->record - 1)->flags & FR_NEURON_MORE);
    note_tiles(p, event, record);
    if (continued)
        return;
    if (p->events >= EVENTS) {
        p->left_out++;
        return;
    }
    double waited = event->start_ns - event->ready_ns;
    bool dma = record->engine == FR_NEURON_DMA;
    double end = dma ? event->start_ns + trigger_ns(p, record) : event->end_ns;
    put_event(p, row_of(event, record, false), event->start_ns, end, record, event->stall, waited);
    if (dma)
        put_event(p, row_of(event, record, true), event->transfer_ns, event->end_ns, record, 0, 0);
}

/* ---- the data ------------------------------------------------------------------------------------- */

static void put_rows(page *p)
{
    static const char *const names[FR_NEURON_DMA] = {"", "Tensor", "Vector", "Scalar", "GpSimd", "Sync"};
    put(p, "\"rows\":[");
    for (int i = 0; i < ROWS; i++)
        print(p, "%s\"%s%s%s\"", i ? "," : "", i % (2 * FR_NEURON_DMA) >= FR_NEURON_DMA ? "DMA of " : "",
              names[i % FR_NEURON_DMA], i >= 2 * FR_NEURON_DMA ? ", core 1" : "");
    put(p, "],\"stalls\":[");
    for (int i = 0; i < FR_NEURON_STALLS; i++)
        print(p, "%s\"%s\"", i ? "," : "", stall_texts[i]);
    put(p, "],\"names\":[");
    int count;
    const fr_neuron_instruction *const *all = fr_neuron_instructions(&count);
    for (int i = 0; i < count; i++) {
        put(p, i ? "," : "");
        put_string(p, all[i]->name);
    }
    put(p, "],\"events\":[");
}

static int by_time(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static void put_memory(page *p)
{
    const fr_neuron_machine *machine = fr_neuron_machine_of(p->core);
    int64_t limit[2] = {machine->sbuf_usable_bytes, machine->psum_bank_bytes * machine->psum_banks};
    bool any = false;
    if (p->change_count)
        qsort(p->changes, (size_t)p->change_count, sizeof *p->changes, by_time);
    put(p, "],\"memory\":[");
    for (int which = 0; which < 4; which++) {
        int64_t used = 0;
        bool first = true;
        for (int64_t i = 0; i < p->change_count; i++) {
            if (p->changes[i].which != which)
                continue;
            if (first)
                print(p, "%s{\"name\":\"%s%s\",\"limit\":%lld,\"points\":[", any ? "," : "",
                      which & 1 ? "PSUM" : "SBUF", which > 1 ? ", core 1" : "", (long long)limit[which & 1]);
            used += p->changes[i].bytes;
            print(p, "%s%.1f,%lld", first ? "" : ",", p->changes[i].at, (long long)used);
            first = false;
        }
        if (!first)
            put(p, "]}");
        any |= !first;
    }
}

static int file_number(page *p, const char *file)
{
    for (int i = 0; i < p->file_count; i++)
        if (strcmp(p->files[i], file) == 0)
            return i;
    p->files[p->file_count] = file;
    return p->file_count++;
}

static void put_files(page *p)
{
    for (int i = 0; i < p->file_count; i++) {
        fr_arena scratch;
        char *text = NULL;
        size_t bytes = 0;
        fr_arena_init(&scratch, 1 << 16);
        bool readable =
            fr_file_read(&scratch, p->files[i], &text, &bytes, NULL) == FR_OK && bytes < SOURCE_BYTES;
        put(p, i ? ",{\"name\":" : "{\"name\":");
        put_string(p, p->files[i]);
        put(p, ",\"text\":");
        if (readable)
            put_string(p, text);
        else
            put(p, "null");
        put(p, "}");
        fr_arena_release(&scratch);
    }
}

static void put_sources(page *p)
{
    put(p, "],\"sources\":[");
    for (uint32_t i = 0; i < p->source_count; i++) {
        int line = 0;
        const char *file = fr_neuron_source_file(p->core, p->sources[i], &line);
        print(p, "%s[%d,%d]", i ? "," : "", file_number(p, file ? file : "?"), line);
    }
    put(p, "],\"files\":[");
    put_files(p);
    put(p, "]");
}

/* ---- the page ------------------------------------------------------------------------------------- */

static void put_card(page *p, const char *label, const char *value)
{
    print(p, "<div><small>%s</small>%s</div>", label, value);
}

static void put_time_card(page *p, const char *label, double ns)
{
    char text[64];
    snprintf(text, sizeof text, "%.2f &micro;s", ns / 1000);
    put_card(p, label, text);
}

static void put_head(page *p, const char *title, const fr_neuron_timing *timing)
{
    fr_buffer escaped;
    fr_buffer_init(&escaped, 1 << 16);
    fr_html_escape(&escaped, title);
    put(p, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
    put(p, escaped.data ? escaped.data : "");
    put(p, "</title>\n<style>\n");
    put(p, fr_timeline_style);
    put(p, "</style></head>\n<body><header><h1>");
    put(p, escaped.data ? escaped.data : "");
    put(p, "</h1><div class=\"cards\">");
    fr_buffer_release(&escaped);
    put_time_card(p, "predicted", timing->predicted_ns);
    put_time_card(p, "perfect overlap", timing->lower_bound_ns);
    put_time_card(p, "program order", timing->program_order_ns);
    for (int e = 1; e < FR_NEURON_ENGINES; e++) {
        char text[32];
        if (!(timing->busy_ns[e] > 0))
            continue;
        snprintf(text, sizeof text, "%.1f %% busy", 100 * timing->busy_ns[e] / timing->predicted_ns);
        put_card(p, fr_neuron_engine_name((fr_neuron_engine)e), text);
    }
    put(p,
        "</div><div class=\"bar\"><input id=\"search\" type=\"search\" placeholder=\"instruction or "
        "file:line\" "
        "aria-label=\"search\"><button id=\"all\">all</button><button id=\"in\">+</button><button id=\"out\">"
        "&minus;</button><span id=\"range\"></span><span id=\"count\"></span><span class=\"hint\">wheel "
        "zooms, drag "
        "moves, hover tells, click a line to follow it; keys + - 0 / and arrows</span></div>"
        "<div class=\"legend\" id=\"legend\"></div></header>\n");
    put(p, "<main><canvas id=\"view\"></canvas><div id=\"tip\" hidden></div></main><aside "
           "id=\"source\"></aside>\n");
    print(p, "<script type=\"application/json\" id=\"data\">{\"total\":%.1f,", timing->predicted_ns);
}

static fr_status write_page(page *p, const char *title, fr_error *error)
{
    fr_neuron_timing timing;
    fr_neuron_time_options options = {.event = tell, .user = p};
    FR_TRY(fr_neuron_time(p->core, &timing, NULL, error));
    put_head(p, title, &timing);
    put_rows(p);
    FR_TRY(fr_neuron_time(p->core, &timing, &options, error));
    put_memory(p);
    put_sources(p);
    print(p, ",\"left_out\":%lld}</script>\n<script>\n", (long long)p->left_out);
    put(p, fr_timeline_script);
    put(p, "</script>\n");
    if (p->left_out)
        print(p,
              "<script>document.getElementById('count').textContent = 'the first %lld events; %lld "
              "instructions "
              "more are not drawn';</script>\n",
              (long long)p->events, (long long)p->left_out);
    put(p, "</body></html>\n");
    return FR_OK;
}

fr_status fr_neuron_page_write(const fr_neuron *core, const char *title, const char *path, fr_error *error)
{
    page p = {.core = core};
    fr_arena_init(&p.arena, 1 << 20);
    fr_status status = survey(&p, error);
    if (status == FR_OK)
        status = fr_file_writer_begin(&p.writer, path, error);
    if (status == FR_OK) {
        status = write_page(&p, title, error);
        if (status == FR_OK)
            status = fr_file_writer_commit(&p.writer, error);
        else
            fr_file_writer_abort(&p.writer);
    }
    fr_arena_release(&p.arena);
    return status;
}
