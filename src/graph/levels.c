/* Which tokens an operator must run on, when not every row of the outputs is wanted.
 *
 * Of a row of text often only the last tokens are judged. The last block then needs queries, and
 * everything after attention, only there; keys and values as far back as its attention looks; and so on
 * down. Tokens that are wanted are level 0; every operator that looks back raises what it reads by one
 * level, which adds as many tokens as it looks back. A plan knows the level of each step and how far each
 * level looks into the next, a run says where each level begins (fr_segments). Tokens are put in order of
 * their level, so a level is the end of the run, and no operator needs to know: it sees fewer tokens. Only
 * operators that look back find theirs by number, as they do anyway where rows share a beginning.
 */
#include "graph/plan_internal.h"

static int64_t looks_back(const fr_node *node, int input)
{
    if (!node->in[input] || node->in[input]->rows != FR_TOKENS)
        return 0;
    if (node->op->looks_back)
        return node->op->looks_back(node, input);
    return node->op->sequence_bytes ? INT64_MAX : 0;
}

/* A step that makes tensors for `level` raises what it reads to that level, or the next. */
static void raise_inputs(fr_plan *plan, const fr_node *node, int level, int *levels)
{
    for (int i = 0; i < node->inputs; i++) {
        int64_t back = looks_back(node, i);
        if (!node->in[i])
            continue;
        int *wanted = &levels[node->in[i]->id], needed = level + (back > 0);
        if (back > plan->looks_back[level])
            plan->looks_back[level] = back;
        *wanted = needed > *wanted ? needed : *wanted;
        plan->levels = needed + 1 > plan->levels ? needed + 1 : plan->levels;
    }
}

fr_status fr_plan_find_levels(fr_planning *planning)
{
    fr_plan *plan = planning->plan;
    int *levels = fr_plan_memory(planning, (size_t)planning->graph->tensor_count * sizeof *levels);
    plan->looks_back = fr_plan_memory(planning, (size_t)(plan->step_count + 1) * sizeof *plan->looks_back);
    if (!levels || !plan->looks_back)
        return planning->error->status;
    for (int t = 0; t < planning->graph->tensor_count; t++)
        levels[t] = 0;
    for (int s = 0; s <= plan->step_count; s++)
        plan->looks_back[s] = 0;
    plan->levels = 1;
    for (int s = plan->step_count - 1; s >= 0 && !plan->train; s--) {
        fr_step *step = &plan->steps[s];
        for (int o = 0; o < step->node->outputs; o++)
            if (levels[step->node->out[o]->id] > step->level)
                step->level = levels[step->node->out[o]->id];
        raise_inputs(plan, step->node, step->level, levels);
    }
    return FR_OK;
}

int fr_plan_levels(const fr_plan *plan, const int64_t **looks_back_of)
{
    *looks_back_of = plan->looks_back;
    return plan->levels;
}

double fr_plan_level_flops(const fr_plan *plan, int level, int64_t from, int64_t to)
{
    double sum = 0;
    for (int s = 0; s < plan->step_count; s++) {
        const fr_step *step = &plan->steps[s];
        double (*flops)(const fr_node *, fr_extent, fr_pass) = step->node->op->flops;
        if (step->level == level && flops && to > from)
            sum += flops(step->node, (fr_extent){1, to}, FR_FORWARD) -
                   (from ? flops(step->node, (fr_extent){1, from}, FR_FORWARD) : 0);
    }
    return sum;
}

void fr_segments_fill(const fr_segment *segments, int64_t count, const int32_t *order, int32_t *positions,
                      int32_t *previous)
{
    for (int64_t i = 0; i < count; i++) {
        const fr_segment *s = &segments[i];
        int64_t last = s->before_count ? s->before + s->before_count - 1 : -1;
        int32_t before = last >= 0 && order ? order[last] : (int32_t)last;
        for (int64_t t = s->first; t < s->first + s->count; t++) {
            int32_t token = order ? order[t] : (int32_t)t;
            positions[token] = (int32_t)(s->left_out + s->before_count + t - s->first);
            previous[token] = before;
            before = token;
        }
    }
}
