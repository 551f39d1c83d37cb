/* The product on processors with AVX-512: 6 rows by 64 columns in 24 of the 32 registers, so that two
 * multiply-adds a cycle wait for nothing and a row of `moving` is read in four loads for 24 of them. */
#include <immintrin.h>

#define VECTOR __m512
#define LANES 16
#define ROWS 6
#define VECTORS 4
#define load(address) _mm512_loadu_ps(address)
#define store(address, value) _mm512_storeu_ps(address, value)
#define broadcast(value) _mm512_set1_ps(value)
#define multiply_add(a, b, c) _mm512_fmadd_ps(a, b, c)
#include "neuron/kernels/shared/product_kernels.h"

static void half_to_float(float *out, const uint16_t *in, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(in + i))));
    fr_neuron_half_to_float(out + i, in + i, count - i);
}

static void half_from_float(uint16_t *out, const float *in, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        _mm256_storeu_si256(
            (__m256i *)(out + i),
            _mm512_cvtps_ph(_mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    fr_neuron_half_from_float(out + i, in + i, count - i);
}

const fr_neuron_kernels fr_neuron_kernels_avx512 = {"avx512",        product,       bf16_to_float,
                                                    bf16_from_float, half_to_float, half_from_float};
