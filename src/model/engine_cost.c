/* What a pass of the engine costs at least: operations, and bytes that must come from memory.
 *
 * Decoding is bound by reading: every weight of a product once per pass, and the keys and values each
 * query looks at. A benchmark divides these bytes by the bandwidth it measured and has the bound nobody
 * can beat; prefill is bound by arithmetic, so there the operations count. Norms, embeddings and gates are
 * left out: they are less than a hundredth.
 */
#include "model/engine.h"

#include <string.h>

/* Keys seen by a query at `position`. */
static double keys_seen(int64_t window, int64_t position)
{
    return window > 0 && position > window ? (double)(window + 1) : (double)(position + 1);
}

typedef struct pass {
    int64_t count, length;
    bool step;
    size_t item; /* bytes of a key's element */
    double flops, bytes;
} pass;

static void add_attention(pass *p, const fr_node *node)
{
    const fr_attention_options *options = node->attributes;
    double keys = 0, columns = (double)node->in[1]->columns;
    for (int64_t i = 0; i < p->count; i++)
        keys += keys_seen(options->window, p->step ? p->length : p->length + i);
    p->flops += 4 * (double)node->in[0]->columns * keys;
    if (!p->step) /* a row reads each key once for all its queries */
        keys = keys_seen(options->window, p->length) + (double)(p->count - 1);
    p->bytes += 2 * columns * keys * (double)p->item;
}

void fr_engine_cost(const fr_engine *engine, int64_t count, int64_t length, bool step, double *flops,
                    double *bytes)
{
    const fr_scorer *s = engine->scorer;
    pass p = {
        .count = count, .length = length, .step = step, .item = s->numerics == FR_NUMERICS_BF16 ? 2 : 4};
    size_t prepared = fr_prepared_bytes(s->prepared);
    double weights = 0;
    for (int n = 0; n < fr_graph_nodes(s->graph); n++) {
        const fr_node *node = fr_graph_node(s->graph, n);
        bool head = strcmp(node->op->name, "head_logits") == 0;
        if (strcmp(node->op->name, "attention") == 0)
            add_attention(&p, node);
        if (strcmp(node->op->name, "linear") != 0 && !(head && step))
            continue;
        double elements = (double)node->in[1]->rows * (double)node->in[1]->columns;
        weights += elements;
        p.flops += 2 * elements * (double)count;
    }
    *flops = p.flops;
    *bytes = p.bytes + (prepared && step ? (double)prepared : weights * sizeof(float));
}
