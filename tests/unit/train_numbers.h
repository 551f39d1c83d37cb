/* What the optimizer tests share with lab/optimizer_reference.py: SplitMix64 numbers and the committed vectors. */
#ifndef FRONTIER_TRAIN_NUMBERS_H
#define FRONTIER_TRAIN_NUMBERS_H
#include "frontier/train.h"
#include "test.h"

#include <jansson.h>

/* Uniform in [-0.5, 0.5) from the top 24 bits: exact in fp32. */
static inline void draw_numbers(uint64_t seed, float *out, int64_t count, double scale)
{
    uint64_t state = seed;
    for (int64_t i = 0; i < count; i++) {
        state += UINT64_C(0x9E3779B97F4A7C15);
        uint64_t z = state;
        z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
        z ^= z >> 31;
        out[i] = (float)(((double)(z >> 40) / 16777216.0 - 0.5) * scale);
    }
}

static inline double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static inline bool flag_of(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

/* Largest |got - want| against absolute + relative * |want|, in units of that tolerance. */
static inline double worst_of(const float *got, const json_t *want, double absolute, double relative)
{
    double worst = 0;
    for (size_t i = 0; i < json_array_size(want); i++) {
        double w = json_number_value(json_array_get(want, i));
        double off = fabs((double)got[i] - w) / (absolute + relative * fabs(w));
        worst = off > worst || off != off ? off : worst;
    }
    return worst;
}

static inline json_t *load_vectors(void)
{
    json_error_t trouble;
    return json_load_file("tests/vectors/optimizer.json", 0, &trouble);
}

#endif
