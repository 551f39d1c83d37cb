/* The inner loops that decide how fast a kernel is simulated: the product of a 128 x 128 and a 128 x 512
 * tile, and the conversions of 16-bit floats. Each processor's version fills one table; the best one is
 * chosen when asked. All give the same bits: products of numbers of 16 bits or fewer are exact in fp32,
 * and every version sums in the order of k. */
#ifndef NEURON_PRODUCT_H
#define NEURON_PRODUCT_H
#include <stdbool.h>
#include <stdint.h>

/* out[m][n] = sum over k of stationary[k][m] * moving[k][n], added to what is there when `add`; k up to
 * 4096. Pitches count floats. Rows of `moving` are readable up to the next multiple of 16 of n. */
typedef struct fr_neuron_product {
    float *out;
    const float *stationary, *moving;
    int64_t out_pitch, stationary_pitch, moving_pitch;
    int64_t k, m, n;
    bool add;
} fr_neuron_product;

typedef struct fr_neuron_kernels {
    const char *name;
    void (*product)(const fr_neuron_product *product);
    void (*bf16_to_float)(float *out, const uint16_t *in, int64_t count);
    void (*bf16_from_float)(uint16_t *out, const float *in, int64_t count);
    void (*half_to_float)(float *out, const uint16_t *in, int64_t count);
    void (*half_from_float)(uint16_t *out, const float *in, int64_t count);
} fr_neuron_kernels;

const fr_neuron_kernels *fr_neuron_kernels_best(void);
/* For tests: the table of that name ("plain", "avx2", "avx512"), or NULL when this processor cannot run
 * it. */
const fr_neuron_kernels *fr_neuron_kernels_named(const char *name);

extern const fr_neuron_kernels fr_neuron_kernels_avx2, fr_neuron_kernels_avx512;
void fr_neuron_half_to_float(float *out, const uint16_t *in, int64_t count);
void fr_neuron_half_from_float(uint16_t *out, const float *in, int64_t count);

#endif
