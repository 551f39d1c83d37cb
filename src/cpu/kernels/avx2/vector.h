/* Sixteen float lanes on AVX2: a vf is a pair of 256-bit registers. The operations, their order of sums and
 * their NaN rules are those of avx512/vector.h; the kernels in shared/ see no difference but smaller register
 * tiles (16 registers instead of 32).
 */
#ifndef FRONTIER_CPU_AVX2_VECTOR_H
#define FRONTIER_CPU_AVX2_VECTOR_H
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define FR_LANES        16
#define FR_ISA(name)    name##_avx2
#define FR_ISA_TEXT     "avx2"
#define FR_GEMM_ROWS    6 /* 6 x 2 accumulators + 2 of B + 1 of A of 16 registers */
#define FR_GEMM_VECTORS 1
#define FR_TILE_ROWS    4
#define FR_TILE_VECTORS 1

#define FR_INLINE static inline __attribute__((always_inline, unused))

typedef struct vf {
    __m256 a, b;
} vf;
typedef struct v_mask {
    __m256i a, b;
} v_mask;

FR_INLINE vf v_set(float x) { return (vf){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
FR_INLINE vf v_load(const float *p) { return (vf){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
/* The first and the last eight lanes. */
FR_INLINE void v_store_low(float *p, vf x) { _mm256_storeu_ps(p, x.a); }
FR_INLINE void v_store_high(float *p, vf x) { _mm256_storeu_ps(p, x.b); }
FR_INLINE void v_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}
FR_INLINE v_mask v_first(int64_t n)
{
    const __m256i low = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0),
                  high = _mm256_set_epi32(15, 14, 13, 12, 11, 10, 9, 8);
    __m256i count = _mm256_set1_epi32(n > 16 ? 16 : (int)n);
    return (v_mask){_mm256_cmpgt_epi32(count, low), _mm256_cmpgt_epi32(count, high)};
}
FR_INLINE vf v_load_part(const float *p, int64_t n)
{
    if (n >= 16)
        return v_load(p);
    v_mask m = v_first(n);
    return (vf){_mm256_maskload_ps(p, m.a), n > 8 ? _mm256_maskload_ps(p + 8, m.b) : _mm256_setzero_ps()};
}
FR_INLINE void v_store_part(float *p, vf x, int64_t n)
{
    if (n >= 16) {
        v_store(p, x);
        return;
    }
    v_mask m = v_first(n);
    _mm256_maskstore_ps(p, m.a, x.a);
    if (n > 8)
        _mm256_maskstore_ps(p + 8, m.b, x.b);
}
FR_INLINE void v_prefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
FR_INLINE void v_prefetch_far(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T1); }
FR_INLINE vf v_add(vf x, vf y) { return (vf){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
FR_INLINE vf v_sub(vf x, vf y) { return (vf){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
FR_INLINE vf v_mul(vf x, vf y) { return (vf){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
FR_INLINE vf v_div(vf x, vf y) { return (vf){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
FR_INLINE vf v_fma(vf x, vf y, vf z)
{
    return (vf){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
FR_INLINE vf v_fnma(vf x, vf y, vf z)
{
    return (vf){_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)};
}
FR_INLINE vf v_max(vf x, vf y) { return (vf){_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
FR_INLINE vf v_min(vf x, vf y) { return (vf){_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
FR_INLINE vf v_round(vf x)
{
    enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    return (vf){_mm256_round_ps(x.a, NEAREST), _mm256_round_ps(x.b, NEAREST)};
}
/* Two factors, so that both 2^-149 and 2^128 come out right. */
FR_INLINE __m256 v_scale_half(__m256 x, __m256 n)
{
    __m256i all = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(all, 1), rest = _mm256_sub_epi32(all, half);
    __m256i bias = _mm256_set1_epi32(127);
    x = _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23)));
    return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23)));
}
FR_INLINE vf v_scale(vf x, vf n) { return (vf){v_scale_half(x.a, n.a), v_scale_half(x.b, n.b)}; }
FR_INLINE vf v_less(vf a, vf b, vf x, vf y)
{
    return (vf){_mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(a.a, b.a, _CMP_LT_OQ)),
                _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(a.b, b.b, _CMP_LT_OQ))};
}
FR_INLINE vf v_abs(vf x)
{
    __m256 sign = _mm256_set1_ps(-0.0f);
    return (vf){_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}

/* ---- bf16 ---- */

FR_INLINE __m256 v_widen(__m128i x)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}
FR_INLINE vf v_load_bf16(const uint16_t *p)
{
    return (vf){v_widen(_mm_loadu_si128((const __m128i *)p)),
                v_widen(_mm_loadu_si128((const __m128i *)(p + 8)))};
}
FR_INLINE vf v_load_bf16_part(const uint16_t *p, int64_t n)
{
    uint16_t part[16] = {0};
    if (n >= 16)
        return v_load_bf16(p);
    memcpy(part, p, (size_t)n * sizeof *p);
    return v_load_bf16(part);
}
FR_INLINE __m256i v_rounded_bits(__m256 x)
{
    __m256i bits = _mm256_castps_si256(x),
            odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}
FR_INLINE void v_store_bf16(uint16_t *p, vf x)
{
    __m256i both = _mm256_packus_epi32(_mm256_srli_epi32(v_rounded_bits(x.a), 16),
                                       _mm256_srli_epi32(v_rounded_bits(x.b), 16));
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(both, 0xd8));
}
FR_INLINE void v_store_bf16_part(uint16_t *p, vf x, int64_t n)
{
    uint16_t part[16];
    if (n >= 16) {
        v_store_bf16(p, x);
        return;
    }
    v_store_bf16(part, x);
    memcpy(p, part, (size_t)n * sizeof *p);
}
FR_INLINE vf v_through_bf16(vf x)
{
    __m256i keep = _mm256_set1_epi32((int)0xffff0000u);
    return (vf){_mm256_castsi256_ps(_mm256_and_si256(v_rounded_bits(x.a), keep)),
                _mm256_castsi256_ps(_mm256_and_si256(v_rounded_bits(x.b), keep))};
}

/* ---- across lanes ---- */

FR_INLINE void v_transpose8(__m256 r[8])
{
    __m256 t[8], u[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}
FR_INLINE void v_transpose(vf rows[16])
{
    __m256 top_left[8], top_right[8], low_left[8], low_right[8];
    for (int i = 0; i < 8; i++) {
        top_left[i] = rows[i].a;
        top_right[i] = rows[i].b;
        low_left[i] = rows[i + 8].a;
        low_right[i] = rows[i + 8].b;
    }
    v_transpose8(top_left);
    v_transpose8(top_right);
    v_transpose8(low_left);
    v_transpose8(low_right);
    for (int i = 0; i < 8; i++) {
        rows[i] = (vf){top_left[i], low_left[i]};
        rows[i + 8] = (vf){top_right[i], low_right[i]};
    }
}
FR_INLINE vf v_load_doubled(const float *p, int64_t n)
{
    const __m256i low = _mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0),
                  high = _mm256_set_epi32(7, 7, 6, 6, 5, 5, 4, 4);
    __m256 x = v_load_part(p, n).a;
    return (vf){_mm256_permutevar8x32_ps(x, low), _mm256_permutevar8x32_ps(x, high)};
}
FR_INLINE vf v_swap_neighbours(vf x)
{
    return (vf){_mm256_permute_ps(x.a, 0xb1), _mm256_permute_ps(x.b, 0xb1)};
}
FR_INLINE vf v_negate_even(vf x)
{
    __m256 sign = _mm256_set_ps(0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f);
    return (vf){_mm256_xor_ps(x.a, sign), _mm256_xor_ps(x.b, sign)};
}
FR_INLINE float v_total(vf x)
{
    __m256 h = _mm256_add_ps(x.a, x.b);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}
FR_INLINE float v_lane0(vf x) { return _mm256_cvtss_f32(x.a); }
FR_INLINE float v_largest(vf x)
{
    __m256 h = _mm256_max_ps(x.a, x.b);
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_shuffle_ps(q, q, 1)));
}
FR_INLINE vf v_keep(vf x, int64_t n)
{
    v_mask m = v_first(n);
    return (vf){_mm256_and_ps(x.a, _mm256_castsi256_ps(m.a)), _mm256_and_ps(x.b, _mm256_castsi256_ps(m.b))};
}
FR_INLINE vf v_max_part(vf x, vf y, int64_t n)
{
    v_mask m = v_first(n);
    vf larger = v_max(x, y);
    return (vf){_mm256_blendv_ps(x.a, larger.a, _mm256_castsi256_ps(m.a)),
                _mm256_blendv_ps(x.b, larger.b, _mm256_castsi256_ps(m.b))};
}
#endif
