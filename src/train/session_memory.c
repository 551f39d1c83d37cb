/* session_memory.c: what a run will take, before it takes it.
 *
 * Weights, the gradients of the shards at work, optimizer state, copies of the weights for the kernels and
 * the activations of every thread: all of it is known from graph and plan, so a run that does not fit is
 * refused in its first second, with the number and what would make it smaller.
 */
#include "train/session.h"

#include "train/memory.h"
#include "train/optimizer.h"

static int64_t total_bytes(const fr_session *session, int64_t optimizer_bytes)
{
    int64_t flat = fr_graph_flat_elements(session->graph) * (int64_t)sizeof(float);
    int64_t gradients = flat * fr_shards_buffers(session->shape.shards, session->workers);
    int64_t arenas = (int64_t)fr_plan_arena_bytes(session->plan) * session->workers;
    int64_t rows = session->shape.most_rows * session->shape.T * 2 * (int64_t)sizeof(int32_t);
    /* The kernels' copies are at most as large as the weights themselves. */
    return 2 * flat + gradients + optimizer_bytes + arenas + rows;
}

fr_status fr_session_check_memory(fr_session *session, fr_error *error)
{
    int64_t optimizer_bytes, limit = session->options.memory_limit;
    FR_TRY(fr_optimizer_estimate(session->graph, &session->options.recipe, fr_pool_threads(session->pool),
                                 &optimizer_bytes, error));
    session->memory_bytes = total_bytes(session, optimizer_bytes);
    session->memory_available = fr_memory_available();
    if (limit > 0 && (session->memory_available == 0 || limit < session->memory_available))
        session->memory_available = limit;
    if (session->memory_available == 0 || session->memory_bytes <= session->memory_available)
        return FR_OK;
    char need[32], have[32];
    fr_format_bytes(need, sizeof need, (double)session->memory_bytes);
    fr_format_bytes(have, sizeof have, (double)session->memory_available);
    return fr_error_set(error, FR_BAD_ENVIRONMENT, "memory",
                        "lower model.depth, optim.micro_rows or the number of threads",
                        "the run needs %s, %s is available", need, have);
}
