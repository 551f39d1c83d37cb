/* Number formats: what a tensor's elements are and how to get them in and out of double.
 *
 * The reference kernels and the tests do all arithmetic in double. They read a stretch of any float tensor
 * into doubles, compute, and write it back, so one source covers fp32, bf16 and fp64. bf16 is the upper
 * half of an fp32: widening is exact, narrowing rounds to the nearest, ties to even. A double is narrowed
 * to fp32 first; the second rounding can differ from a direct one only within 2^-29 of a tie, far below
 * what any kernel is compared to.
 */
#include "frontier/graph.h"

#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {[FR_F32] = {"f32", 4},
              [FR_BF16] = {"bf16", 2},
              [FR_F64] = {"f64", 8},
              [FR_I32] = {"i32", 4},
              [FR_F16] = {"f16", 2}};

size_t fr_dtype_bytes(fr_dtype dtype)
{
    return dtypes[dtype].bytes;
}

const char *fr_dtype_name(fr_dtype dtype)
{
    return dtypes[dtype].name;
}

float fr_bf16_to_f32(uint16_t value)
{
    uint32_t bits = (uint32_t)value << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

uint16_t fr_f32_to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) /* NaN: rounding could carry it into infinity */
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

void fr_load_doubles(const void *data, fr_dtype dtype, int64_t start, int64_t count, double *out)
{
    if (dtype == FR_F32) {
        const float *values = (const float *)data + start;
        for (int64_t i = 0; i < count; i++)
            out[i] = (double)values[i];
    } else if (dtype == FR_BF16) {
        const uint16_t *values = (const uint16_t *)data + start;
        for (int64_t i = 0; i < count; i++)
            out[i] = (double)fr_bf16_to_f32(values[i]);
    } else {
        memcpy(out, (const double *)data + start, (size_t)count * sizeof(double));
    }
}

static void store_f32(float *to, int64_t count, const double *values, bool accumulate)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)(accumulate ? (double)to[i] + values[i] : values[i]);
}

static void store_bf16(uint16_t *to, int64_t count, const double *values, bool accumulate)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = fr_f32_to_bf16((float)(accumulate ? (double)fr_bf16_to_f32(to[i]) + values[i] : values[i]));
}

static void store_f64(double *to, int64_t count, const double *values, bool accumulate)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = accumulate ? to[i] + values[i] : values[i];
}

void fr_store_doubles(void *data, fr_dtype dtype, int64_t start, int64_t count, const double *values,
                      bool accumulate)
{
    if (dtype == FR_F32)
        store_f32((float *)data + start, count, values, accumulate);
    else if (dtype == FR_BF16)
        store_bf16((uint16_t *)data + start, count, values, accumulate);
    else
        store_f64((double *)data + start, count, values, accumulate);
}
