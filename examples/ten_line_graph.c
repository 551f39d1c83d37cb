/* A graph in ten lines, trained on one sentence.
 *
 * The graph is the smallest language model there is: look a byte up, normalise, predict the next byte. The
 * plan adds the backward pass and the memory; a run of it needs weights, an arena and the inputs. Plain
 * gradient descent does the rest. Build and run:  make build/examples/ten_line_graph &&
 * build/examples/ten_line_graph
 */
#include "frontier/frontier.h"

#include <string.h>

static fr_graph *build(fr_error *error)
{
    fr_graph *g = fr_graph_create(error);
    if (!g)
        return NULL;
    fr_tensor *ids = fr_input_ids(g, "tokens"), *targets = fr_input_ids(g, "targets");
    fr_tensor *table = fr_parameter(g, "table", 256, 32, fr_init_normal(1), "embedding");
    fr_tensor *head = fr_parameter(g, "head", 256, 32, fr_init_normal(0.01), "head");
    fr_tensor *x = fr_rms_norm(g, fr_embed(g, table, ids), (fr_norm_options){0});
    fr_head_loss(g, x, head, targets, (fr_head_options){.vocab = 256, .softcap = 15});
    return g;
}

/* Thirty steps of gradient descent on the plan's one row. */
static fr_status train(const fr_graph *g, const fr_plan *plan, const int32_t *tokens, const int32_t *targets,
                       fr_error *error)
{
    int64_t count = fr_graph_flat_elements(g), T = fr_plan_extent(plan).T;
    float *weights = fr_allocate((size_t)count * sizeof(float)),
          *gradients = fr_allocate((size_t)count * sizeof(float));
    void *arena = fr_allocate(fr_plan_arena_bytes(plan));
    fr_status status =
        weights && gradients && arena ? FR_OK : fr_error_memory(error, (size_t)count, "the example");
    fr_binding inputs[] = {{"tokens", tokens}, {"targets", targets}};
    fr_run_args args = {
        .arena = arena, .parameters = weights, .gradients = gradients, .inputs = inputs, .input_count = 2};
    if (status == FR_OK)
        fr_graph_initialize(g, 1, NULL, weights);
    for (int step = 0; status == FR_OK && step <= 30; step++) {
        status = fr_plan_run(plan, &args, error); /* the loss, and its gradient by every weight */
        if (status == FR_OK && step % 10 == 0)
            printf("step %2d: %.3f nats per byte\n", step,
                   (double)*(const float *)fr_plan_output(plan, arena, "loss", NULL) / (double)T);
        for (int64_t i = 0; i < count; i++)
            weights[i] -= 0.3f * gradients[i];
    }
    fr_deallocate(weights);
    fr_deallocate(gradients);
    fr_deallocate(arena);
    return status;
}

int main(void)
{
    static const char text[] = "the quick brown fox jumps over the lazy dog and runs away";
    enum { T = sizeof text - 2 };
    int32_t tokens[T], targets[T];
    for (int t = 0; t < T; t++) {
        tokens[t] = (uint8_t)text[t];
        targets[t] = (uint8_t)text[t + 1];
    }
    fr_error error = {0};
    fr_graph *g = build(&error);
    fr_plan *plan = NULL;
    const char *outputs[] = {"loss"};
    fr_plan_options options = {
        .extent = {.rows = 1, .T = T}, .train = true, .outputs = outputs, .output_count = 1};
    fr_status status =
        g ? fr_graph_check(g, &error) : FR_BAD_ENVIRONMENT; /* the first mistake made while building */
    if (status == FR_OK)
        status = fr_plan_create(&plan, g, &options, &error);
    if (status == FR_OK)
        status = train(g, plan, tokens, targets, &error);
    if (status != FR_OK)
        fprintf(stderr, "%s: %s\n", error.where, error.what);
    fr_plan_free(plan);
    fr_graph_free(g);
    return status;
}
