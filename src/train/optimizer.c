/* optimizer.c: one update of every parameter by its group's rule.
 *
 * Work is handed out whole matrix by whole matrix, the costliest first, then AdamW in slices; every piece
 * computes the same bits whoever takes it. When one matrix is most of the work, Muon's matrices go one at a
 * time and each is split inside instead, over blocks that depend on its shape alone, so that choice does
 * not change a bit either.
 *
 * State is one block of memory: for Muon a momentum matrix and one second moment per row (per column when
 * wide), for AdamW two moments per element. Gradients are looked at before anything moves: NaN or Inf is
 * refused with the parameter's name, and the state is as if the step had never been asked for.
 */
#include "train/optimizer.h"

#include "frontier/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS_PER_SLICE = 1 << 16 };

/* ---- creation ---- */

static void size_state(fr_parameter_state *state)
{
    int64_t rows = state->info->rows, columns = state->info->columns;
    state->elements = rows * columns;
    state->seconds = !state->rule.muon ? state->elements : rows >= columns ? rows : columns;
}

/* Every piece starts on a cache line. */
static int64_t padded(int64_t elements)
{
    return (elements + 15) / 16 * 16;
}

static double muon_work(const fr_parameter_info *info)
{
    double m = (double)info->rows, n = (double)info->columns, small = m < n ? m : n;
    return small * (2 * m * n + small * small);
}

static fr_status make_states(fr_optimizer *optimizer, const fr_recipe *recipe, fr_error *error)
{
    for (int i = 0; i < optimizer->count; i++) {
        fr_parameter_state *state = &optimizer->states[i];
        state->info = fr_graph_parameter(optimizer->graph, i);
        FR_TRY(fr_group_rule_for(recipe, state->info, &state->rule, error));
        size_state(state);
        optimizer->memory_bytes += (size_t)(padded(state->elements) + padded(state->seconds)) * sizeof(float);
        if (!state->rule.muon)
            continue;
        size_t scratch = fr_muon_scratch_bytes(state->info->rows, state->info->columns);
        if (scratch > optimizer->scratch_each)
            optimizer->scratch_each = scratch;
        /* Insertion keeps the matrices ordered by falling work, equal ones in the graph's order. */
        int at = optimizer->muon_count++;
        for (; at > 0 && muon_work(optimizer->states[optimizer->muon[at - 1]].info) < muon_work(state->info);
             at--)
            optimizer->muon[at] = optimizer->muon[at - 1];
        optimizer->muon[at] = i;
    }
    optimizer->scratch_bytes = optimizer->scratch_each * (size_t)fr_pool_threads(optimizer->pool);
    return FR_OK;
}

static fr_status give_memory(fr_optimizer *optimizer, fr_error *error)
{
    optimizer->memory = fr_allocate(optimizer->memory_bytes);
    optimizer->scratch = fr_allocate(optimizer->scratch_bytes ? optimizer->scratch_bytes : 64);
    if (!optimizer->memory || !optimizer->scratch)
        return fr_error_memory(error, fr_optimizer_bytes(optimizer), "the optimizer's state");
    float *at = optimizer->memory;
    for (int i = 0; i < optimizer->count; i++) {
        fr_parameter_state *state = &optimizer->states[i];
        state->first = at;
        at += padded(state->elements);
        state->second = at;
        at += padded(state->seconds);
    }
    return FR_OK;
}

static fr_status describe(fr_optimizer **out, const fr_graph *graph, const fr_recipe *recipe, fr_pool *pool,
                          fr_error *error)
{
    fr_optimizer *optimizer = fr_allocate(sizeof *optimizer);
    if (!optimizer)
        return fr_error_memory(error, sizeof *optimizer, "an optimizer");
    optimizer->graph = graph;
    optimizer->pool = pool;
    optimizer->bf16 = fr_recipe_numerics(recipe) == FR_NUMERICS_BF16;
    optimizer->equalize = recipe->optim.muon_equalize;
    optimizer->plus = recipe->optim.muon_plus;
    optimizer->count = fr_graph_parameters(graph);
    optimizer->states = fr_allocate(((size_t)optimizer->count + 1) * sizeof *optimizer->states);
    optimizer->muon = fr_allocate(((size_t)optimizer->count + 1) * sizeof *optimizer->muon);
    fr_status status = FR_OK;
    if (!optimizer->states || !optimizer->muon)
        status = fr_error_memory(error, (size_t)optimizer->count * sizeof *optimizer->states, "an optimizer");
    if (status == FR_OK)
        status = make_states(optimizer, recipe, error);
    if (status == FR_OK)
        *out = optimizer;
    else
        fr_optimizer_free(optimizer);
    return status;
}

fr_status fr_optimizer_create(fr_optimizer **out, const fr_graph *graph, const fr_recipe *recipe,
                              fr_pool *pool, fr_error *error)
{
    fr_optimizer *optimizer;
    FR_TRY(describe(&optimizer, graph, recipe, pool, error));
    fr_status status = give_memory(optimizer, error);
    if (status == FR_OK)
        *out = optimizer;
    else
        fr_optimizer_free(optimizer);
    return status;
}

fr_status fr_optimizer_estimate(const fr_graph *graph, const fr_recipe *recipe, int threads, int64_t *bytes,
                                fr_error *error)
{
    fr_optimizer *optimizer;
    FR_TRY(describe(&optimizer, graph, recipe, NULL, error));
    *bytes = (int64_t)(optimizer->memory_bytes + optimizer->scratch_each * (size_t)threads);
    fr_optimizer_free(optimizer);
    return FR_OK;
}

size_t fr_optimizer_bytes(const fr_optimizer *optimizer)
{
    return optimizer->memory_bytes + optimizer->scratch_bytes;
}

int64_t fr_optimizer_steps(const fr_optimizer *optimizer)
{
    return optimizer->steps;
}

void fr_optimizer_free(fr_optimizer *optimizer)
{
    if (!optimizer)
        return;
    fr_deallocate(optimizer->memory);
    fr_deallocate(optimizer->scratch);
    fr_deallocate(optimizer->states);
    fr_deallocate(optimizer->muon);
    fr_deallocate(optimizer);
}

/* ---- finding what is not a number ---- */

typedef struct finite_check {
    const fr_graph *graph;
    const float *flat;
    _Atomic int first; /* index of the first bad parameter so far */
} finite_check;

/* All exponent bits set means NaN or Inf; integers vectorise where comparisons of floats may not. */
static bool all_finite(const float *values, int64_t count)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bad |= (bits & 0x7f800000) == 0x7f800000;
    }
    return bad == 0;
}

static void check_finite(void *context, int64_t index, int thread)
{
    (void)thread;
    finite_check *check = context;
    const fr_parameter_info *info = fr_graph_parameter(check->graph, (int)index);
    if (all_finite(check->flat + info->offset, info->rows * info->columns))
        return;
    int first = atomic_load(&check->first);
    while ((int)index < first && !atomic_compare_exchange_weak(&check->first, &first, (int)index))
        continue;
}

const char *fr_nonfinite_parameter(const fr_graph *graph, const float *flat, fr_pool *pool)
{
    int count = fr_graph_parameters(graph);
    finite_check check = {.graph = graph, .flat = flat};
    atomic_init(&check.first, count);
    fr_pool_for(pool, count, check_finite, &check);
    int first = atomic_load(&check.first);
    return first < count ? fr_graph_parameter(graph, first)->name : NULL;
}

/* ---- a step ---- */

typedef struct step_work {
    fr_optimizer *optimizer;
    float *parameters;
    const float *gradients;
    const fr_step_scalars *scalars;
} step_work;

static fr_muon_options muon_options(const fr_optimizer *optimizer, const fr_group_rule *rule,
                                    const fr_step_scalars *scalars)
{
    return (fr_muon_options){
        .lr = rule->lr * scalars->lr_multiplier,
        .decay = scalars->matrix_decay,
        .momentum = scalars->momentum,
        .beta2 = rule->beta2,
        .equalize = optimizer->equalize,
        .plus = optimizer->plus,
        .bf16 = optimizer->bf16,
    };
}

static void update_matrix(const step_work *work, int64_t index, int thread, fr_pool *pool)
{
    const fr_optimizer *optimizer = work->optimizer;
    const fr_parameter_state *state = &optimizer->states[optimizer->muon[index]];
    fr_muon_options options = muon_options(optimizer, &state->rule, work->scalars);
    options.pool = pool;
    fr_muon_update(work->parameters + state->info->offset, work->gradients + state->info->offset,
                   state->first, state->second, state->info->rows, state->info->columns, &options,
                   optimizer->scratch + (size_t)thread * optimizer->scratch_each);
}

static void update_matrix_job(void *context, int64_t index, int thread)
{
    update_matrix(context, index, thread, NULL);
}

/* Slice `index` of all AdamW parameters laid end to end, each cut into slices of its own. */
static const fr_parameter_state *find_slice(const fr_optimizer *optimizer, int64_t index, int64_t *first)
{
    for (int i = 0; i < optimizer->count; i++) {
        const fr_parameter_state *state = &optimizer->states[i];
        if (state->rule.muon)
            continue;
        int64_t slices = (state->elements + ELEMENTS_PER_SLICE - 1) / ELEMENTS_PER_SLICE;
        if (index < slices) {
            *first = index * ELEMENTS_PER_SLICE;
            return state;
        }
        index -= slices;
    }
    return NULL;
}

static int64_t count_slices(const fr_optimizer *optimizer)
{
    int64_t slices = 0;
    for (int i = 0; i < optimizer->count; i++)
        if (!optimizer->states[i].rule.muon)
            slices += (optimizer->states[i].elements + ELEMENTS_PER_SLICE - 1) / ELEMENTS_PER_SLICE;
    return slices;
}

static fr_adamw_options adamw_options(const fr_group_rule *rule, const fr_step_scalars *scalars, int64_t step)
{
    return (fr_adamw_options){
        .lr = rule->lr * scalars->lr_multiplier,
        .decay = rule->decay,
        .beta1 = rule->beta1,
        .beta2 = rule->beta2,
        .eps = rule->eps,
        .step = step,
    };
}

static void update_slice_job(void *context, int64_t index, int thread)
{
    (void)thread;
    const step_work *work = context;
    int64_t first = 0;
    const fr_parameter_state *state = find_slice(work->optimizer, index, &first);
    int64_t count =
        state->elements - first < ELEMENTS_PER_SLICE ? state->elements - first : ELEMENTS_PER_SLICE;
    int64_t offset = state->info->offset + first;
    fr_adamw_options options = adamw_options(&state->rule, work->scalars, work->optimizer->steps + 1);
    fr_adamw_update(work->parameters + offset, work->gradients + offset, state->first + first,
                    state->second + first, count, &options);
}

/* Whole matrices are the better share unless one of them is most of the work: inside, about three threads help. */
bool fr_optimizer_splits_inside(const fr_optimizer *optimizer)
{
    int threads = fr_pool_threads(optimizer->pool), help = threads < 3 ? threads : 3;
    double total = 0;
    for (int i = 0; i < optimizer->muon_count; i++)
        total += muon_work(optimizer->states[optimizer->muon[i]].info);
    return threads > 1 && optimizer->muon_count > 0 &&
           muon_work(optimizer->states[optimizer->muon[0]].info) > total / help;
}

fr_status fr_optimizer_step(fr_optimizer *optimizer, float *parameters, float *gradients,
                            const fr_step_scalars *scalars, fr_error *error)
{
    const char *bad = fr_nonfinite_parameter(optimizer->graph, gradients, optimizer->pool);
    if (bad)
        return fr_error_set(error, FR_ANSWER_NO, bad,
                            "lower the learning rate, or clip the gradient with optim.clip",
                            "its gradient holds NaN or Inf");
    step_work work = {optimizer, parameters, gradients, scalars};
    if (fr_optimizer_splits_inside(optimizer))
        for (int i = 0; i < optimizer->muon_count; i++)
            update_matrix(&work, i, 0, optimizer->pool);
    else
        fr_pool_for(optimizer->pool, optimizer->muon_count, update_matrix_job, &work);
    fr_pool_for(optimizer->pool, count_slices(optimizer), update_slice_job, &work);
    optimizer->steps++;
    return FR_OK;
}
