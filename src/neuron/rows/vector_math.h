/* Elementary functions of one float, written so that a compiler turns a loop over them into vector code.
 *
 * Why not libm: it has no vector form that C11 can name, and a 128 x 512 tile of tanhf would cost more than a
 * millisecond. Everything here is branch-free: ranges are reduced with arithmetic, cases are chosen with ?:, and both
 * sides of a choice are computed. Relative error below 1e-6 over the whole range (tests/unit/test_neuron_functions.c
 * compares with libm in double); the hardware's piecewise polynomials are no better than that. The coefficients are
 * our own weighted least-squares fits (Lawson's iteration at 600 Chebyshev nodes).
 *
 * No fused multiply-add: the same source gives the same bits on every instruction set it is compiled for.
 */
#ifndef FRONTIER_NEURON_VECTOR_MATH_H
#define FRONTIER_NEURON_VECTOR_MATH_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#define FR_INLINE static inline __attribute__((always_inline, unused))

FR_INLINE uint32_t m_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

FR_INLINE float m_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

FR_INLINE float m_abs(float x)
{
    return m_float(m_bits(x) & 0x7fffffffu);
}
FR_INLINE float m_signed_as(float size, float sign)
{
    return m_float((m_bits(size) & 0x7fffffffu) | (m_bits(sign) & 0x80000000u));
}
/* NaN in, NaN out, whichever side it is on (as numpy.maximum does). */
FR_INLINE float m_maximum(float a, float b)
{
    return ((a > b) | (a != a)) ? a : b;
}
FR_INLINE float m_minimum(float a, float b)
{
    return ((a < b) | (a != a)) ? a : b;
}

/* 2^n for n in [-126, 127]; n comes as the float 1.5 * 2^23 + n whose low bits hold it. */
FR_INLINE float m_power_of_two(uint32_t n)
{
    return m_float((n + 127u) << 23);
}

/* e^x: n = round(x / ln 2), a polynomial for the rest, 2^n in two halves so that denormals come out right.
 * 0 below -104, infinite above 88.73, NaN stays NaN. */
FR_INLINE float m_exp(float x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    float shifted = x * 1.44269504f + magic;
    float n = shifted - magic;
    float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 0.000199075715f;
    p = p * r + 0.00139336432f;
    p = p * r + 0.00833328603f;
    p = p * r + 0.041666465f;
    p = p * r + 0.166666668f;
    p = p * r + 0.500000001f;
    p = (p * r) * r + r + 1.0f;
    uint32_t whole = m_bits(shifted) - m_bits(magic);
    uint32_t half = (uint32_t)((int32_t)whole >> 1);
    return p * m_power_of_two(half) * m_power_of_two(whole - half);
}

/* e^(-x^2 * share), share 1 or 1/2: the square is kept in two floats, or its rounding would show in the tail. */
FR_INLINE float m_exp_minus_square(float x, float share)
{
    x = m_abs(x);
    x = x > 15.0f ? 15.0f : x;
    float split = 4097.0f * x, high = split - (split - x), low = x - high;
    float square = x * x;
    float rest = ((high * high - square) + 2.0f * high * low) + low * low;
    return m_exp(-square * share) * (1.0f - rest * share);
}

FR_INLINE float m_sigmoid(float x)
{
    return 1.0f / (1.0f + m_exp(-x));
}

FR_INLINE float m_tanh(float x)
{
    float size = m_abs(x), square = x * x;
    float p = -0.0056599865f;
    p = p * square + 0.0205909859f;
    p = p * square + -0.0537210672f;
    p = p * square + 0.133311275f;
    p = p * square + -0.333332605f;
    float near = x + x * (p * square);
    float far = m_signed_as(1.0f - 2.0f / (m_exp(2.0f * size) + 1.0f), x);
    return size > 0.625f ? far : near;
}

/* 2 artanh(s), |s| <= 1/3: what log and log1p are made of. */
FR_INLINE float m_two_artanh(float s)
{
    float square = s * s;
    float p = 0.218786642f;
    p = p * square + 0.171165164f;
    p = p * square + 0.223058781f;
    p = p * square + 0.285681026f;
    p = p * square + 0.400000625f;
    p = p * square + 0.666666662f;
    return 2.0f * s + s * (p * square);
}

/* ln x: the fraction is brought into [0.707, 1.414). 0 gives -infinity, less gives NaN. */
FR_INLINE float m_log(float x)
{
    float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
    float exponent_shift = x < 1.17549435e-38f ? -23.0f : 0.0f;
    uint32_t bits = m_bits(scaled) - 0x3f3504f3u; /* sqrt(1/2) */
    float exponent = (float)((int32_t)bits >> 23) + exponent_shift;
    float m = m_float((bits & 0x007fffffu) + 0x3f3504f3u);
    float y = m_two_artanh((m - 1.0f) / (m + 1.0f));
    float result = exponent * 0.693359375f + (y + exponent * -2.12194440e-4f);
    result = x < INFINITY ? result : x; /* infinity and NaN */
    result = x < 0.0f ? NAN : result;
    return x == 0.0f ? -INFINITY : result;
}

/* ln(1 + y), y in [0, 1]. */
FR_INLINE float m_log1p_unit(float y)
{
    return m_two_artanh(y / (2.0f + y));
}

FR_INLINE float m_softplus(float x)
{
    return (x > 0.0f ? x : (x != x ? x : 0.0f)) + m_log1p_unit(m_exp(-m_abs(x)));
}

/* tanh(ln(1 + e^x)) is (n^2 + 2n) / (n^2 + 2n + 2) with n = e^x. */
FR_INLINE float m_mish(float x)
{
    float n = m_exp(x > 30.0f ? 30.0f : x), top = n * (n + 2.0f);
    float result = x * (top / (top + 2.0f));
    return x < -104.0f ? -0.0f : result;
}

/* The normal distribution's upper tail, P(X > x) for x >= 0, with full relative precision. */
FR_INLINE float m_normal_tail(float x)
{
    x = x > 15.0f ? 15.0f : x;
    float q = (x - 4.0f) / (x + 4.0f);
    float p = -7.19822812e-05f;
    p = p * q + -6.15430965e-05f;
    p = p * q + 0.000692214174f;
    p = p * q + -0.000303440904f;
    p = p * q + -0.00500394648f;
    p = p * q + 0.0179402277f;
    p = p * q + -0.0321973474f;
    p = p * q + 0.0285999688f;
    p = p * q + 0.0139996004f;
    p = p * q + -0.0967034664f;
    p = p * q + 0.472053207f;
    return m_exp_minus_square(x, 0.5f) * (p / (x + 1.0f));
}

FR_INLINE float m_normal_share(float x) /* P(X < x) */
{
    float tail = m_normal_tail(m_abs(x));
    return x > 0.0f ? 1.0f - tail : tail;
}

FR_INLINE float m_erf(float x)
{
    float size = m_abs(x), square = x * x;
    float p = -9.64151358e-06f;
    p = p * square + 0.00011256947f;
    p = p * square + -0.000848282871f;
    p = p * square + 0.00522094542f;
    p = p * square + -0.0268654f;
    p = p * square + 0.11283782f;
    p = p * square + -0.376126384f;
    p = p * square + 1.12837917f;
    float far = m_signed_as(1.0f - 2.0f * m_normal_tail(size * 1.41421356f), x);
    return size > 1.0f ? far : x * p;
}

FR_INLINE float m_erf_dx(float x)
{
    return x != x ? x : 1.12837917f * m_exp_minus_square(x, 1.0f);
}

FR_INLINE float m_gelu(float x)
{
    return x < -15.0f ? -0.0f : x * m_normal_share(x);
}
FR_INLINE float m_gelu_dx(float x)
{
    float density = 0.398942280f * m_exp_minus_square(x, 0.5f);
    float bounded = x > 15.0f ? 15.0f : (x < -15.0f ? -15.0f : x);
    return m_normal_share(bounded) + bounded * density;
}

FR_INLINE float m_silu(float x)
{
    return x < -104.0f ? -0.0f : x * m_sigmoid(x);
}
/* Derivative of x s(c x) is s + c x s (1 - s); 1 - s(z) is s(-z) without cancellation. */
FR_INLINE float m_silu_dx(float x, float c)
{
    float z = c * x;
    z = z < -88.0f ? -88.0f : (z > 88.0f ? 88.0f : z);
    float s = m_sigmoid(z);
    return s + z * s * m_sigmoid(-z);
}

FR_INLINE float m_gelu_tanh(float x)
{
    float bounded = x > 1.0e6f ? 1.0e6f : (x < -30.0f ? -30.0f : x);
    float z = 1.59576912f * (bounded + 0.044715f * (bounded * bounded * bounded));
    return x < -30.0f ? -0.0f : x * m_sigmoid(z);
}

FR_INLINE float m_gelu_sigmoid(float x)
{
    return x < -60.0f ? -0.0f : x * m_sigmoid(1.702f * x);
}

/* sin without range reduction, as the Scalar engine does it: right in [-pi, pi], and outside the cubic that continues
 * it from the end of the range. Inside, sin x = sin(pi - x) folds to [0, pi/2] with pi in two floats. */
FR_INLINE float m_sin(float x)
{
    float size = m_abs(x);
    float past = (size - 3.14159274f) - -8.74227766e-8f; /* |x| - pi */
    float inside = size > 1.57079633f ? -past : size;
    float square = inside * inside;
    float p = 2.60190305e-06f;
    p = p * square + -0.000198074187f;
    p = p * square + 0.00833302514f;
    p = p * square + -0.166666567f;
    p = inside + inside * (p * square);
    float outside = past * (past * past * (1.0f / 6.0f) - 1.0f);
    float y = size > 3.14159274f ? outside : p;
    return x < 0.0f ? -y : y;
}

FR_INLINE float m_arctan(float x)
{
    float size = m_abs(x);
    float large = size > 2.41421356f ? 1.0f : 0.0f, middle = (size > 0.414213562f) & (size <= 2.41421356f);
    float top = size > 2.41421356f ? -1.0f : (middle != 0.0f ? size - 1.0f : size);
    float bottom = size > 2.41421356f ? size : (middle != 0.0f ? size + 1.0f : 1.0f);
    float base = large * 1.57079633f + middle * 0.785398163f;
    float t = top / bottom, square = t * t;
    float p = -0.0603478825f;
    p = p * square + 0.105734789f;
    p = p * square + -0.142400829f;
    p = p * square + 0.199982169f;
    p = p * square + -0.333333076f;
    return m_signed_as(base + (t + t * (p * square)), x);
}

FR_INLINE float m_sign(float x)
{
    return (x > 0.0f ? 1.0f : 0.0f) - (x < 0.0f ? 1.0f : 0.0f);
}

#endif
