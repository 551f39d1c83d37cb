/* The parts of sampling that tests and the decoding engine use alone. */
#ifndef FRONTIER_MODEL_SAMPLE_H
#define FRONTIER_MODEL_SAMPLE_H
#include "frontier/model.h"

/* Chooses a token; greedy at temperature 0, ties to the lower id. `scratch` has
 * fr_sample_scratch_bytes(vocab). */
int32_t fr_sample_choose(const float *logits, int64_t vocab, const fr_sample_options *options, fr_rng *rng,
                         void *scratch);
size_t fr_sample_scratch_bytes(int64_t vocab);
/* How many bytes at the end begin a UTF-8 character that is not complete: 0 to 3. */
size_t fr_utf8_unfinished(const char *bytes, size_t count);

#endif
