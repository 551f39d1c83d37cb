/* Running a plan: check what the caller brought, then fill in pointers and call kernels.
 *
 * Everything that could be decided was decided when the plan was made. Per step a run copies the prepared
 * call, writes some ten pointers and calls the kernel; there is no lock, no allocation and no state in the
 * plan, so any number of threads may run one plan, each with its own arena. Ids come from files, so they
 * are checked against the tables they index before the first kernel sees them.
 */
#include "graph/plan_internal.h"

#include <string.h>
#include <time.h>

static const float one_f32 = 1;
static const double one_f64 = 1;

/* A run under way: the addresses that slots are relative to. */
typedef struct running {
    const fr_plan *plan;
    const fr_run_args *args;
    const void *bases[FR_BASE_INPUTS + FR_MAX_PLAN_INPUTS];
} running;

static const void *find_binding(const fr_run_args *args, const fr_plan_input *input)
{
    for (int i = 0; i < args->input_count; i++)
        if (strcmp(args->inputs[i].name, input->tensor->name) == 0)
            return args->inputs[i].data;
    if (strcmp(input->tensor->name, "loss_scale") == 0)
        return input->dtype == FR_F64 ? (const void *)&one_f64 : &one_f32;
    return NULL;
}

static fr_status check_ids(const fr_plan_input *input, const int32_t *ids, int64_t count, fr_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < input->least || ids[i] > input->most)
            return fr_error_set(error, FR_BAD_DATA, input->tensor->name,
                                "do tokenizer and model belong together?",
                                "id %d at token %lld is outside %lld..%lld", (int)ids[i], (long long)i,
                                (long long)input->least, (long long)input->most);
    return FR_OK;
}

static fr_status bind_inputs(running *run, fr_error *error)
{
    for (int i = 0; i < run->plan->input_count; i++) {
        const fr_plan_input *input = &run->plan->inputs[i];
        const void *data = find_binding(run->args, input);
        if (!data)
            return fr_error_set(error, FR_BAD_USAGE, input->tensor->name, NULL,
                                "this run-time input was not given");
        if (input->dtype == FR_I32)
            FR_TRY(check_ids(input, data, run->args->tokens ? run->args->tokens : input->elements, error));
        run->bases[FR_BASE_INPUTS + i] = data;
    }
    return FR_OK;
}

/* Every level runs part of the next one, and at least a token; places, positions and neighbours exist. */
static bool keeps_levels(const fr_plan *plan, const fr_segments *segments, int64_t tokens)
{
    for (int k = 0; segments->first && k < plan->levels; k++)
        if (segments->first[k] < 0 || segments->first[k] >= tokens ||
            (k && segments->first[k] > segments->first[k - 1]))
            return false;
    for (int64_t i = 0; segments->order && i < (segments->numbers ? segments->numbers : tokens); i++)
        if (segments->order[i] < 0 || segments->order[i] >= tokens)
            return false;
    for (int64_t t = 0; t < tokens; t++)
        if (segments->positions[t] < 0 || segments->positions[t] >= plan->extent.T ||
            segments->previous[t] < -1 || segments->previous[t] >= tokens)
            return false;
    return true;
}

/* Segment s may stand behind the numbers up to `at`, of `numbers`. */
static bool in_order(const fr_plan *plan, const fr_segment *s, int64_t at, int64_t numbers)
{
    return s->first >= at && s->first <= numbers && s->count >= 0 && s->count <= numbers - s->first &&
           s->before >= 0 && s->before_count >= 0 && s->before_count <= s->first &&
           s->before <= s->first - s->before_count && s->left_out >= 0 &&
           s->left_out <= plan->extent.T - s->before_count - s->count;
}

/* Segments must hold as many tokens as the run has, and go on only from what lies before. */
static fr_status check_segments(const fr_plan *plan, const fr_run_args *args, fr_error *error)
{
    int64_t tokens = args->tokens ? args->tokens : plan->extent.T, at = 0, held = 0;
    if (tokens < 0 || tokens > plan->extent.T || plan->extent.rows != 1 || plan->train ||
        plan->continuing.chunk > 0)
        return fr_error_set(error, FR_BAD_USAGE, "tokens", NULL,
                            "only a forward plan of one row runs fewer tokens than planned, or other rows");
    const fr_segments *segments = args->segments;
    if (!segments)
        return FR_OK;
    int64_t numbers = segments->order && segments->numbers ? segments->numbers : tokens;
    for (int64_t i = 0; i < segments->count && held >= 0; i++) {
        const fr_segment *s = &segments->list[i];
        held = in_order(plan, s, at, numbers) ? held + s->count : -1;
        at = s->first + s->count;
    }
    if (held == tokens && fr_plan_segmented(plan) && keeps_levels(plan, segments, tokens))
        return FR_OK;
    return fr_error_set(error, FR_BAD_USAGE, "segments", NULL,
                        "the segments are not in order, or an operator of the plan cannot keep to them");
}

static fr_status start(running *run, const fr_plan *plan, const fr_run_args *args, fr_error *error)
{
    run->plan = plan;
    run->args = args;
    if (plan->arena_bytes && (!args->arena || (uintptr_t)args->arena % 64))
        return fr_error_set(error, FR_BAD_USAGE, "arena", NULL, "a run needs %zu bytes aligned to 64",
                            plan->arena_bytes);
    if (!args->parameters && plan->parameter_count)
        return fr_error_set(error, FR_BAD_USAGE, "parameters", NULL, "a run needs the parameters");
    if (!args->gradients && plan->train)
        return fr_error_set(error, FR_BAD_USAGE, "gradients", NULL,
                            "a training run needs a vector for gradients");
    if (args->tokens || args->segments)
        FR_TRY(check_segments(plan, args, error));
    run->bases[FR_BASE_ARENA] = args->arena;
    run->bases[FR_BASE_PARAMETERS] = args->parameters;
    run->bases[FR_BASE_GRADIENTS] = args->gradients;
    if (plan->continuing.chunk > 0)
        FR_TRY(fr_plan_start_sequences(plan, args, error));
    return bind_inputs(run, error);
}

/* Gradients that no step overwrites: parameters out of reach, and the gaps between parameters. */
static void clear_gradients(const running *run)
{
    const fr_plan *plan = run->plan;
    size_t item = plan->numerics == FR_NUMERICS_F64 ? sizeof(double) : sizeof(float);
    char *gradients = run->args->gradients;
    for (int p = 0; p < plan->unreached_count; p++) {
        const fr_parameter_info *info = plan->unreached[p];
        memset(gradients + (size_t)info->offset * item, 0, (size_t)(info->rows * info->columns) * item);
    }
    for (int p = 0; p < plan->parameter_count; p++) {
        const fr_parameter_info *info = &plan->parameters[p];
        int64_t end = info->offset + info->rows * info->columns;
        int64_t next = p + 1 < plan->parameter_count ? info[1].offset : plan->flat_elements;
        memset(gradients + (size_t)end * item, 0, (size_t)(next - end) * item);
    }
}

static void run_step(const running *run, const fr_step *step)
{
    fr_call call = step->call;
    const fr_segments *segments = run->args->segments;
    if (segments && segments->first)
        call.first = segments->first[step->level];
    const fr_slot *slot = run->plan->slots + step->slot, *end = slot + step->slots;
    for (; slot < end; slot++) {
        const char *address =
            (const char *)run->bases[slot->base] + slot->offset + (size_t)call.first * slot->row_bytes;
        memcpy((char *)&call + slot->field, &address, sizeof address);
    }
    for (int i = 0; i < step->node->inputs; i++) {
        if (step->parameter[i] >= 0 && run->args->prepared)
            call.prepared[i] = run->args->prepared[step->parameter[i]];
        if (step->first_gradient >> i & 1)
            call.accumulate[i] = run->args->accumulate_gradients;
    }
    call.sequences = run->args->sequences;
    if (run->args->tokens)
        call.tokens = call.extent.T = run->args->tokens;
    if (call.first)
        call.tokens = call.extent.T -= call.first;
    call.segments = segments;
    call.pool = run->args->pool;
    step->kernel->run(&call);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

fr_status fr_plan_run(const fr_plan *plan, const fr_run_args *args, fr_error *error)
{
    running run;
    FR_TRY(start(&run, plan, args, error));
    if (plan->train && !args->accumulate_gradients)
        clear_gradients(&run);
    int64_t before = args->timed ? now_ns() : 0;
    for (int s = 0; s < plan->step_count; s++) {
        run_step(&run, &plan->steps[s]);
        if (args->timed) {
            int64_t after = now_ns();
            args->timed(args->timed_context, plan->steps[s].node, plan->steps[s].pass, after - before);
            before = now_ns();
        }
    }
    return FR_OK;
}

const void *fr_plan_output(const fr_plan *plan, const void *arena, const char *name, fr_dtype *dtype)
{
    for (int i = 0; i < plan->output_count; i++) {
        if (strcmp(plan->outputs[i].name, name) != 0)
            continue;
        const fr_value *value = &plan->values[plan->outputs[i].value];
        if (dtype)
            *dtype = value->dtype;
        return (const char *)arena + value->offset;
    }
    return NULL;
}

/* ---- finding NaN and Inf ---- */

/* An exponent of all ones, in any float dtype. */
static bool nonfinite(const void *data, fr_dtype dtype, int64_t elements)
{
    bool found = false;
    for (int64_t i = 0; i < elements && !found; i++) {
        if (dtype == FR_F32)
            found = (((const uint32_t *)data)[i] & 0x7f800000u) == 0x7f800000u;
        else if (dtype == FR_BF16)
            found = (((const uint16_t *)data)[i] & 0x7f80u) == 0x7f80u;
        else if (dtype == FR_F64)
            found = (((const uint64_t *)data)[i] & 0x7ff0000000000000u) == 0x7ff0000000000000u;
    }
    return found;
}

static const char *check_value(const running *run, int value)
{
    if (value == FR_NO_VALUE)
        return NULL;
    const fr_value *v = &run->plan->values[value];
    return nonfinite((const char *)run->bases[v->base] + v->offset, v->dtype, v->elements) ? v->name : NULL;
}

/* What a step reads from outside (before it runs), or what it wrote (after). */
static const char *check_step(const running *run, const fr_step *step, bool after)
{
    const char *name = NULL;
    for (int i = 0; i < step->node->inputs && !name; i++) {
        if (after)
            name = check_value(run, step->grad_in[i]);
        else if (step->in[i] != FR_NO_VALUE && run->plan->values[step->in[i]].base != FR_BASE_ARENA)
            name = check_value(run, step->in[i]);
    }
    for (int o = 0; after && step->pass == FR_FORWARD && o < step->node->outputs && !name; o++)
        name = check_value(run, step->out[o]);
    return name;
}

fr_status fr_plan_find_nonfinite(const fr_plan *plan, const fr_run_args *args, const char **tensor,
                                 fr_error *error)
{
    running run;
    fr_run_args fresh = *args;
    fresh.accumulate_gradients = false;
    *tensor = NULL;
    FR_TRY(start(&run, plan, &fresh, error));
    for (int s = 0; s < plan->step_count && !*tensor; s++) {
        const fr_step *step = &plan->steps[s];
        *tensor = check_step(&run, step, false);
        if (*tensor)
            break;
        run_step(&run, step);
        *tensor = check_step(&run, step, true);
    }
    return FR_OK;
}
