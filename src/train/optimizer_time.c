/* optimizer_time.c: how long one optimizer step will take, without taking one.
 *
 * The forecast must not change weights or state, and a copy of both would double the memory of a run.
 * Matrices come in a handful of shapes, so one update of each shape is timed on scratch numbers, on all
 * threads at once because they compete for the same memory, and multiplied by how many matrices have that
 * shape. AdamW is timed on a stretch too long for the caches and scaled by length.
 */
#include "train/optimizer.h"
#include "train/timing.h"

#include <string.h>

enum { ADAMW_SAMPLE = 1 << 20 };

typedef struct sample {
    float *memory; /* `arrays` stretches of `elements` for every thread */
    int64_t elements, rows, columns;
    const fr_optimizer *optimizer;
    bool adamw;
    fr_pool *inside;
} sample;

static float *stretch(const sample *s, int thread, int which)
{
    return s->memory + ((int64_t)thread * 4 + which) * s->elements;
}

static void run_sample(void *context, int64_t index, int thread)
{
    (void)thread;
    const sample *s = context;
    int place = (int)index; /* jobs, not threads, own the scratch: one thread may take two */
    float *weight = stretch(s, place, 0), *gradient = stretch(s, place, 1), *first = stretch(s, place, 2),
          *second = stretch(s, place, 3);
    if (s->adamw) {
        fr_adamw_options options = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-10, .step = 1};
        fr_adamw_update(weight, gradient, first, second, s->elements, &options);
        return;
    }
    fr_muon_options options = {
        .lr = 1e-3, .momentum = 0.9, .beta2 = 0.9, .bf16 = s->optimizer->bf16, .pool = s->inside};
    fr_muon_update(weight, gradient, first, second, s->rows, s->columns, &options,
                   s->optimizer->scratch + (size_t)place * s->optimizer->scratch_each);
}

static void fill_sample(sample *s, int places)
{
    for (int place = 0; place < places; place++)
        for (int64_t i = 0; i < s->elements; i++) {
            stretch(s, place, 0)[i] = 0.01f * (float)(i % 97 - 48);
            stretch(s, place, 1)[i] = 0.001f * (float)(i % 89 - 44);
        }
}

/* Seconds of one update per place, all places at once; the first round warms pages and library up. */
static double time_sample(sample *s, fr_pool *pool, int places)
{
    fill_sample(s, places);
    int64_t start = 0;
    for (int round = 0; round < 2; round++) {
        start = fr_monotonic_ns();
        fr_pool_for(pool, places, run_sample, s);
    }
    return (double)(fr_monotonic_ns() - start) * 1e-9;
}

static bool seen_before(const fr_optimizer *optimizer, int index)
{
    const fr_parameter_info *info = optimizer->states[optimizer->muon[index]].info;
    for (int i = 0; i < index; i++) {
        const fr_parameter_info *other = optimizer->states[optimizer->muon[i]].info;
        if (other->rows == info->rows && other->columns == info->columns)
            return true;
    }
    return false;
}

static int same_shape(const fr_optimizer *optimizer, int index)
{
    const fr_parameter_info *info = optimizer->states[optimizer->muon[index]].info;
    int count = 0;
    for (int i = 0; i < optimizer->muon_count; i++) {
        const fr_parameter_info *other = optimizer->states[optimizer->muon[i]].info;
        count += other->rows == info->rows && other->columns == info->columns;
    }
    return count;
}

static int64_t longest_sample(const fr_optimizer *optimizer, int64_t adamw_elements)
{
    int64_t longest = adamw_elements < ADAMW_SAMPLE ? adamw_elements : ADAMW_SAMPLE;
    for (int i = 0; i < optimizer->muon_count; i++) {
        int64_t elements = optimizer->states[optimizer->muon[i]].elements;
        longest = elements > longest ? elements : longest;
    }
    return longest > 16 ? longest : 16;
}

static double time_matrices(const fr_optimizer *optimizer, sample *s)
{
    int threads = fr_pool_threads(optimizer->pool);
    bool inside = fr_optimizer_splits_inside(optimizer);
    s->inside = inside ? optimizer->pool : NULL;
    double seconds = 0;
    for (int i = 0; i < optimizer->muon_count; i++) {
        if (seen_before(optimizer, i))
            continue;
        const fr_parameter_info *info = optimizer->states[optimizer->muon[i]].info;
        s->rows = info->rows;
        s->columns = info->columns;
        s->elements = info->rows * info->columns;
        int places = inside ? 1 : threads;
        seconds +=
            time_sample(s, inside ? NULL : optimizer->pool, places) * same_shape(optimizer, i) / places;
    }
    return seconds;
}

fr_status fr_optimizer_time(const fr_optimizer *optimizer, double *seconds, fr_error *error)
{
    int threads = fr_pool_threads(optimizer->pool);
    int64_t adamw_elements = 0;
    for (int i = 0; i < optimizer->count; i++)
        adamw_elements += optimizer->states[i].rule.muon ? 0 : optimizer->states[i].elements;
    sample s = {.optimizer = optimizer};
    size_t bytes = (size_t)longest_sample(optimizer, adamw_elements) * (size_t)threads * 4 * sizeof(float);
    s.memory = fr_allocate(bytes);
    if (!s.memory)
        return fr_error_memory(error, bytes, "timing the optimizer");
    *seconds = time_matrices(optimizer, &s);
    if (adamw_elements > 0) {
        s.adamw = true;
        s.elements = adamw_elements < ADAMW_SAMPLE ? adamw_elements : ADAMW_SAMPLE;
        *seconds += time_sample(&s, optimizer->pool, threads) * (double)adamw_elements /
                    (double)(s.elements * threads);
    }
    fr_deallocate(s.memory);
    return FR_OK;
}
