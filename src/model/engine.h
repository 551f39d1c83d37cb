/* The inside of an inference engine, shared with the file that counts what a pass costs. */
#ifndef FRONTIER_MODEL_ENGINE_H
#define FRONTIER_MODEL_ENGINE_H
#include "model/scorer.h"

enum { ENGINE_ROWS = 3, ENGINE_STEPS = 10 }; /* row lengths of prompts; steps of 1, 2, 4 ... 2^10 sequences */

typedef struct engine_sequence {
    void *memory;   /* keys, values and whatever else operators keep */
    int64_t length; /* tokens it has seen */
    bool used;
} engine_sequence;

struct fr_engine {
    fr_scorer *scorer, *own_scorer; /* own: to be freed with the engine */
    int64_t count, positions;
    engine_sequence *sequences; /* count */
    fr_plan *rows[ENGINE_ROWS], *logit_rows[ENGINE_ROWS], *steps[ENGINE_STEPS + 1];
    void *arena;
    size_t arena_bytes;
    fr_sequence *batch; /* of the pass under way */
    int32_t *ids;
};

#endif
