/* Functions of sixteen floats, and rows of any dtype, on top of the operations of vector.h.
 *
 * exp, tanh and the logistic function are polynomials of our own: libm has no vector form that C11 can name,
 * and its bits differ between machines. exp is 0 below -103.97 and infinite above 88.72. Largest errors over
 * all exponents, asserted by tests/unit/test_kernels_math.c: x sigmoid(x) 5 ulp (measured 2.0), tanh 4 ulp
 * (measured 0.9). The coefficients are those of the classic single-precision minimax fits. NaN comes out as
 * NaN everywhere.
 */
#ifndef FRONTIER_CPU_VECTOR_MATH_H
#define FRONTIER_CPU_VECTOR_MATH_H
#include "frontier/graph.h"

FR_INLINE vf v_exp(vf x)
{
    x = v_max(v_set(-104.0f), v_min(v_set(89.0f), x));
    vf n = v_round(v_mul(x, v_set(1.44269504088896341f)));
    vf r = v_fnma(n, v_set(0.693359375f), x);
    r = v_fnma(n, v_set(-2.12194440e-4f), r);
    vf p = v_set(1.9875691500e-4f);
    p = v_fma(p, r, v_set(1.3981999507e-3f));
    p = v_fma(p, r, v_set(8.3334519073e-3f));
    p = v_fma(p, r, v_set(4.1665795894e-2f));
    p = v_fma(p, r, v_set(1.6666665459e-1f));
    p = v_fma(p, r, v_set(5.0000001201e-1f));
    p = v_fma(p, v_mul(r, r), r);
    return v_scale(v_add(p, v_set(1)), n);
}

FR_INLINE vf v_sigmoid(vf x)
{
    return v_div(v_set(1), v_add(v_set(1), v_exp(v_sub(v_set(0), x))));
}

/* Odd polynomial near 0, 1 - 2 / (exp(2 |x|) + 1) with the sign of x elsewhere. */
FR_INLINE vf v_tanh(vf x)
{
    vf size = v_abs(x), square = v_mul(x, x);
    vf p = v_set(-5.70498872745e-3f);
    p = v_fma(p, square, v_set(2.06390887954e-2f));
    p = v_fma(p, square, v_set(-5.37397155531e-2f));
    p = v_fma(p, square, v_set(1.33314422036e-1f));
    p = v_fma(p, square, v_set(-3.33332819422e-1f));
    vf near = v_fma(v_mul(p, square), x, x);
    vf far = v_sub(v_set(1), v_div(v_set(2), v_add(v_exp(v_add(size, size)), v_set(1))));
    far = v_less(x, v_set(0), v_sub(v_set(0), far), far);
    return v_less(v_set(0.625f), size, far, near);
}

/* `lanes` elements (at most 16) of a matrix in either dtype, from element `start` on. */
FR_INLINE vf v_get(const void *data, fr_dtype dtype, int64_t start, int64_t lanes)
{
    if (dtype == FR_BF16)
        return v_load_bf16_part((const uint16_t *)data + start, lanes);
    return v_load_part((const float *)data + start, lanes);
}

FR_INLINE void v_put(void *data, fr_dtype dtype, int64_t start, int64_t lanes, vf value)
{
    if (dtype == FR_BF16)
        v_store_bf16_part((uint16_t *)data + start, value, lanes);
    else
        v_store_part((float *)data + start, value, lanes);
}

/* Writes or adds, as gradients ask for. */
FR_INLINE void v_put_gradient(void *data, fr_dtype dtype, int64_t start, int64_t lanes, vf value,
                              bool accumulate)
{
    v_put(data, dtype, start, lanes, accumulate ? v_add(v_get(data, dtype, start, lanes), value) : value);
}

FR_INLINE int64_t lanes_left(int64_t count, int64_t i)
{
    return count - i < FR_LANES ? count - i : FR_LANES;
}

FR_INLINE float read_scalar(const fr_call *call, int input)
{
    return *(const float *)call->in[input];
}

/* Every kernel here takes fp32 and bf16 matrices with fp32 parameters; fp64 plans are for the reference. */
FR_INLINE bool floats_only(const fr_call *call)
{
    for (int i = 0; i < call->node->inputs; i++)
        if (call->node->in[i] && call->in_dtype[i] == FR_F64)
            return false;
    for (int i = 0; i < call->node->outputs; i++)
        if (call->out_dtype[i] == FR_F64)
            return false;
    return true;
}

#endif
