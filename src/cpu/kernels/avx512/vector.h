/* Sixteen float lanes on AVX-512.
 *
 * Why it exists: the kernels in src/cpu/kernels/shared are written once, in terms of the type `vf` and the
 * few operations below, and compiled twice: here a vf is one 512-bit register, in avx2/vector.h two of 256
 * bits. Whatever needs more than these operations (exp, tanh, sums) is built from them in
 * shared/vector_math.h.
 *
 * NaN rule: v_max and v_min return the second operand when either is NaN (as the instruction does), so
 * callers put the value that may be NaN second.
 */
#ifndef FRONTIER_CPU_AVX512_VECTOR_H
#define FRONTIER_CPU_AVX512_VECTOR_H
#include <immintrin.h>
#include <stdint.h>

#define FR_LANES        16
#define FR_ISA(name)    name##_avx512
#define FR_ISA_TEXT     "avx512"
#define FR_GEMM_ROWS    6 /* 6 x 4 accumulators + 4 of B + 1 of A of 32 registers */
#define FR_GEMM_VECTORS 4
#define FR_TILE_ROWS    8 /* attention: divides every usual head width */
#define FR_TILE_VECTORS 2

#define FR_INLINE static inline __attribute__((always_inline, unused))

typedef __m512 vf;

FR_INLINE vf v_set(float x) { return _mm512_set1_ps(x); }
FR_INLINE vf v_load(const float *p) { return _mm512_loadu_ps(p); }
FR_INLINE void v_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
FR_INLINE __mmask16 v_first(int64_t n) { return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1u); }
/* The first n lanes (n <= 16); the others are zero, and are not touched by a store. */
FR_INLINE vf v_load_part(const float *p, int64_t n) { return _mm512_maskz_loadu_ps(v_first(n), p); }
FR_INLINE void v_store_part(float *p, vf x, int64_t n) { _mm512_mask_storeu_ps(p, v_first(n), x); }
/* The first and the last eight lanes. */
FR_INLINE void v_store_low(float *p, vf x) { _mm256_storeu_ps(p, _mm512_castps512_ps256(x)); }
FR_INLINE void v_store_high(float *p, vf x) { _mm256_storeu_ps(p, _mm512_extractf32x8_ps(x, 1)); }
FR_INLINE void v_prefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
FR_INLINE void v_prefetch_far(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T1); }
FR_INLINE vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
FR_INLINE vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
FR_INLINE vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
FR_INLINE vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
FR_INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }   /* a b + c */
FR_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a b */
FR_INLINE vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
FR_INLINE vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
FR_INLINE vf v_round(vf x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* x 2^n for integral n */
FR_INLINE vf v_scale(vf x, vf n) { return _mm512_scalef_ps(x, n); }
/* a < b ? x : y, lane by lane (a NaN compares false) */
FR_INLINE vf v_less(vf a, vf b, vf x, vf y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
FR_INLINE vf v_abs(vf x) { return _mm512_abs_ps(x); }

/* Sixteen bf16 values, widened; and rounded to nearest even (a NaN stays one: the quiet bit is set). */
FR_INLINE vf v_widen(__m256i x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}
FR_INLINE vf v_load_bf16(const uint16_t *p) { return v_widen(_mm256_loadu_si256((const __m256i *)p)); }
FR_INLINE vf v_load_bf16_part(const uint16_t *p, int64_t n)
{
    return v_widen(_mm256_maskz_loadu_epi16(v_first(n), p));
}
FR_INLINE __m512i v_rounded_bits(vf x)
{
    __m512i bits = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    return _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), rounded, quiet);
}
FR_INLINE __m256i v_narrow(vf x) { return _mm512_cvtepi32_epi16(_mm512_srli_epi32(v_rounded_bits(x), 16)); }
FR_INLINE void v_store_bf16(uint16_t *p, vf x) { _mm256_storeu_si256((__m256i *)p, v_narrow(x)); }
FR_INLINE void v_store_bf16_part(uint16_t *p, vf x, int64_t n)
{
    _mm256_mask_storeu_epi16(p, v_first(n), v_narrow(x));
}
FR_INLINE vf v_through_bf16(vf x)
{
    return _mm512_castsi512_ps(_mm512_and_si512(v_rounded_bits(x), _mm512_set1_epi32((int)0xffff0000u)));
}

/* rows[i] lane j becomes rows[j] lane i */
FR_INLINE void v_transpose(vf rows[16])
{
    vf t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        __m512d a = _mm512_castps_pd(t[i]), b = _mm512_castps_pd(t[i + 1]);
        __m512d c = _mm512_castps_pd(t[i + 2]), d = _mm512_castps_pd(t[i + 3]);
        rows[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        rows[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        rows[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        rows[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    for (int i = 0; i < 4; i++) {
        vf ab = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0x88),
           cd = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0xdd);
        vf ef = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0x88);
        vf gh = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0xdd);
        t[i] = _mm512_shuffle_f32x4(ab, ef, 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(cd, gh, 0x88);
        t[i + 8] = _mm512_shuffle_f32x4(ab, ef, 0xdd);
        t[i + 12] = _mm512_shuffle_f32x4(cd, gh, 0xdd);
    }
    for (int i = 0; i < 16; i++)
        rows[i] = t[i];
}

/* For pairs of neighbouring channels: n (at most 8) floats, each twice; (a, b) to (b, a); (a, b) to (-a, b).
 */
FR_INLINE vf v_load_doubled(const float *p, int64_t n)
{
    const __m512i twice = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    return _mm512_permutexvar_ps(twice, v_load_part(p, n));
}
FR_INLINE vf v_swap_neighbours(vf x) { return _mm512_permute_ps(x, 0xb1); }
FR_INLINE vf v_negate_even(vf x) { return _mm512_mask_sub_ps(x, 0x5555, _mm512_setzero_ps(), x); }

/* Sum and maximum over the lanes, always in the same order. */
FR_INLINE float v_total(vf x)
{
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}
FR_INLINE float v_lane0(vf x) { return _mm512_cvtss_f32(x); }
FR_INLINE float v_largest(vf x) { return _mm512_reduce_max_ps(x); }
FR_INLINE vf v_keep(vf x, int64_t n) { return _mm512_maskz_mov_ps(v_first(n), x); } /* zero beyond lane n */
FR_INLINE vf v_max_part(vf a, vf b, int64_t n) { return _mm512_mask_max_ps(a, v_first(n), a, b); }
#endif
