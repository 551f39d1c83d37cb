/* time_core.c: the public calls: what a core has recorded, as a job for the timing pass, and its answers as
 * the events of the public header. */
#include "neuron/core.h"
#include "neuron/time.h"

static const fr_neuron_record *record_of(const void *context, int64_t index)
{
    return fr_neuron_record_at(context, index);
}

static fr_neuron_facts facts_of(const void *context, uint32_t id)
{
    const fr_neuron_tensor *tensor = fr_neuron_tensor_at(context, id);
    const fr_neuron_layout *layout = tensor ? fr_neuron_tensor_layout(tensor) : NULL;
    if (!layout || !layout->placed)
        return (fr_neuron_facts){0};
    return (fr_neuron_facts){true, layout->start_partition, layout->byte_offset};
}

static const char *name_of(const void *context, uint16_t instruction)
{
    int count;
    const fr_neuron_instruction *const *all = fr_neuron_instructions(&count);
    (void)context;
    return instruction < count ? all[instruction]->name : "instruction";
}

static const char *source_of(const void *context, uint32_t source, int *line)
{
    return fr_neuron_source_file(context, source, line);
}

fr_neuron_job fr_neuron_job_of(const fr_neuron *core)
{
    const fr_neuron_instruction *transpose = fr_neuron_instruction_named("dma_transpose");
    const fr_neuron_instruction *copy = fr_neuron_instruction_named("tensor_copy");
    const fr_neuron_instruction *pair = fr_neuron_instruction_named("tensor_tensor");
    return (fr_neuron_job){.machine = core->machine,
                           .cores = core->cores,
                           .records = fr_neuron_record_count(core),
                           .tensors = (uint32_t)core->tensor_count,
                           .record = record_of,
                           .tensor = facts_of,
                           .name = name_of,
                           .source = source_of,
                           .context = core,
                           .transpose = transpose ? fr_neuron_instruction_index(transpose) : -1,
                           .copy = copy ? fr_neuron_instruction_index(copy) : -1,
                           .pair = pair ? fr_neuron_instruction_index(pair) : -1};
}

typedef struct telling {
    const fr_neuron *core;
    const fr_neuron_time_options *options;
} telling;

/* A call of several records is one happening and as many events. */
static void tell(void *user, const fr_neuron_happening *h)
{
    const telling *t = user;
    for (int i = 0; i < h->op->records; i++) {
        fr_neuron_event event = {.record = h->op->record + i,
                                 .engine = h->op->dma ? FR_NEURON_DMA : (fr_neuron_engine)h->op->queue,
                                 .ready_ns = h->engine_free < h->start ? h->engine_free : h->start,
                                 .start_ns = h->start,
                                 .transfer_ns = h->op->dma ? h->transfer : h->start,
                                 .end_ns = h->end,
                                 .visible_ns = h->visible,
                                 .stall = h->stall,
                                 .blamed = h->blamed};
        t->options->event(t->options->user, &event, fr_neuron_record_at(t->core, event.record));
    }
}

fr_status fr_neuron_time(const fr_neuron *core, fr_neuron_timing *timing,
                         const fr_neuron_time_options *options, fr_error *error)
{
    fr_neuron_job job = fr_neuron_job_of(core);
    telling t = {core, options};
    fr_neuron_replay_options replay = {.happening = options && options->event ? tell : NULL, .user = &t};
    return fr_neuron_time_job(&job, timing, &replay, error);
}

typedef struct tail {
    const fr_neuron *core;
    int64_t first;
} tail;

static const fr_neuron_record *tail_record(const void *context, int64_t index)
{
    const tail *t = context;
    return fr_neuron_record_at(t->core, t->first + index);
}

static fr_neuron_facts tail_facts(const void *context, uint32_t id)
{
    return facts_of(((const tail *)context)->core, id);
}

fr_status fr_neuron_time_since(const fr_neuron *core, int64_t first, fr_neuron_timing *timing, fr_error *error)
{
    fr_neuron_job job = fr_neuron_job_of(core);
    if (first < 0 || first > job.records)
        return fr_error_set(error, FR_BAD_USAGE, "fr_neuron_time_since", NULL, "record %lld of %lld",
                            (long long)first, (long long)job.records);
    tail t = {core, first};
    job.records -= first;
    job.record = tail_record;
    job.tensor = tail_facts;
    job.source = NULL;
    job.context = &t;
    fr_neuron_replay_options replay = {.happening = NULL};
    return fr_neuron_time_job(&job, timing, &replay, error);
}

fr_status fr_neuron_write_trace(const fr_neuron *core, const char *path, fr_error *error)
{
    fr_neuron_job job = fr_neuron_job_of(core);
    return fr_neuron_write_trace_job(&job, path, error);
}
