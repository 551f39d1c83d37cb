/* Plans that continue sequences: memory of the tokens gone by, and the positions of those of a run.
 *
 * Training sees whole rows; decoding sees a few new tokens of many sequences, each at its own position. The
 * graph is the same. Most operators work token by token and need nothing; the others say how much of a
 * sequence they keep, and this file lays those parts end to end, for all nodes of the graph whether a plan
 * runs them or not: so the memory of a sequence has one layout for every plan that may continue it. What an
 * operator computes from positions alone (rotary's angles) is made here for exactly the tokens of the run,
 * which puts no end to positions. An operator that mixes tokens and has no such form is refused by name.
 */
#include "graph/plan_internal.h"

enum { PART_ALIGN = 64 };

static fr_status refuse(const fr_node *node, fr_error *error)
{
    return fr_error_set(error, FR_BAD_USAGE, node->out[0]->name,
                        "set `continues` of the operator if its rows depend on their own token alone",
                        "operator %s cannot continue a sequence", node->op->name);
}

fr_status fr_plan_lay_out_sequence(fr_planning *planning)
{
    const fr_graph *graph = planning->graph;
    fr_plan *plan = planning->plan;
    planning->kept = fr_plan_memory(planning, (size_t)graph->node_count * sizeof *planning->kept);
    plan->positions =
        fr_plan_bytes_value(planning, (size_t)(plan->extent.rows * plan->extent.T) * sizeof(int64_t));
    if (!planning->kept || plan->positions == FR_NO_VALUE)
        return planning->error->status;
    for (int n = 0; n < graph->node_count; n++) {
        const fr_node *node = graph->nodes[n];
        fr_call call = {0};
        if (planning->needed[n] && !node->op->continues)
            return refuse(node, planning->error);
        planning->kept[n] = plan->sequence_bytes;
        if (!node->op->continues || !node->op->sequence_bytes)
            continue;
        fr_plan_describe_call(plan, node, &call);
        size_t bytes = node->op->sequence_bytes(&call);
        if (!bytes)
            return fr_error_set(planning->error, FR_BAD_USAGE, node->out[0]->name,
                                "give it a window, or the plan a number of positions",
                                "%s looks back without end", node->op->name);
        plan->sequence_bytes += (bytes + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
    }
    return FR_OK;
}

/* ---- a run ---- */

static fr_status check_sequence(const fr_plan *plan, const fr_sequence *s, int64_t row, fr_error *error)
{
    int64_t most = plan->continuing.positions ? plan->continuing.positions : FR_MAX_ELEMENTS;
    if (s->start < 0 || s->count < 0 || s->count > plan->extent.T || s->start > most - s->count)
        return fr_error_set(
            error, FR_BAD_USAGE, "sequences", NULL,
            "sequence %lld cannot go on by %lld tokens at position %lld: it has at most %lld, "
            "%lld at a time",
            (long long)row, (long long)s->count, (long long)s->start, (long long)most,
            (long long)plan->extent.T);
    if (plan->sequence_bytes && (!s->memory || (uintptr_t)s->memory % 64))
        return fr_error_set(error, FR_BAD_USAGE, "sequences", NULL,
                            "sequence %lld needs %zu bytes aligned to 64", (long long)row,
                            plan->sequence_bytes);
    return FR_OK;
}

/* Operators that end at some position (learned positions) refuse rows that would reach beyond it. */
static fr_status check_ends(const fr_plan *plan, int64_t longest, fr_error *error)
{
    for (int s = 0; s < plan->step_count; s++) {
        const fr_node *node = plan->steps[s].node;
        if (node->op->check_extent)
            FR_TRY(node->op->check_extent(node, (fr_extent){1, longest}, error));
    }
    return FR_OK;
}

fr_status fr_plan_start_sequences(const fr_plan *plan, const fr_run_args *args, fr_error *error)
{
    char *arena = args->arena;
    int64_t *positions = (int64_t *)(arena + plan->values[plan->positions].offset), T = plan->extent.T;
    int64_t longest = 1;
    if (!args->sequences)
        return fr_error_set(error, FR_BAD_USAGE, "sequences", NULL,
                            "this plan continues sequences: name them");
    for (int64_t row = 0; row < plan->extent.rows; row++) {
        const fr_sequence *s = &args->sequences[row];
        FR_TRY(check_sequence(plan, s, row, error));
        longest = s->start + s->count > longest ? s->start + s->count : longest;
        for (int64_t t = 0; t < T; t++)
            positions[row * T + t] = s->start + t;
    }
    FR_TRY(check_ends(plan, longest, error));
    for (const fr_shared_constants *c = plan->constants; c; c = c->next) {
        fr_constants want = c->want;
        want.positions = positions;
        c->op->fill_constants(&want, arena + plan->values[c->value].offset);
    }
    return FR_OK;
}
