/* Numbers of the NeuronCore: names, sizes, and conversion to and from fp32.
 *
 * Every small float is sign, exponent, fraction; a table of formats says how many bits each has and what
 * its all-ones exponent means, and one decoder and one encoder read the table. The encoder rounds to
 * nearest, ties to even, in integers: the fraction of fp32 is cut at the target's last bit with the
 * remainder compared to one half, and a carry that ripples into the exponent is the right answer by
 * construction. bf16 and fp16 are most of the traffic, so they have straight loops (and vector ones,
 * product.h). Integers saturate; NaN becomes 0.
 *
 * float8_e8m0fnu has no sign and no zero: what is below its least power becomes that power; a negative or
 * NaN is NaN. */
#include "neuron/neuron_internal.h"
#include "neuron/product.h"

#include <math.h>
#include <string.h>

typedef enum fr_infinity { INFINITE, ONE_NAN, NO_SPECIALS } fr_infinity;

typedef struct fr_format {
    int exponent, fraction, bias;
    fr_infinity top; /* what the all-ones exponent is */
} fr_format;

static const fr_format HALF = {5, 10, 15, INFINITE};
static const fr_format FORMATS[FR_NEURON_DTYPES] = {
    [FR_NEURON_FLOAT8_E4M3] = {4, 3, 7, INFINITE},         [FR_NEURON_FLOAT8_E5M2] = {5, 2, 15, INFINITE},
    [FR_NEURON_FLOAT8_E3M4] = {3, 4, 3, INFINITE},         [FR_NEURON_FLOAT8_E4M3FN] = {4, 3, 7, ONE_NAN},
    [FR_NEURON_FLOAT8_E4M3FN_X4] = {4, 3, 7, ONE_NAN},     [FR_NEURON_FLOAT8_E5M2_X4] = {5, 2, 15, INFINITE},
    [FR_NEURON_FLOAT4_E2M1FN_X4] = {2, 1, 1, NO_SPECIALS},
};

static const struct {
    const char *name;
    int bytes;
    bool integer;
} DTYPES[FR_NEURON_DTYPES] = {
    [FR_NEURON_NO_DTYPE] = {"none", 0, false},
    [FR_NEURON_FLOAT32] = {"float32", 4, false},
    [FR_NEURON_TFLOAT32] = {"tfloat32", 4, false},
    [FR_NEURON_BFLOAT16] = {"bfloat16", 2, false},
    [FR_NEURON_FLOAT16] = {"float16", 2, false},
    [FR_NEURON_FLOAT8_E4M3] = {"float8_e4m3", 1, false},
    [FR_NEURON_FLOAT8_E5M2] = {"float8_e5m2", 1, false},
    [FR_NEURON_FLOAT8_E3M4] = {"float8_e3m4", 1, false},
    [FR_NEURON_FLOAT8_E4M3FN] = {"float8_e4m3fn", 1, false},
    [FR_NEURON_FLOAT8_E8M0FNU] = {"float8_e8m0fnu", 1, false},
    [FR_NEURON_FLOAT8_E4M3FN_X4] = {"float8_e4m3fn_x4", 4, false},
    [FR_NEURON_FLOAT8_E5M2_X4] = {"float8_e5m2_x4", 4, false},
    [FR_NEURON_FLOAT4_E2M1FN_X4] = {"float4_e2m1fn_x4", 2, false},
    [FR_NEURON_INT8] = {"int8", 1, true},
    [FR_NEURON_INT16] = {"int16", 2, true},
    [FR_NEURON_INT32] = {"int32", 4, true},
    [FR_NEURON_UINT8] = {"uint8", 1, true},
    [FR_NEURON_UINT16] = {"uint16", 2, true},
    [FR_NEURON_UINT32] = {"uint32", 4, true},
    [FR_NEURON_BOOL] = {"bool", 1, true},
};

static bool known(fr_neuron_dtype dtype)
{
    return dtype > FR_NEURON_NO_DTYPE && dtype < FR_NEURON_DTYPES;
}

int fr_neuron_dtype_bytes(fr_neuron_dtype dtype)
{
    return known(dtype) ? DTYPES[dtype].bytes : 0;
}

const char *fr_neuron_dtype_name(fr_neuron_dtype dtype)
{
    return known(dtype) ? DTYPES[dtype].name : DTYPES[FR_NEURON_NO_DTYPE].name;
}

fr_neuron_dtype fr_neuron_dtype_named(const char *name)
{
    for (int i = FR_NEURON_NO_DTYPE + 1; i < FR_NEURON_DTYPES; i++)
        if (strcmp(DTYPES[i].name, name) == 0)
            return (fr_neuron_dtype)i;
    return strcmp(name, "bool_") == 0 ? FR_NEURON_BOOL : FR_NEURON_NO_DTYPE;
}

bool fr_neuron_dtype_integer(fr_neuron_dtype dtype)
{
    return known(dtype) && DTYPES[dtype].integer;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float decode(uint32_t code, fr_format f)
{
    uint32_t fraction = code & ((1u << f.fraction) - 1),
             exponent = code >> f.fraction & ((1u << f.exponent) - 1);
    uint32_t sign = code >> (f.fraction + f.exponent) << 31, ones = (1u << f.exponent) - 1;
    if (exponent == ones && f.top == INFINITE)
        return float_of(sign | 0x7F800000u | fraction << (23 - f.fraction) | (fraction ? 0x400000u : 0));
    if (exponent == ones && f.top == ONE_NAN && fraction == (1u << f.fraction) - 1)
        return float_of(sign | 0x7FC00000u);
    if (exponent == 0) {
        float magnitude = (float)fraction * float_of((uint32_t)(1 - f.bias - f.fraction + 127) << 23);
        return float_of(sign | bits_of(magnitude));
    }
    return float_of(sign | (exponent + 127 - (uint32_t)f.bias) << 23 | fraction << (23 - f.fraction));
}

/* What becomes of NaN and of values beyond the largest finite one: infinity or a quiet NaN with the
 * leading bits of the payload; without infinities the one NaN; without NaN the largest number (the same
 * code of all ones). */
static uint32_t special(uint32_t magnitude, fr_format f)
{
    uint32_t ones = (1u << f.exponent) - 1, fraction = (1u << f.fraction) - 1;
    if (f.top != INFINITE)
        return ones << f.fraction | fraction;
    bool nan = magnitude > 0x7F800000u;
    return ones << f.fraction |
           (nan ? (magnitude >> (23 - f.fraction) & fraction) | 1u << (f.fraction - 1) : 0);
}

static uint32_t encode(float value, fr_format f)
{
    uint32_t bits = bits_of(value), sign = bits >> 31 << (f.exponent + f.fraction),
             magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u)
        return sign | special(magnitude, f);
    int exponent = (int)(magnitude >> 23) - 127 + f.bias; /* of the target, when normal */
    int cut = 23 - f.fraction + (exponent < 1 ? 1 - exponent : 0);
    if (cut > 25 || magnitude < 0x00800000u)
        return sign; /* below half of the least subnormal */
    uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u, rest = significand & ((1u << cut) - 1);
    uint32_t code = significand >> cut, half = 1u << (cut - 1);
    code += rest > half || (rest == half && (code & 1));
    if (exponent >= 1)
        code += (uint32_t)(exponent - 1) << f.fraction; /* the leading one adds the last unit of exponent */
    uint32_t largest = ((1u << f.exponent) - 1) << f.fraction;
    largest += f.top == INFINITE ? 0 : f.top == ONE_NAN ? (1u << f.fraction) - 1 : 1u << f.fraction;
    return sign | (code >= largest ? special(0x7F800000u, f) : code);
}

static uint8_t encode_scale(float value)
{
    uint32_t bits = bits_of(value);
    if (bits > 0x7F800000u)
        return 0xFF; /* negative, or NaN */
    uint32_t exponent = bits >> 23, fraction = bits & 0x7FFFFFu;
    if (exponent == 0) /* subnormal: 2^-127 is 0x400000 */
        return fraction > 0x600000u;
    exponent += fraction > 0x400000u || (fraction == 0x400000u && (exponent & 1));
    return (uint8_t)(exponent > 0xFE ? 0xFF : exponent);
}

static float decode_scale(uint8_t code)
{
    return code == 0xFF ? NAN : code == 0 ? float_of(0x00400000u) : float_of((uint32_t)code << 23);
}

/* fp32 with 10 bits of fraction, to nearest even. */
static float round_tf32(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7FFFFFFFu) >= 0x7F800000u)
        return value;
    bits += 0xFFFu + (bits >> 13 & 1);
    return float_of(bits & ~0x1FFFu);
}

void fr_neuron_half_to_float(float *out, const uint16_t *in, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = decode(in[i], HALF);
}

void fr_neuron_half_from_float(uint16_t *out, const float *in, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (uint16_t)encode(in[i], HALF);
}

#define LOAD_INTEGERS(TYPE)                                                                                  \
    do {                                                                                                     \
        const TYPE *codes = in;                                                                              \
        for (int64_t i = 0; i < count; i++)                                                                  \
            out[i] = (float)codes[i];                                                                        \
    } while (0)

void fr_neuron_to_float(float *out, const void *in, fr_neuron_dtype dtype, int64_t count)
{
    const uint8_t *bytes = in;
    switch (dtype) {
    case FR_NEURON_FLOAT32: memcpy(out, in, (size_t)count * sizeof(float)); return;
    case FR_NEURON_BFLOAT16: fr_neuron_kernels_best()->bf16_to_float(out, in, count); return;
    case FR_NEURON_FLOAT16: fr_neuron_kernels_best()->half_to_float(out, in, count); return;
    case FR_NEURON_INT8: LOAD_INTEGERS(int8_t); return;
    case FR_NEURON_INT16: LOAD_INTEGERS(int16_t); return;
    case FR_NEURON_INT32: LOAD_INTEGERS(int32_t); return;
    case FR_NEURON_BOOL:
    case FR_NEURON_UINT8: LOAD_INTEGERS(uint8_t); return;
    case FR_NEURON_UINT16: LOAD_INTEGERS(uint16_t); return;
    case FR_NEURON_UINT32: LOAD_INTEGERS(uint32_t); return;
    case FR_NEURON_TFLOAT32:
        for (int64_t i = 0; i < count; i++)
            out[i] = round_tf32(((const float *)in)[i]);
        return;
    case FR_NEURON_FLOAT8_E8M0FNU:
        for (int64_t i = 0; i < count; i++)
            out[i] = decode_scale(bytes[i]);
        return;
    case FR_NEURON_FLOAT8_E4M3:
    case FR_NEURON_FLOAT8_E5M2:
    case FR_NEURON_FLOAT8_E3M4:
    case FR_NEURON_FLOAT8_E4M3FN:
        for (int64_t i = 0; i < count; i++)
            out[i] = decode(bytes[i], FORMATS[dtype]);
        return;
    default: /* packed elements are four numbers each: fr_neuron_unpack */
        for (int64_t i = 0; i < count; i++)
            out[i] = NAN;
    }
}

/* To the nearest integer in [least, most], ties to even. 2^32 - 1 is no float: compare before the cast. */
static double rounded_within(float value, double least, double most)
{
    double nearest = nearbyint((double)value);
    return value != value ? 0 : nearest < least ? least : nearest > most ? most : nearest;
}

#define STORE_INTEGERS(TYPE, LEAST, MOST)                                                                    \
    do {                                                                                                     \
        TYPE *codes = out;                                                                                   \
        for (int64_t i = 0; i < count; i++)                                                                  \
            codes[i] = (TYPE)rounded_within(in[i], LEAST, MOST);                                             \
    } while (0)

static void store_small(uint8_t *out, const float *in, fr_neuron_dtype dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (uint8_t)encode(in[i], FORMATS[dtype]);
}

void fr_neuron_from_float(void *out, const float *in, fr_neuron_dtype dtype, int64_t count)
{
    switch (dtype) {
    case FR_NEURON_FLOAT32: memcpy(out, in, (size_t)count * sizeof(float)); return;
    case FR_NEURON_BFLOAT16: fr_neuron_kernels_best()->bf16_from_float(out, in, count); return;
    case FR_NEURON_FLOAT16: fr_neuron_kernels_best()->half_from_float(out, in, count); return;
    case FR_NEURON_INT8: STORE_INTEGERS(int8_t, INT8_MIN, INT8_MAX); return;
    case FR_NEURON_INT16: STORE_INTEGERS(int16_t, INT16_MIN, INT16_MAX); return;
    case FR_NEURON_INT32: STORE_INTEGERS(int32_t, INT32_MIN, INT32_MAX); return;
    case FR_NEURON_UINT8: STORE_INTEGERS(uint8_t, 0, UINT8_MAX); return;
    case FR_NEURON_UINT16: STORE_INTEGERS(uint16_t, 0, UINT16_MAX); return;
    case FR_NEURON_UINT32: STORE_INTEGERS(uint32_t, 0, UINT32_MAX); return;
    case FR_NEURON_BOOL:
        for (int64_t i = 0; i < count; i++)
            ((uint8_t *)out)[i] = in[i] != 0;
        return;
    case FR_NEURON_TFLOAT32:
        for (int64_t i = 0; i < count; i++)
            ((float *)out)[i] = round_tf32(in[i]);
        return;
    case FR_NEURON_FLOAT8_E8M0FNU:
        for (int64_t i = 0; i < count; i++)
            ((uint8_t *)out)[i] = encode_scale(in[i]);
        return;
    case FR_NEURON_FLOAT8_E4M3:
    case FR_NEURON_FLOAT8_E5M2:
    case FR_NEURON_FLOAT8_E3M4:
    case FR_NEURON_FLOAT8_E4M3FN: store_small(out, in, dtype, count); return;
    default: memset(out, 0, (size_t)(count * fr_neuron_dtype_bytes(dtype))); /* packed: fr_neuron_pack */
    }
}

void fr_neuron_unpack(float *out, const void *in, fr_neuron_dtype dtype, int64_t count)
{
    const uint8_t *bytes = in;
    fr_format format = FORMATS[dtype];
    bool nibbles = dtype == FR_NEURON_FLOAT4_E2M1FN_X4;
    for (int64_t i = 0; i < 4 * count; i++)
        out[i] = decode(nibbles ? bytes[i / 2] >> 4 * (i & 1) & 15 : bytes[i], format);
}

void fr_neuron_pack(void *out, const float *in, fr_neuron_dtype dtype, int64_t count)
{
    uint8_t *bytes = out;
    fr_format format = FORMATS[dtype];
    if (dtype != FR_NEURON_FLOAT4_E2M1FN_X4) {
        for (int64_t i = 0; i < 4 * count; i++)
            bytes[i] = (uint8_t)encode(in[i], format);
        return;
    }
    for (int64_t i = 0; i < 2 * count; i++)
        bytes[i] = (uint8_t)(encode(in[2 * i], format) | encode(in[2 * i + 1], format) << 4);
}
