/* The product on processors with AVX2: 4 rows by 24 columns in 12 of the 16 registers; one column vector
 * and the broadcast fill the rest. */
#include <immintrin.h>

#define VECTOR __m256
#define LANES 8
#define ROWS 4
#define VECTORS 3
#define load(address) _mm256_loadu_ps(address)
#define store(address, value) _mm256_storeu_ps(address, value)
#define broadcast(value) _mm256_set1_ps(value)
#define multiply_add(a, b, c) _mm256_fmadd_ps(a, b, c)
#include "neuron/kernels/shared/product_kernels.h"

static void half_to_float(float *out, const uint16_t *in, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(in + i))));
    fr_neuron_half_to_float(out + i, in + i, count - i);
}

static void half_from_float(uint16_t *out, const float *in, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        _mm_storeu_si128(
            (__m128i *)(out + i),
            _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    fr_neuron_half_from_float(out + i, in + i, count - i);
}

const fr_neuron_kernels fr_neuron_kernels_avx2 = {"avx2",          product,       bf16_to_float,
                                                  bf16_from_float, half_to_float, half_from_float};
