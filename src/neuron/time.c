/* time.c: a kernel's time with its parts: liveness, bounds and replay of one job, summed up.
 *
 * The prediction lies between the bounds by construction. Perfect overlap is below any schedule. Program
 * order is one particular schedule; a greedy reordering can, rarely, come out longer, and since a compiler
 * would then have left the order alone, the larger of the two is what is reported as program order.
 */
#include "neuron/time.h"

#include <string.h>

typedef struct summing {
    fr_neuron_timing *timing;
    const fr_neuron_machine *machine;
    const fr_neuron_replay_options *options;
    double work[FR_NEURON_DMA_ENGINES];
} summing;

static void add_transfer(summing *s, const fr_neuron_happening *h)
{
    fr_neuron_timing *t = s->timing;
    const fr_neuron_op *op = h->op;
    double total = 0;
    fr_neuron_dma_split(s->machine, op, s->work);
    for (int e = 0; e < s->machine->dma_engines && e < FR_NEURON_DMA_ENGINES; e++)
        total += s->work[e];
    t->busy_ns[FR_NEURON_DMA] += total / s->machine->dma_engines;
    t->dma_bytes += op->bytes;
    t->dma_descriptors += op->descriptors;
    t->hbm_read_bytes += op->hbm_read;
    t->hbm_write_bytes += op->hbm_write;
    if (op->records == 0)
        t->spill_bytes += op->bytes;
    double arrival = h->start + s->machine->dma_start_ns, waited = h->end - arrival - h->work;
    t->stall_ns[FR_NEURON_DMA][FR_NEURON_STALL_QUEUE] += waited > 0 ? waited : 0;
}

static void add(void *user, const fr_neuron_happening *h)
{
    summing *s = user;
    fr_neuron_timing *t = s->timing;
    const fr_neuron_op *op = h->op;
    if (op->dma)
        add_transfer(s, h);
    t->busy_ns[op->queue] += op->dma ? fr_neuron_dma_trigger_ns(s->machine, op) : h->end - h->start;
    if (h->start > h->engine_free)
        t->stall_ns[op->queue][h->stall] += h->start - h->engine_free;
    t->stall_ns[op->queue][FR_NEURON_STALL_THROTTLE] += h->throttled;
    if (op->records > 0) {
        t->instructions++;
        t->guessed += (op->data->flags & FR_NEURON_GUESS) != 0;
        t->flops += op->dma ? 0 : 64.0 * op->data->bytes;
    }
    if (s->options && s->options->happening)
        s->options->happening(s->options->user, h);
}

static void average_cores(fr_neuron_timing *timing, int cores)
{
    for (int e = 0; e < FR_NEURON_ENGINES; e++) {
        timing->busy_ns[e] /= cores;
        for (int s = 0; s < FR_NEURON_STALLS; s++)
            timing->stall_ns[e][s] /= cores;
    }
}

static fr_status time_with(const fr_neuron_job *job, const fr_neuron_liveness *liveness,
                           fr_neuron_timing *timing, const fr_neuron_replay_options *options, fr_error *error)
{
    fr_neuron_bounds bounds;
    summing s = {.timing = timing, .machine = job->machine, .options = options};
    fr_neuron_replay_options replay = {.happening = add, .user = &s};
    if (options) {
        replay.window = options->window;
        replay.lookahead = options->lookahead;
    }
    FR_TRY(fr_neuron_bounds_of(job, liveness, &bounds, error));
    FR_TRY(fr_neuron_replay(job, liveness, &replay, &timing->predicted_ns, error));
    timing->removed = bounds.left_out;
    timing->lower_bound_ns = bounds.overlap_ns;
    timing->program_order_ns =
        bounds.program_order_ns > timing->predicted_ns ? bounds.program_order_ns : timing->predicted_ns;
    average_cores(timing, job->cores);
    return FR_OK;
}

fr_status fr_neuron_time_job(const fr_neuron_job *job, fr_neuron_timing *timing,
                             const fr_neuron_replay_options *options, fr_error *error)
{
    memset(timing, 0, sizeof *timing);
    fr_neuron_liveness liveness;
    FR_TRY(fr_neuron_liveness_init(&liveness, job, error));
    timing->launch_ns = job->machine->launch_ns;
    timing->sbuf_peak_bytes = liveness.sbuf_peak_bytes;
    timing->psum_peak_banks = liveness.psum_peak_banks;
    fr_status status = time_with(job, &liveness, timing, options, error);
    fr_neuron_liveness_release(&liveness);
    return status;
}
