/* Which nodes run, and the steps of a plan: forward in building order, then backward in reverse.
 *
 * A node is needed if a wanted output or a loss depends on it. A tensor's gradient is wanted if a
 * parameter lies behind it. The gradient of a tensor with several consumers is the sum of their shares:
 * the first share in running order overwrites, the later ones add, and by the time the producer's backward
 * step comes all consumers have run, since they were built later. Shares of a parameter go straight to the
 * caller's vector, where the first one overwrites only if the caller does not accumulate over runs.
 *
 * Operators that make gradients while going forward (head and loss) give their shares in the forward pass.
 * When one tensor is several inputs of one node, kernels would have to take care of writing the same
 * memory twice; so the second share goes to memory of its own and a step of its own adds it.
 */
#include "graph/plan_internal.h"

#include <string.h>

/* ---- two operators of autograd's own ---- */

static fr_status no_infer(fr_node *node, fr_error *error)
{
    return fr_error_set(error, FR_BUG, node->op->name, NULL, "this operator exists in plans only");
}

/* The seed of a backward pass: the gradient of the loss is 1. */
static void seed_backward(const fr_call *call)
{
    const double one = 1;
    fr_store_doubles(call->grad_in[0], call->in_dtype[0], 0, 1, &one, false);
}

static const fr_op seed_op = {
    .name = "seed",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 0,
    .infer = no_infer,
    .reference_suffices = true,
    .reference = {{NULL, FR_FORWARD, NULL, NULL, NULL, NULL},
                  {"seed", FR_BACKWARD, "seed_backward", seed_backward, NULL, NULL}},
};

/* A tensor seen a second time by one node: out is the same tensor, grad_in += grad_out. */
static void share_backward(const fr_call *call)
{
    const fr_tensor *tensor = call->node->in[0];
    int64_t rows = tensor->rows == FR_TOKENS ? call->tokens : tensor->rows;
    double piece[512];
    for (int64_t i = 0, count; i < rows * tensor->columns; i += count) {
        count = rows * tensor->columns - i < 512 ? rows * tensor->columns - i : 512;
        fr_load_doubles(call->grad_out[0], call->out_dtype[0], i, count, piece);
        fr_store_doubles(call->grad_in[0], call->in_dtype[0], i, count, piece, call->accumulate[0]);
    }
}

static const fr_op share_op = {
    .name = "share",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .infer = no_infer,
    .reference_suffices = true,
    .reference = {{NULL, FR_FORWARD, NULL, NULL, NULL, NULL},
                  {"share", FR_BACKWARD, "share_backward", share_backward, NULL, NULL}},
};

/* A node of one of these, at the place in the graph of the node it serves. */
static const fr_node *own_node(fr_planning *planning, const fr_op *op, fr_tensor *tensor, int index)
{
    fr_node *node = fr_plan_memory(planning, sizeof *node);
    if (!node)
        return NULL;
    *node = (fr_node){.op = op, .index = index, .inputs = 1, .outputs = op->outputs, .in = {tensor}};
    if (op->outputs)
        node->out[0] = tensor;
    return node;
}

/* ---- which nodes and gradients ---- */

/* Marks everything the marked nodes depend on. */
static void mark_ancestors(const fr_planning *planning, bool *needed)
{
    const fr_graph *graph = planning->graph;
    for (int n = graph->node_count - 1; n >= 0; n--)
        for (int i = 0; needed[n] && i < graph->nodes[n]->inputs; i++) {
            const fr_tensor *tensor = graph->nodes[n]->in[i];
            if (tensor && tensor->producer && !planning->given[tensor->id])
                needed[tensor->producer->index] = true;
        }
}

/* A head loss below the loss would already have trained with weight one: its share would be wrong. */
static fr_status check_loss(fr_planning *planning, const fr_tensor *loss, bool *ancestors)
{
    ancestors[loss->producer->index] = true;
    mark_ancestors(planning, ancestors);
    for (int n = 0; n < loss->producer->index; n++)
        if (ancestors[n] && planning->graph->nodes[n]->op->backward_in_forward)
            return fr_error_set(
                planning->error, FR_BAD_USAGE, planning->graph->nodes[n]->out[0]->name,
                "several head losses are summed without help; weigh them with the option weight",
                "the tensor 'loss' is computed from a %s, which trains on its own",
                planning->graph->nodes[n]->op->name);
    return FR_OK;
}

static fr_status mark_losses(fr_planning *planning)
{
    const fr_graph *graph = planning->graph;
    const fr_tensor *loss = fr_graph_find(graph, "loss");
    if (!loss || !loss->producer || loss->rows != 1 || loss->columns != 1)
        return fr_error_set(planning->error, FR_BAD_USAGE, "loss",
                            "build one with fr_head_loss, or name a 1 x 1 tensor 'loss'",
                            "a training plan needs a computed 1 x 1 tensor named 'loss'");
    bool *ancestors = fr_plan_memory(planning, (size_t)graph->node_count);
    if (!ancestors)
        return planning->error->status;
    FR_TRY(check_loss(planning, loss, ancestors));
    planning->needed[loss->producer->index] = true;
    for (int n = 0; n < graph->node_count; n++)
        planning->needed[n] |= graph->nodes[n]->op->backward_in_forward;
    return FR_OK;
}

static fr_status unknown_output(fr_planning *planning, const char *name)
{
    const fr_graph *graph = planning->graph;
    const char **names = fr_plan_memory(planning, (size_t)graph->tensor_count * sizeof *names), *nearest;
    if (!names)
        return planning->error->status;
    for (int t = 0; t < graph->tensor_count; t++)
        names[t] = graph->tensors[t]->name;
    nearest = name ? fr_nearest(name, names, (size_t)graph->tensor_count) : NULL;
    char hint[128] = "";
    if (nearest)
        snprintf(hint, sizeof hint, "did you mean '%.100s'?", nearest);
    return fr_error_set(planning->error, FR_BAD_USAGE, name ? name : "(null)", hint,
                        "the graph has no tensor of this name");
}

static fr_status mark_outputs(fr_planning *planning)
{
    for (int i = 0; i < planning->options->output_count; i++) {
        const char *name = planning->options->outputs[i];
        const fr_tensor *tensor = name ? fr_graph_find(planning->graph, name) : NULL;
        if (!tensor)
            return unknown_output(planning, name);
        if (!tensor->producer)
            return fr_error_set(planning->error, FR_BAD_USAGE, name, NULL,
                                "an output must be computed, this is an input");
        planning->needed[tensor->producer->index] = true;
    }
    return FR_OK;
}

static bool differentiable(const fr_node *node, int input)
{
    return node->in[input] && !(node->op->no_gradient >> input & 1);
}

static void mark_wanted_gradients(fr_planning *planning)
{
    const fr_graph *graph = planning->graph;
    for (int t = 0; t < graph->tensor_count; t++)
        planning->wanted[t] = graph->tensors[t]->parameter >= 0;
    for (int n = 0; n < graph->node_count; n++) {
        const fr_node *node = graph->nodes[n];
        bool any = false;
        for (int i = 0; i < node->inputs; i++)
            any |= differentiable(node, i) && planning->wanted[node->in[i]->id];
        for (int o = 0; o < node->outputs; o++)
            planning->wanted[node->out[o]->id] = any && !(node->op->detached_outputs >> o & 1);
    }
}

/* ---- forward steps ---- */

static int data_value(fr_planning *planning, const fr_tensor *tensor)
{
    int *value = &planning->data[tensor->id];
    if (*value == FR_NO_VALUE)
        *value = fr_plan_value(planning, tensor, false);
    return *value;
}

static fr_status bind_data(fr_planning *planning, fr_step *step, bool backward)
{
    const fr_node *node = step->node;
    for (int i = 0; i < node->inputs; i++) {
        if (!node->in[i])
            continue;
        int value = data_value(planning, node->in[i]);
        if (value == FR_NO_VALUE)
            return planning->error->status;
        bool kept = node->op->keeps_inputs >> i & 1 || planning->plan->values[value].base != FR_BASE_ARENA;
        step->in[i] = !backward || kept ? value : FR_NO_VALUE;
        step->parameter[i] = node->in[i]->parameter;
    }
    for (int o = 0; o < node->outputs; o++) {
        if (backward && !(node->op->keeps_outputs >> o & 1))
            continue;
        step->out[o] = data_value(planning, node->out[o]);
        if (step->out[o] == FR_NO_VALUE)
            return planning->error->status;
    }
    return FR_OK;
}

/* ---- gradients ---- */

static bool seen_before(const fr_node *node, int input)
{
    for (int i = 0; i < input; i++)
        if (node->in[i] == node->in[input])
            return true;
    return false;
}

/* Lets a step write its share of the gradient of its input i. */
static fr_status add_share(fr_planning *planning, int step_index, int i)
{
    fr_tensor *tensor = planning->plan->steps[step_index].node->in[i];
    int *gradient = &planning->gradient[tensor->id];
    bool first = *gradient == FR_NO_VALUE;
    if (first)
        *gradient = fr_plan_value(planning, tensor, true);
    if (*gradient == FR_NO_VALUE)
        return planning->error->status;
    fr_step *step = &planning->plan->steps[step_index];
    step->grad_in[i] = *gradient;
    step->call.accumulate[i] = !first;
    if (first && tensor->parameter >= 0)
        step->first_gradient |= 1u << i;
    return FR_OK;
}

/* The same for an input seen before in this step: into memory of its own, then added by a step of its own. */
static fr_status add_repeated_share(fr_planning *planning, int step_index, int i)
{
    fr_tensor *tensor = planning->plan->steps[step_index].node->in[i];
    int own = fr_plan_value(planning, tensor, true);
    const fr_node *node =
        own_node(planning, &share_op, tensor, planning->plan->steps[step_index].node->index);
    if (own == FR_NO_VALUE || !node)
        return planning->error->status;
    planning->plan->values[own].base = FR_BASE_ARENA;
    planning->plan->steps[step_index].grad_in[i] = own;
    fr_step *step = fr_plan_step(planning, node, FR_BACKWARD);
    if (!step)
        return planning->error->status;
    step->grad_out[0] = own;
    step->grad_in[0] = planning->gradient[tensor->id];
    step->call.accumulate[0] = true;
    return FR_OK;
}

static fr_status add_shares(fr_planning *planning, int step_index)
{
    const fr_node *node = planning->plan->steps[step_index].node;
    for (int i = 0; i < node->inputs; i++)
        if (differentiable(node, i) && planning->wanted[node->in[i]->id] && !seen_before(node, i))
            FR_TRY(add_share(planning, step_index, i));
    for (int i = 0; i < node->inputs; i++)
        if (differentiable(node, i) && planning->wanted[node->in[i]->id] && seen_before(node, i))
            FR_TRY(add_repeated_share(planning, step_index, i));
    return FR_OK;
}

static fr_status write_forward(fr_planning *planning)
{
    const fr_graph *graph = planning->graph;
    for (int n = 0; n < graph->node_count; n++) {
        if (!planning->needed[n])
            continue;
        int index = planning->plan->step_count;
        fr_step *step = fr_plan_step(planning, graph->nodes[n], FR_FORWARD);
        if (!step)
            return planning->error->status;
        FR_TRY(bind_data(planning, step, false));
        if (planning->options->train && graph->nodes[n]->op->backward_in_forward)
            FR_TRY(add_shares(planning, index));
    }
    return FR_OK;
}

/* The loss of operators that do not train by themselves starts the backward pass with gradient 1. */
static fr_status write_seed(fr_planning *planning)
{
    fr_tensor *loss = fr_graph_find(planning->graph, "loss");
    if (loss->producer->op->backward_in_forward)
        return FR_OK;
    if (!planning->wanted[loss->id])
        return fr_error_set(planning->error, FR_BAD_USAGE, "loss", NULL,
                            "the loss does not depend on any parameter");
    const fr_node *node = own_node(planning, &seed_op, loss, loss->producer->index);
    int index = planning->plan->step_count;
    if (!node || !fr_plan_step(planning, node, FR_BACKWARD))
        return planning->error->status;
    return add_share(planning, index, 0);
}

static fr_status write_backward_node(fr_planning *planning, const fr_node *node)
{
    bool reached = false;
    for (int o = 0; o < node->outputs; o++)
        reached |= planning->gradient[node->out[o]->id] != FR_NO_VALUE;
    if (!reached)
        return FR_OK;
    if (!node->op->reference[FR_BACKWARD].run)
        return fr_error_set(planning->error, FR_BAD_USAGE, node->out[0]->name, NULL,
                            "operator %s has no backward kernel", node->op->name);
    int index = planning->plan->step_count;
    fr_step *step = fr_plan_step(planning, node, FR_BACKWARD);
    if (!step)
        return planning->error->status;
    FR_TRY(bind_data(planning, step, true));
    for (int o = 0; o < node->outputs; o++)
        step->grad_out[o] = planning->gradient[node->out[o]->id];
    return add_shares(planning, index);
}

static fr_status write_backward(fr_planning *planning)
{
    const fr_graph *graph = planning->graph;
    FR_TRY(write_seed(planning));
    for (int n = graph->node_count - 1; n >= 0; n--)
        if (planning->needed[n] && !graph->nodes[n]->op->backward_in_forward)
            FR_TRY(write_backward_node(planning, graph->nodes[n]));
    return FR_OK;
}

/* Parameters nothing depends on have a gradient too: zero. */
static fr_status list_unreached(fr_planning *planning)
{
    const fr_graph *graph = planning->graph;
    fr_plan *plan = planning->plan;
    plan->unreached = fr_plan_memory(planning, (size_t)graph->parameter_count * sizeof *plan->unreached);
    if (!plan->unreached)
        return planning->error->status;
    for (int p = 0; p < graph->parameter_count; p++)
        if (planning->gradient[graph->parameters[p].tensor->id] == FR_NO_VALUE)
            plan->unreached[plan->unreached_count++] = &graph->parameters[p];
    return FR_OK;
}

fr_status fr_plan_write_steps(fr_planning *planning)
{
    FR_TRY(mark_outputs(planning));
    if (planning->options->train)
        FR_TRY(mark_losses(planning));
    mark_ancestors(planning, planning->needed);
    mark_wanted_gradients(planning);
    FR_TRY(write_forward(planning));
    if (!planning->options->train)
        return FR_OK;
    FR_TRY(write_backward(planning));
    return list_unreached(planning);
}
