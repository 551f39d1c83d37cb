/* The timeline as a file: valid JSON whatever files are called, rows whose slices do not overlap, arrows
 * between slices that exist, memory counters that end at nothing, and nothing left behind when the disk is
 * full. */
#include "base/json.h"
#include "neuron_time_fixture.h"
#include "scratch.h"

static const char *name_of(const void *context, uint16_t instruction)
{
    (void)context;
    return instruction == 3 ? "tensor_\"copy\"\\" : "dma_copy";
}

static const char *source_of(const void *context, uint32_t source, int *line)
{
    (void)context;
    *line = (int)source;
    return "k\xc3\xa9rnel \"x\"\n.py";
}

static fixture *pipeline(int iterations)
{
    fixture *f = fixture_create();
    uint32_t x = add_tensor(f, FR_NEURON_HBM), y = add_tensor(f, FR_NEURON_HBM);
    for (int i = 0; i < iterations; i++) {
        uint32_t a = add_tensor(f, FR_NEURON_SBUF), b = add_tensor(f, FR_NEURON_SBUF);
        add_copy(f, x, a, 2048, true);
        fr_neuron_record *r = add_compute(f, FR_NEURON_VECTOR, 500, a, b, 2048);
        r->instruction = 3;
        r->extent = 512;
        r->source = 40 + (uint32_t)i;
        add_copy(f, y, b, 2048, false);
    }
    return f;
}

static fr_neuron_job named_job(const fixture *f, int cores)
{
    fr_neuron_job job = fixture_job(f, cores);
    job.name = name_of;
    job.source = source_of;
    return job;
}

typedef struct tally {
    int slices, waits, arrows_from, arrows_to, counters, metadata;
    double begin[1000], end[1000], sbuf_most, sbuf_last;
    int row[1000];
    bool bad_source;
} tally;

static void count_event(tally *t, const json_t *event)
{
    const char *phase = json_string_value(json_object_get(event, "ph"));
    const json_t *arguments = json_object_get(event, "args");
    int row = (int)json_integer_value(json_object_get(event, "tid"));
    double ts = json_number_value(json_object_get(event, "ts")),
           dur = json_number_value(json_object_get(event, "dur"));
    t->metadata += phase[0] == 'M';
    t->arrows_from += phase[0] == 's';
    t->arrows_to += phase[0] == 'f';
    if (phase[0] == 'C') {
        t->counters++;
        t->sbuf_last = json_number_value(json_object_get(arguments, "bytes"));
        t->sbuf_most = fmax(t->sbuf_most, t->sbuf_last);
    }
    if (phase[0] != 'X')
        return;
    t->begin[t->slices] = ts;
    t->end[t->slices] = ts + dur;
    t->row[t->slices++] = row;
    t->waits += json_object_get(event, "cat") != NULL;
    const char *source = json_string_value(json_object_get(arguments, "source"));
    t->bad_source |= !json_object_get(event, "cat") && (!source || !strstr(source, "rnel \"x\"\n.py:"));
}

static bool overlap(const tally *t)
{
    for (int i = 0; i < t->slices; i++)
        for (int j = 0; j < i; j++)
            if (t->row[i] == t->row[j] &&
                fmin(t->end[i], t->end[j]) - fmax(t->begin[i], t->begin[j]) > 0.0015)
                return true;
    return false;
}

static tally read_trace(const char *path)
{
    tally t = {0};
    fr_error error = {0};
    json_t *root = NULL;
    CHECK_OK(fr_json_read(&root, path, &error));
    json_t *events = json_object_get(root, "traceEvents");
    for (size_t i = 0; i < json_array_size(events); i++)
        count_event(&t, json_array_get(events, i));
    json_decref(root);
    return t;
}

TEST(a_pipeline)
{
    char path[1200];
    fr_error error = {0};
    fixture *f = pipeline(10);
    fr_neuron_job job = named_job(f, 1);
    snprintf(path, sizeof path, "%s", scratch("trace.json"));
    CHECK_OK(fr_neuron_write_trace_job(&job, path, &error));
    tally t = read_trace(path);
    CHECK_INT(t.slices - t.waits,
              10 + 2 * 20); /* a slice each on Vector; trigger and transfer of each copy */
    CHECK(t.waits > 0);
    CHECK(t.arrows_from > 0);
    CHECK_INT(t.arrows_from, t.arrows_to);
    CHECK(!overlap(&t));
    CHECK(!t.bad_source);
    CHECK(t.sbuf_most >= 2 * 2048 && t.sbuf_most <= 20 * 2048);
    CHECK_NEAR(t.sbuf_last, 0, 0, 0);
    fr_deallocate(f);
}

/* Transfers of single rows use one DMA engine each and move at the same time. */
TEST(transfers_side_by_side)
{
    char path[1200];
    fr_error error = {0};
    fixture *f = pipeline(30);
    for (int64_t i = 0; i < f->records; i++)
        if (f->record[i].engine == FR_NEURON_DMA) {
            f->record[i].region[0].partition = (uint8_t)(8 * (i % 16));
            f->record[i].region[0].partitions = 8;
        }
    fr_neuron_job job = named_job(f, 1);
    snprintf(path, sizeof path, "%s", scratch("rows.json"));
    CHECK_OK(fr_neuron_write_trace_job(&job, path, &error));
    tally t = read_trace(path);
    CHECK(!overlap(&t));
    fr_deallocate(f);
}

TEST(no_records)
{
    char path[1200];
    fr_error error = {0};
    fixture *f = fixture_create();
    fr_neuron_job job = named_job(f, 2);
    snprintf(path, sizeof path, "%s", scratch("empty.json"));
    CHECK_OK(fr_neuron_write_trace_job(&job, path, &error));
    tally t = read_trace(path);
    CHECK_INT(t.slices, 0);
    CHECK(t.metadata > 0);
    fr_deallocate(f);
}

TEST(a_full_disk)
{
    char path[1200];
    fr_error error = {0};
    fixture *f = pipeline(50);
    fr_neuron_job job = named_job(f, 1);
    snprintf(path, sizeof path, "%s", scratch("full.json"));
    fr_file_fail_after(2000);
    CHECK_INT(fr_neuron_write_trace_job(&job, path, &error), FR_BAD_ENVIRONMENT);
    fr_file_fail_after(-1);
    CHECK(!fr_path_exists(path));
    fr_deallocate(f);
}

TEST(memory_runs_out)
{
    char path[1200];
    fixture *f = pipeline(20);
    fr_neuron_job job = named_job(f, 1);
    snprintf(path, sizeof path, "%s", scratch("memory.json"));
    fr_status status = FR_BUG;
    for (int n = 0; n < 1000 && status != FR_OK; n++) {
        fr_error error = {0};
        fr_allocate_fail_after(n);
        status = fr_neuron_write_trace_job(&job, path, &error);
        fr_allocate_fail_after(-1);
        CHECK(status == FR_OK || status == FR_BAD_ENVIRONMENT);
    }
    CHECK_INT(status, FR_OK);
    fr_deallocate(f);
}

TEST_MAIN(neuron_trace)
