/* Making a plan: from a graph and an extent to a list of bound kernel calls over one arena.
 *
 * The pipeline: autograd.c writes steps over numbered values; here every step gets the best kernel that
 * accepts it and the scratch that kernel asks for; the first and last step that touch a value are its
 * lifetime; layout.c places the values of the arena; and the value numbers become slots, the pointers to
 * fill in before a call. All of this happens before any clock is charged, so it is written for clarity;
 * what it leaves behind is flat arrays that run.c walks without a decision.
 */
#include "graph/plan_internal.h"

#include <string.h>

#define MAX_TOKENS ((int64_t)1 << 31) /* of one run: ids and row numbers stay far from overflow */

/* ---- values and steps ---- */

/* clang-format off */
static const fr_dtype kind_dtype[][3] = {
    /*                      F32     BF16     F64 numerics */
    [FR_KIND_IDS]        = {FR_I32, FR_I32,  FR_I32},
    [FR_KIND_PARAMETER]  = {FR_F32, FR_F32,  FR_F64},
    [FR_KIND_STREAM]     = {FR_F32, FR_F32,  FR_F64},
    [FR_KIND_ACTIVATION] = {FR_F32, FR_BF16, FR_F64},
    [FR_KIND_STATISTIC]  = {FR_F32, FR_F32,  FR_F64},
};
/* clang-format on */

fr_dtype fr_plan_dtype(const fr_plan *plan, const fr_tensor *tensor)
{
    if (tensor->kind == FR_KIND_STREAM && plan->numerics == FR_NUMERICS_BF16 && plan->residual_bf16)
        return FR_BF16;
    return kind_dtype[tensor->kind][plan->numerics];
}

int64_t fr_plan_elements(const fr_plan *plan, const fr_tensor *tensor)
{
    int64_t rows = tensor->rows == FR_TOKENS ? plan->extent.rows * plan->extent.T : tensor->rows, elements;
    if (__builtin_mul_overflow(rows, tensor->columns, &elements) || elements > FR_MAX_ELEMENTS)
        return -1;
    return elements;
}

void *fr_plan_memory(fr_planning *planning, size_t bytes)
{
    void *memory = fr_arena_alloc(&planning->plan->memory, bytes ? bytes : 1);
    if (!memory)
        fr_error_memory(planning->error, bytes, "a plan");
    return memory;
}

/* The array with room for one more item, or NULL; what it outgrew stays in the arena until the plan is
 * freed. */
static void *grow(fr_planning *planning, void *array, int *capacity, int count, size_t item_bytes)
{
    if (count < *capacity)
        return array;
    int wanted = *capacity ? 2 * *capacity : 256;
    void *bigger = fr_plan_memory(planning, (size_t)wanted * item_bytes);
    if (!bigger)
        return NULL;
    if (count)
        memcpy(bigger, array, (size_t)count * item_bytes);
    *capacity = wanted;
    return bigger;
}

static fr_value *new_value(fr_planning *planning, int64_t elements, fr_dtype dtype)
{
    fr_plan *plan = planning->plan;
    fr_value *values =
        grow(planning, plan->values, &plan->value_capacity, plan->value_count, sizeof *plan->values);
    if (!values)
        return NULL;
    plan->values = values;
    fr_value *value = &plan->values[plan->value_count++];
    *value = (fr_value){
        .dtype = dtype, .elements = elements, .base = FR_BASE_ARENA, .first = INT32_MAX, .last = -1};
    value->bytes = (size_t)elements * fr_dtype_bytes(dtype);
    return value;
}

/* The number of a run-time input among the plan's, added if it is new; -1 when there are too many. */
static int input_number(fr_planning *planning, const fr_tensor *tensor, int64_t elements)
{
    fr_plan *plan = planning->plan;
    if (plan->input_count == FR_MAX_PLAN_INPUTS) {
        fr_error_set(planning->error, FR_BAD_USAGE, tensor->name, NULL,
                     "a plan takes at most %d run-time inputs", FR_MAX_PLAN_INPUTS);
        return -1;
    }
    plan->inputs[plan->input_count] = (fr_plan_input){.tensor = tensor,
                                                      .dtype = fr_plan_dtype(plan, tensor),
                                                      .elements = elements,
                                                      .least = INT32_MIN,
                                                      .most = INT32_MAX};
    return plan->input_count++;
}

/* Where a value lives: parameters and inputs with the caller, all else in the arena. */
static bool find_base(fr_planning *planning, const fr_tensor *tensor, bool gradient, fr_value *value)
{
    if (tensor->parameter >= 0) {
        int64_t offset = planning->graph->parameters[tensor->parameter].offset;
        value->base = gradient ? FR_BASE_GRADIENTS : FR_BASE_PARAMETERS;
        value->offset = (size_t)offset * fr_dtype_bytes(value->dtype);
    } else if (!tensor->producer || planning->given[tensor->id]) {
        int input = input_number(planning, tensor, value->elements);
        value->base = FR_BASE_INPUTS + input;
        return input >= 0;
    }
    return true;
}

int fr_plan_value(fr_planning *planning, const fr_tensor *tensor, bool gradient)
{
    fr_plan *plan = planning->plan;
    int64_t elements = fr_plan_elements(plan, tensor);
    if (elements < 0) {
        fr_error_set(planning->error, FR_BAD_USAGE, tensor->name, "use fewer rows",
                     "a tensor of more than %lld elements", (long long)FR_MAX_ELEMENTS);
        return FR_NO_VALUE;
    }
    fr_value *value = new_value(planning, elements, fr_plan_dtype(plan, tensor));
    if (!value)
        return FR_NO_VALUE;
    if (tensor->rows == FR_TOKENS)
        value->row_bytes = (size_t)tensor->columns * fr_dtype_bytes(value->dtype);
    value->name = gradient ? fr_arena_printf(&plan->memory, "gradient of %s", tensor->name) : tensor->name;
    if (!value->name) {
        fr_error_memory(planning->error, strlen(tensor->name), "a plan");
        return FR_NO_VALUE;
    }
    return find_base(planning, tensor, gradient, value) ? plan->value_count - 1 : FR_NO_VALUE;
}

fr_step *fr_plan_step(fr_planning *planning, const fr_node *node, fr_pass pass)
{
    fr_plan *plan = planning->plan;
    fr_step *steps = grow(planning, plan->steps, &plan->step_capacity, plan->step_count, sizeof *plan->steps);
    if (!steps)
        return NULL;
    plan->steps = steps;
    fr_step *step = &plan->steps[plan->step_count++];
    *step = (fr_step){.node = node, .pass = pass, .scratch = FR_NO_VALUE, .constants = FR_NO_VALUE};
    for (int i = 0; i < FR_MAX_INPUTS; i++)
        step->in[i] = step->grad_in[i] = step->parameter[i] = FR_NO_VALUE;
    for (int o = 0; o < FR_MAX_OUTPUTS; o++)
        step->out[o] = step->grad_out[o] = FR_NO_VALUE;
    return step;
}

/* ---- kernels ---- */

void fr_plan_describe_call(const fr_plan *plan, const fr_node *node, fr_call *call)
{
    call->node = node;
    call->extent = plan->extent;
    call->tokens = plan->extent.rows * plan->extent.T;
    call->continuing = plan->continuing;
    for (int i = 0; i < node->inputs; i++)
        if (node->in[i])
            call->in_dtype[i] = fr_plan_dtype(plan, node->in[i]);
    for (int o = 0; o < node->outputs; o++)
        call->out_dtype[o] = fr_plan_dtype(plan, node->out[o]);
}

static void describe_step(const fr_planning *planning, fr_step *step)
{
    fr_plan_describe_call(planning->plan, step->node, &step->call);
    for (int i = 0; i < step->node->inputs; i++)
        if (step->grad_in[i] != FR_NO_VALUE)
            step->call.wanted |= 1u << i;
    if (planning->kept && step->node->index < planning->graph->node_count)
        step->call.sequence_offset = planning->kept[step->node->index];
}

static const fr_kernel *find_kernel(const fr_kernel_table *table, const fr_step *step)
{
    for (int k = table ? table->count - 1 : -1; k >= 0; k--) {
        const fr_kernel *kernel = table->kernels[k];
        if (kernel->pass == step->pass && strcmp(kernel->op, step->node->op->name) == 0 &&
            (!kernel->accepts || kernel->accepts(&step->call)))
            return kernel;
    }
    return NULL;
}

static fr_status bind_kernel(fr_planning *planning, fr_step *step)
{
    const fr_kernel_table *table = planning->options->kernels;
    const fr_op *op = step->node->op;
    describe_step(planning, step);
    step->kernel = table && table->reference_only ? NULL : find_kernel(table, step);
    if (step->kernel)
        return FR_OK;
    step->kernel = &op->reference[step->pass];
    if (!step->kernel->run)
        return fr_error_set(planning->error, FR_BAD_USAGE, op->name, NULL, "the operator has no %s kernel",
                            step->pass == FR_FORWARD ? "forward" : "backward");
    if (table && table->forbid_fallback && !table->reference_only && !op->reference_suffices)
        return fr_error_set(planning->error, FR_BAD_ENVIRONMENT, op->name,
                            "FRONTIER_KERNELS=ref runs the plain reference, slowly",
                            "no fast %s kernel takes this shape and dtype",
                            step->pass == FR_FORWARD ? "forward" : "backward");
    return FR_OK;
}

int fr_plan_bytes_value(fr_planning *planning, size_t bytes)
{
    fr_value *value = new_value(planning, 0, FR_F32);
    if (!value)
        return FR_NO_VALUE;
    value->bytes = bytes;
    return planning->plan->value_count - 1;
}

static fr_status add_scratch(fr_planning *planning, int step_index)
{
    fr_step *step = &planning->plan->steps[step_index];
    size_t bytes = step->kernel->scratch ? step->kernel->scratch(&step->call) : 0;
    if (!bytes)
        return FR_OK;
    step->scratch = fr_plan_bytes_value(planning, bytes);
    return step->scratch == FR_NO_VALUE ? planning->error->status : FR_OK;
}

/* New constants: filled once, here, or given room in the arena to be filled in every run. */
static fr_shared_constants *new_constants(fr_planning *planning, const fr_op *op, const fr_constants *want)
{
    fr_plan *plan = planning->plan;
    fr_shared_constants *shared = fr_plan_memory(planning, sizeof *shared);
    if (!shared)
        return NULL;
    *shared = (fr_shared_constants){.op = op, .want = *want, .value = FR_NO_VALUE, .next = plan->constants};
    if (plan->continuing.chunk > 0) {
        shared->value = fr_plan_bytes_value(planning, want->bytes);
        if (shared->value == FR_NO_VALUE)
            return NULL;
    } else {
        shared->data = fr_plan_memory(planning, want->bytes);
        if (!shared->data)
            return NULL;
        op->fill_constants(want, shared->data);
    }
    plan->constants = shared;
    return shared;
}

/* Constants of a step: those of an earlier node with the same key, or new ones. */
static fr_status add_constants(fr_planning *planning, fr_step *step)
{
    fr_plan *plan = planning->plan;
    const fr_op *op = step->node->op;
    if (!op->constants)
        return FR_OK;
    fr_constants want = {0};
    fr_extent all = {1, plan->extent.rows * plan->extent.T};
    op->constants(step->node, plan->continuing.chunk > 0 ? all : plan->extent, &want);
    fr_shared_constants *shared = plan->constants;
    while (shared && (shared->op != op || memcmp(shared->want.key, want.key, sizeof want.key) != 0))
        shared = shared->next;
    if (!shared)
        shared = new_constants(planning, op, &want);
    if (!shared)
        return planning->error->status;
    step->call.constants = shared->data;
    step->constants = shared->value;
    return FR_OK;
}

static fr_status bind_steps(fr_planning *planning)
{
    for (int s = 0; s < planning->plan->step_count; s++) {
        fr_step *step = &planning->plan->steps[s];
        if (step->node->op->check_extent && planning->plan->continuing.chunk == 0) /* else in every run */
            FR_TRY(step->node->op->check_extent(step->node, planning->plan->extent, planning->error));
        FR_TRY(bind_kernel(planning, step));
        FR_TRY(add_constants(planning, step));
        FR_TRY(add_scratch(planning, s));
    }
    return FR_OK;
}

static void find_id_ranges(fr_plan *plan)
{
    for (int s = 0; s < plan->step_count; s++) {
        const fr_step *step = &plan->steps[s];
        for (int i = 0; step->node->op->ids_range && i < step->node->inputs; i++) {
            int input = step->in[i] < 0 ? -1 : plan->values[step->in[i]].base - FR_BASE_INPUTS;
            if (input < 0 || plan->inputs[input].dtype != FR_I32)
                continue;
            int64_t least = INT32_MIN, most = INT32_MAX;
            step->node->op->ids_range(step->node, i, &least, &most);
            fr_plan_input *ids = &plan->inputs[input];
            ids->least = least > ids->least ? least : ids->least;
            ids->most = most < ids->most ? most : ids->most;
        }
    }
}

static void add_up_flops(fr_plan *plan)
{
    for (int s = 0; s < plan->step_count; s++) {
        const fr_node *node = plan->steps[s].node;
        double (*needed)(const fr_node *, fr_extent, fr_pass) = node->op->flops;
        double (*full)(const fr_node *, fr_extent, fr_pass) =
            node->op->flops_full ? node->op->flops_full : needed;
        bool both = plan->train && node->op->backward_in_forward;
        if (needed)
            plan->flops += needed(node, plan->extent, plan->steps[s].pass) +
                           (both ? needed(node, plan->extent, FR_BACKWARD) : 0);
        if (full)
            plan->flops_full += full(node, plan->extent, plan->steps[s].pass) +
                                (both ? full(node, plan->extent, FR_BACKWARD) : 0);
    }
}

/* ---- lifetimes and places ---- */

static void touch(fr_plan *plan, int value, int step)
{
    if (value == FR_NO_VALUE)
        return;
    fr_value *v = &plan->values[value];
    v->first = step < v->first ? step : v->first;
    v->last = step > v->last ? step : v->last;
}

static void find_lifetimes(fr_plan *plan)
{
    for (int s = 0; s < plan->step_count; s++) {
        const fr_step *step = &plan->steps[s];
        for (int i = 0; i < FR_MAX_INPUTS; i++) {
            touch(plan, step->in[i], s);
            touch(plan, step->grad_in[i], s);
        }
        for (int o = 0; o < FR_MAX_OUTPUTS; o++) {
            touch(plan, step->out[o], s);
            touch(plan, step->grad_out[o], s);
        }
        touch(plan, step->scratch, s);
        touch(plan, step->constants, 0); /* made before the first step, shared by many */
        touch(plan, step->constants, plan->step_count);
    }
    touch(plan, plan->positions, 0);
    for (int i = 0; i < plan->output_count; i++)
        touch(plan, plan->outputs[i].value, plan->step_count); /* until the caller has read it */
}

static fr_status check_total(fr_planning *planning)
{
    double total = 0;
    for (int v = 0; v < planning->plan->value_count; v++)
        total +=
            planning->plan->values[v].base == FR_BASE_ARENA ? (double)planning->plan->values[v].bytes : 0;
    if (total > (double)((int64_t)1 << 45))
        return fr_error_set(planning->error, FR_BAD_USAGE, "plan", "use fewer rows or shorter ones",
                            "needs up to %.3g bytes of memory", total);
    return FR_OK;
}

static fr_status place_values(fr_planning *planning)
{
    fr_plan *plan = planning->plan;
    FR_TRY(check_total(planning));
    fr_block *blocks = fr_plan_memory(planning, (size_t)plan->value_count * sizeof *blocks);
    int *order = fr_plan_memory(planning, (size_t)plan->value_count * sizeof *order);
    int *owner = fr_plan_memory(planning, (size_t)plan->value_count * sizeof *owner);
    if (!blocks || !order || !owner)
        return planning->error->status;
    int count = 0;
    for (int v = 0; v < plan->value_count; v++) {
        const fr_value *value = &plan->values[v];
        if (value->base != FR_BASE_ARENA || value->first > value->last)
            continue;
        owner[count] = v;
        blocks[count++] = (fr_block){.bytes = value->bytes, .first = value->first, .last = value->last};
    }
    plan->arena_bytes = fr_layout(blocks, count, order);
    for (int b = 0; b < count; b++)
        plan->values[owner[b]].offset = blocks[b].offset;
    return FR_OK;
}

/* ---- slots ---- */

static void add_slot(fr_plan *plan, fr_step *step, int value, size_t field)
{
    if (value == FR_NO_VALUE)
        return;
    const fr_value *v = &plan->values[value];
    plan->slots[plan->slot_count++] = (fr_slot){(uint16_t)field, (uint16_t)v->base, v->offset, v->row_bytes};
    step->slots++;
}

static fr_status write_slots(fr_planning *planning)
{
    enum { POINTERS = 2 * FR_MAX_INPUTS + 2 * FR_MAX_OUTPUTS + 2 };
    fr_plan *plan = planning->plan;
    plan->slots = fr_plan_memory(planning, (size_t)plan->step_count * POINTERS * sizeof *plan->slots);
    if (!plan->slots)
        return planning->error->status;
    for (int s = 0; s < plan->step_count; s++) {
        fr_step *step = &plan->steps[s];
        step->slot = plan->slot_count;
        for (int i = 0; i < FR_MAX_INPUTS; i++) {
            add_slot(plan, step, step->in[i], offsetof(fr_call, in) + (size_t)i * sizeof(void *));
            add_slot(plan, step, step->grad_in[i], offsetof(fr_call, grad_in) + (size_t)i * sizeof(void *));
        }
        for (int o = 0; o < FR_MAX_OUTPUTS; o++) {
            add_slot(plan, step, step->out[o], offsetof(fr_call, out) + (size_t)o * sizeof(void *));
            add_slot(plan, step, step->grad_out[o], offsetof(fr_call, grad_out) + (size_t)o * sizeof(void *));
        }
        add_slot(plan, step, step->scratch, offsetof(fr_call, scratch));
        add_slot(plan, step, step->constants, offsetof(fr_call, constants));
    }
    return FR_OK;
}

/* ---- the whole ---- */

static fr_status check_options(const fr_graph *graph, const fr_plan_options *options, fr_error *error)
{
    FR_TRY(fr_graph_check(graph, error));
    fr_extent extent = options->extent;
    if (extent.rows < 1 || extent.T < 1 || extent.T > MAX_TOKENS / extent.rows)
        return fr_error_set(error, FR_BAD_USAGE, "plan", NULL,
                            "%lld rows of %lld tokens: need at least one and at most 2^31 tokens",
                            (long long)extent.rows, (long long)extent.T);
    if (!options->train && options->output_count < 1)
        return fr_error_set(error, FR_BAD_USAGE, "plan", "name an output, or train",
                            "nothing is wanted of this plan");
    fr_continuing continuing = options->continuing;
    if (continuing.chunk < 0 || continuing.positions < 0 || continuing.chunk > MAX_TOKENS ||
        continuing.positions > MAX_TOKENS ||
        (continuing.chunk && (options->train || extent.T > continuing.chunk)))
        return fr_error_set(error, FR_BAD_USAGE, "plan", "rows of at most `chunk` tokens, without training",
                            "rows of %lld tokens cannot continue sequences by %lld%s", (long long)extent.T,
                            (long long)continuing.chunk, options->train ? " and train" : "");
    return FR_OK;
}

static fr_status start_planning(fr_planning *planning)
{
    const fr_graph *graph = planning->graph;
    size_t tensors = (size_t)graph->tensor_count;
    planning->data = fr_plan_memory(planning, tensors * sizeof *planning->data);
    planning->gradient = fr_plan_memory(planning, tensors * sizeof *planning->gradient);
    planning->needed = fr_plan_memory(planning, (size_t)graph->node_count);
    planning->wanted = fr_plan_memory(planning, tensors);
    planning->given = fr_plan_memory(planning, tensors);
    if (!planning->data || !planning->gradient || !planning->needed || !planning->wanted || !planning->given)
        return planning->error->status;
    for (size_t t = 0; t < tensors; t++)
        planning->data[t] = planning->gradient[t] = FR_NO_VALUE;
    return FR_OK;
}

static fr_status mark_given(fr_planning *planning)
{
    const fr_plan_options *options = planning->options;
    for (int i = 0; i < options->given_count; i++) {
        const fr_tensor *tensor = fr_graph_find(planning->graph, options->given[i]);
        if (!tensor || !tensor->producer || options->train)
            return fr_error_set(planning->error, FR_BAD_USAGE, options->given[i],
                                "only computed tensors of a forward plan can be given",
                                "this tensor cannot be given");
        planning->given[tensor->id] = true;
    }
    return FR_OK;
}

static fr_status list_outputs(fr_planning *planning)
{
    fr_plan *plan = planning->plan;
    plan->outputs = fr_plan_memory(planning, (size_t)planning->options->output_count * sizeof *plan->outputs);
    if (!plan->outputs)
        return planning->error->status;
    for (int i = 0; i < planning->options->output_count; i++) {
        const fr_tensor *tensor = fr_graph_find(planning->graph, planning->options->outputs[i]);
        plan->outputs[plan->output_count++] =
            (fr_plan_output_entry){tensor->name, planning->data[tensor->id]};
    }
    return FR_OK;
}

static fr_status build(fr_planning *planning)
{
    FR_TRY(start_planning(planning));
    FR_TRY(mark_given(planning));
    FR_TRY(fr_plan_write_steps(planning));
    FR_TRY(list_outputs(planning));
    if (planning->plan->continuing.chunk > 0)
        FR_TRY(fr_plan_lay_out_sequence(planning));
    FR_TRY(fr_plan_find_levels(planning));
    FR_TRY(bind_steps(planning));
    find_id_ranges(planning->plan);
    add_up_flops(planning->plan);
    find_lifetimes(planning->plan);
    FR_TRY(place_values(planning));
    return write_slots(planning);
}

fr_status fr_plan_create(fr_plan **out, const fr_graph *graph, const fr_plan_options *options,
                         fr_error *error)
{
    *out = NULL;
    FR_TRY(check_options(graph, options, error));
    fr_plan *plan = fr_allocate(sizeof *plan);
    if (!plan)
        return fr_error_memory(error, sizeof *plan, "a plan");
    fr_arena_init(&plan->memory, 256 << 10);
    plan->parameters = graph->parameters;
    plan->parameter_count = graph->parameter_count;
    plan->flat_elements = graph->flat_elements;
    plan->extent = options->extent;
    plan->numerics = options->numerics;
    plan->residual_bf16 = options->residual_bf16;
    plan->train = options->train;
    plan->continuing = options->continuing;
    plan->positions = FR_NO_VALUE;
    fr_error unused = {0};
    fr_planning planning = {.plan = plan,
                            .graph = graph,
                            .options = options,
                            .error = error ? error : &unused};
    fr_status status = build(&planning);
    if (status != FR_OK) {
        fr_plan_free(plan);
        return status;
    }
    *out = plan;
    return FR_OK;
}

void fr_plan_free(fr_plan *plan)
{
    if (!plan)
        return;
    fr_arena_release(&plan->memory);
    fr_deallocate(plan);
}

size_t fr_plan_arena_bytes(const fr_plan *plan)
{
    return plan->arena_bytes;
}

size_t fr_plan_sequence_bytes(const fr_plan *plan)
{
    return plan->sequence_bytes;
}

double fr_plan_flops(const fr_plan *plan, bool full)
{
    return full ? plan->flops_full : plan->flops;
}

fr_extent fr_plan_extent(const fr_plan *plan)
{
    return plan->extent;
}

bool fr_plan_segmented(const fr_plan *plan)
{
    for (int s = 0; s < plan->step_count; s++)
        if (!plan->steps[s].node->op->continues)
            return false;
    return true;
}

void fr_plan_visit(const fr_plan *plan, fr_plan_visitor visit, void *context)
{
    for (int s = 0; s < plan->step_count; s++)
        visit(context, plan->steps[s].node, plan->steps[s].pass, plan->steps[s].kernel);
}
