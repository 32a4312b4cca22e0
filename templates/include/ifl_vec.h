/* Vectors of 16 floats, written once for every instruction set.
 *
 * GNU vector extensions carry the arithmetic (gcc ≥ 12, clang ≥ 14), so the same source compiles for AVX-512, for any
 * other x86-64 and for other CPUs; intrinsics are used only where they are faster. Compile with -ffp-contract=off: only
 * ifl_fma fuses multiply-adds, and on every lane, so that a result does not depend on how a loop is
 * split. With AVX-512, AVX2 and NEON ifl_fma rounds once; the portable variant rounds twice. */
#pragma once
#include <stdint.h>
#include <string.h>
#if defined(IFL_PORTABLE)
#elif defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define IFL_AVX512 1
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define IFL_AVX2 1
#elif defined(__aarch64__) && defined(__ARM_NEON) && defined(__ARM_FEATURE_DOTPROD)
#define IFL_NEON 1
#endif
#if defined(IFL_AVX512) || defined(IFL_AVX2)
#include <immintrin.h>
#elif defined(IFL_NEON)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h> /* enough for the portable variant; immintrin.h compiles much slower */
#endif
#if !defined(IFL_AVX512) && defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpsabi" /* functions with vector arguments are inlined, so their ABI does not matter */
#endif

#define IFL_INLINE static inline __attribute__((always_inline, unused))

typedef float ifl_v16 __attribute__((vector_size(64)));
typedef int32_t ifl_v16i __attribute__((vector_size(64)));  /* also the result of a comparison: 0 or −1 */
typedef uint32_t ifl_v16u __attribute__((vector_size(64)));
typedef uint16_t ifl_v16h __attribute__((vector_size(32))); /* 16 f16 or bf16, as bits */

IFL_INLINE ifl_v16 ifl_set1(float x) { return (ifl_v16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
IFL_INLINE ifl_v16i ifl_set1i(int32_t x) { return (ifl_v16i){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }

#ifdef IFL_AVX2
/* Lanes 0…7 and 8…15, and their concatenation. (gcc 12 compiles a shuffle to one move per lane.) */
IFL_INLINE __m256 ifl_low_(ifl_v16 v) { __m256 r; memcpy(&r, &v, 32); return r; }
IFL_INLINE __m256 ifl_high_(ifl_v16 v) { __m256 r; memcpy(&r, (const char *)&v + 32, 32); return r; }
IFL_INLINE ifl_v16 ifl_both_(__m256 low, __m256 high) {
  ifl_v16 v;
  memcpy(&v, &low, 32);
  memcpy((char *)&v + 32, &high, 32);
  return v;
}
#endif

/* Loads and stores: at any address; aligned to 64 bytes (_a); the first n ≤ 16 lanes only, the others read as 0 (_n). */
#ifdef IFL_AVX2
/* Copies halves, each one register; gcc 12 copies the whole vector through memory, 16 bytes at a time. */
IFL_INLINE ifl_v16 ifl_load(const float *p) { return ifl_both_(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)); }
IFL_INLINE void ifl_store(float *p, ifl_v16 v) { _mm256_storeu_ps(p, ifl_low_(v)), _mm256_storeu_ps(p + 8, ifl_high_(v)); }
IFL_INLINE ifl_v16 ifl_load_a(const float *p) { return ifl_load(p); }
IFL_INLINE void ifl_store_a(float *p, ifl_v16 v) { ifl_store(p, v); }
#else
IFL_INLINE ifl_v16 ifl_load(const float *p) { ifl_v16 v; memcpy(&v, p, 64); return v; }
IFL_INLINE void ifl_store(float *p, ifl_v16 v) { memcpy(p, &v, 64); }
IFL_INLINE ifl_v16 ifl_load_a(const float *p) { return *(const ifl_v16 *)__builtin_assume_aligned(p, 64); }
IFL_INLINE void ifl_store_a(float *p, ifl_v16 v) { *(ifl_v16 *)__builtin_assume_aligned(p, 64) = v; }
#endif

IFL_INLINE ifl_v16 ifl_load_n(const float *p, int n) {
#ifdef IFL_AVX512
  return (ifl_v16)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#else
  ifl_v16 v = {0};
  memcpy(&v, p, (size_t)n * 4);
  return v;
#endif
}

IFL_INLINE void ifl_store_n(float *p, ifl_v16 v, int n) {
#ifdef IFL_AVX512
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#else
  memcpy(p, &v, (size_t)n * 4);
#endif
}

#ifdef IFL_NEON
/* Four registers of four lanes. CALL(i) is register i of the result. */
typedef struct { float32x4_t v[4]; } ifl_quarters_;
IFL_INLINE ifl_quarters_ ifl_split_(ifl_v16 v) { ifl_quarters_ q; memcpy(&q, &v, 64); return q; }
#define IFL_QUARTERS_(CALL)                                                  \
  const ifl_quarters_ r_ = {{CALL(0), CALL(1), CALL(2), CALL(3)}};           \
  ifl_v16 out_;                                                              \
  memcpy(&out_, &r_, 64);                                                    \
  return out_
#endif

/* a·b + c on every lane: rounded once with AVX-512, AVX2 and NEON, twice elsewhere. */
IFL_INLINE ifl_v16 ifl_fma(ifl_v16 a, ifl_v16 b, ifl_v16 c) {
#ifdef IFL_AVX512
  return (ifl_v16)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(IFL_AVX2)
  return ifl_both_(_mm256_fmadd_ps(ifl_low_(a), ifl_low_(b), ifl_low_(c)), _mm256_fmadd_ps(ifl_high_(a), ifl_high_(b), ifl_high_(c)));
#elif defined(IFL_NEON)
  const ifl_quarters_ x = ifl_split_(a), y = ifl_split_(b), z = ifl_split_(c);
#define CALL(i) vfmaq_f32(z.v[i], x.v[i], y.v[i])
  IFL_QUARTERS_(CALL);
#undef CALL
#else
  return a * b + c;
#endif
}

/* The same for one number, so that a scalar tail rounds like the vectors. */
IFL_INLINE float ifl_fma1(float a, float b, float c) {
#if defined(IFL_AVX512) || defined(IFL_AVX2) || defined(IFL_NEON)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

/* m ? a : b on every lane; m is the result of a comparison. */
IFL_INLINE ifl_v16 ifl_select(ifl_v16i m, ifl_v16 a, ifl_v16 b) {
#ifdef IFL_AVX512
  return (ifl_v16)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)m), (__m512)b, (__m512)a);
#else
  return (ifl_v16)((m & (ifl_v16i)a) | (~m & (ifl_v16i)b));
#endif
}

/* a < b on every lane. If a vector spans several registers, gcc compares lane by lane; this compares registers. */
IFL_INLINE ifl_v16i ifl_less(ifl_v16 a, ifl_v16 b) {
#if defined(IFL_AVX2)
  const __m256 low = _mm256_cmp_ps(ifl_low_(a), ifl_low_(b), _CMP_LT_OQ), high = _mm256_cmp_ps(ifl_high_(a), ifl_high_(b), _CMP_LT_OQ);
  return (ifl_v16i)ifl_both_(low, high);
#elif defined(IFL_NEON)
  const ifl_quarters_ x = ifl_split_(a), y = ifl_split_(b);
  const uint32x4_t r[4] = {vcltq_f32(x.v[0], y.v[0]), vcltq_f32(x.v[1], y.v[1]), vcltq_f32(x.v[2], y.v[2]), vcltq_f32(x.v[3], y.v[3])};
  ifl_v16i out;
  memcpy(&out, r, 64);
  return out;
#else
  return a < b;
#endif
}

/* a = b on every lane, by registers as in ifl_less. */
IFL_INLINE ifl_v16i ifl_equal(ifl_v16 a, ifl_v16 b) {
#if defined(IFL_AVX2)
  const __m256 low = _mm256_cmp_ps(ifl_low_(a), ifl_low_(b), _CMP_EQ_OQ), high = _mm256_cmp_ps(ifl_high_(a), ifl_high_(b), _CMP_EQ_OQ);
  return (ifl_v16i)ifl_both_(low, high);
#else
  return a == b;
#endif
}

/* Lane i is −1 where bit i is 0. */
IFL_INLINE ifl_v16i ifl_without(uint32_t bits) {
#if defined(IFL_AVX2)
  const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), zero = _mm256_setzero_si256();
  const __m256i low = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int32_t)bits), lane), zero);
  const __m256i high = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int32_t)(bits >> 8)), lane), zero);
  return (ifl_v16i)ifl_both_((__m256)low, (__m256)high);
#else
  const ifl_v16i lane = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
  return (ifl_set1i((int32_t)bits) & lane) == 0;
#endif
}

/* Converts integral floats to integers. */
IFL_INLINE ifl_v16i ifl_whole(ifl_v16 x) {
#ifdef IFL_NEON
  const ifl_quarters_ q = ifl_split_(x);
  const int32x4_t r[4] = {vcvtq_s32_f32(q.v[0]), vcvtq_s32_f32(q.v[1]), vcvtq_s32_f32(q.v[2]), vcvtq_s32_f32(q.v[3])};
  ifl_v16i out;
  memcpy(&out, r, 64);
  return out;
#else
  return __builtin_convertvector(x, ifl_v16i);
#endif
}

/* Mask of the lanes with an index below n. */
IFL_INLINE ifl_v16i ifl_first(int n) {
  const ifl_v16i lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return lane < ifl_set1i(n);
}

IFL_INLINE ifl_v16 ifl_abs(ifl_v16 x) { return (ifl_v16)((ifl_v16i)x & 0x7fffffff); }

/* The larger and the smaller of a and b; b if either is NaN. */
IFL_INLINE ifl_v16 ifl_max(ifl_v16 a, ifl_v16 b) {
#ifdef IFL_AVX512
  return (ifl_v16)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(IFL_AVX2)
  return ifl_both_(_mm256_max_ps(ifl_low_(a), ifl_low_(b)), _mm256_max_ps(ifl_high_(a), ifl_high_(b)));
#elif defined(IFL_NEON)
  const ifl_quarters_ x = ifl_split_(a), y = ifl_split_(b);
#define CALL(i) vbslq_f32(vcgtq_f32(x.v[i], y.v[i]), x.v[i], y.v[i])
  IFL_QUARTERS_(CALL);
#undef CALL
#else
  return ifl_select(a > b, a, b);
#endif
}

IFL_INLINE ifl_v16 ifl_min(ifl_v16 a, ifl_v16 b) {
#ifdef IFL_AVX512
  return (ifl_v16)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(IFL_AVX2)
  return ifl_both_(_mm256_min_ps(ifl_low_(a), ifl_low_(b)), _mm256_min_ps(ifl_high_(a), ifl_high_(b)));
#elif defined(IFL_NEON)
  const ifl_quarters_ x = ifl_split_(a), y = ifl_split_(b);
#define CALL(i) vbslq_f32(vcltq_f32(x.v[i], y.v[i]), x.v[i], y.v[i])
  IFL_QUARTERS_(CALL);
#undef CALL
#else
  return ifl_select(a < b, a, b);
#endif
}

IFL_INLINE ifl_v16 ifl_sqrt(ifl_v16 x) {
#ifdef IFL_AVX512
  return (ifl_v16)_mm512_sqrt_ps((__m512)x);
#elif defined(IFL_AVX2)
  return ifl_both_(_mm256_sqrt_ps(ifl_low_(x)), _mm256_sqrt_ps(ifl_high_(x)));
#elif defined(IFL_NEON)
  const ifl_quarters_ q = ifl_split_(x);
#define CALL(i) vsqrtq_f32(q.v[i])
  IFL_QUARTERS_(CALL);
#undef CALL
#else
  for (int i = 0; i < 16; i++) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

/* Rounded to the nearest integer, ties to even, for |x| < 2²². */
IFL_INLINE ifl_v16 ifl_nearest(ifl_v16 x) {
  const ifl_v16 magic = ifl_set1(12582912.0f); /* 1.5·2²³: the sum has no bits left for a fraction */
  return (x + magic) - magic;
}

IFL_INLINE ifl_v16 ifl_floor(ifl_v16 x) {
#ifdef IFL_AVX512
  return (ifl_v16)_mm512_roundscale_ps((__m512)x, 0x09);
#elif defined(IFL_AVX2)
  return ifl_both_(_mm256_round_ps(ifl_low_(x), 0x09), _mm256_round_ps(ifl_high_(x), 0x09));
#elif defined(IFL_NEON)
  const ifl_quarters_ q = ifl_split_(x);
#define CALL(i) vrndmq_f32(q.v[i])
  IFL_QUARTERS_(CALL);
#undef CALL
#else
  ifl_v16i whole = ~(ifl_abs(x) < 8388608.0f); /* |x| ≥ 2²³ or NaN: nothing to round */
  ifl_v16 t = __builtin_convertvector(__builtin_convertvector(ifl_select(whole, ifl_set1(0), x), ifl_v16i), ifl_v16);
  t = ifl_select(t > x, t - 1.0f, t);
  t = (ifl_v16)((ifl_v16i)t | ((ifl_v16i)x & (int32_t)0x80000000)); /* −0 stays −0 */
  return ifl_select(whole, x, t);
#endif
}

/* Sum and maximum of the 16 lanes in a fixed tree: halves, quarters, pairs. */
typedef float ifl_v4_ __attribute__((vector_size(16)));
typedef int32_t ifl_v4i_ __attribute__((vector_size(16), unused));
IFL_INLINE ifl_v4_ ifl_add4_(ifl_v4_ a, ifl_v4_ b) { return a + b; }
IFL_INLINE ifl_v4_ ifl_max4_(ifl_v4_ a, ifl_v4_ b) {
#ifdef __SSE2__
  return (ifl_v4_)_mm_max_ps((__m128)a, (__m128)b);
#else
  const ifl_v4i_ m = a > b;
  return (ifl_v4_)((m & (ifl_v4i_)a) | (~m & (ifl_v4i_)b));
#endif
}
#define IFL_TREE_(v, op)                                               \
  ifl_v4_ q[4];                                                        \
  memcpy(q, &v, 64);                                                   \
  q[0] = op(op(q[0], q[2]), op(q[1], q[3]));                           \
  q[0] = op(q[0], __builtin_shufflevector(q[0], q[0], 2, 3, 0, 1));    \
  q[0] = op(q[0], __builtin_shufflevector(q[0], q[0], 1, 0, 3, 2));    \
  return q[0][0]
IFL_INLINE float ifl_sum(ifl_v16 v) { IFL_TREE_(v, ifl_add4_); }
IFL_INLINE float ifl_max_of(ifl_v16 v) { IFL_TREE_(v, ifl_max4_); }

/* Half precision and bfloat16 to float and back (round to nearest even; NaN stays NaN, subnormals are kept). */
IFL_INLINE ifl_v16h ifl_load_h(const uint16_t *p) { ifl_v16h v; memcpy(&v, p, 32); return v; }
IFL_INLINE void ifl_store_h(uint16_t *p, ifl_v16h v) { memcpy(p, &v, 32); }

IFL_INLINE ifl_v16 ifl_from_f16(ifl_v16h h) {
#ifdef IFL_AVX512
  return (ifl_v16)_mm512_cvtph_ps((__m256i)h);
#elif defined(IFL_AVX2)
  return ifl_both_(_mm256_cvtph_ps(_mm256_castsi256_si128((__m256i)h)), _mm256_cvtph_ps(_mm256_extracti128_si256((__m256i)h, 1)));
#elif defined(IFL_NEON)
  float16x4_t q[4];
  memcpy(q, &h, 32);
#define CALL(i) vcvt_f32_f16(q[i])
  IFL_QUARTERS_(CALL);
#undef CALL
#else
  ifl_v16u u = __builtin_convertvector(h, ifl_v16u);
  /* Shifts exponent and fraction into place, then corrects the exponent's bias by 2¹¹²: exact, also for subnormals. */
  ifl_v16 f = (ifl_v16)((u & 0x7fff) << 13) * 0x1p112f;
  ifl_v16u special = (ifl_v16u)((u & 0x7c00) == 0x7c00) & 0x7f800000;
  return (ifl_v16)((ifl_v16u)f | special | ((u & 0x8000) << 16));
#endif
}

IFL_INLINE float ifl_from_f16_1(uint16_t h) {
#if defined(IFL_AVX512) || defined(IFL_AVX2)
  return _cvtsh_ss(h);
#elif defined(IFL_NEON)
  __fp16 f;
  memcpy(&f, &h, 2);
  return (float)f;
#else
  union { uint32_t u; float f; } v = {.u = (uint32_t)(h & 0x7fff) << 13};
  v.f *= 0x1p112f;
  v.u |= ((h & 0x7c00) == 0x7c00 ? 0x7f800000u : 0) | (uint32_t)(h & 0x8000) << 16;
  return v.f;
#endif
}

IFL_INLINE ifl_v16h ifl_to_f16(ifl_v16 x) {
#ifdef IFL_AVX512
  return (ifl_v16h)_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(IFL_AVX2)
  return (ifl_v16h)_mm256_set_m128i(_mm256_cvtps_ph(ifl_high_(x), _MM_FROUND_TO_NEAREST_INT),
                                    _mm256_cvtps_ph(ifl_low_(x), _MM_FROUND_TO_NEAREST_INT));
#elif defined(IFL_NEON)
  const ifl_quarters_ q = ifl_split_(x);
  const float16x4_t h[4] = {vcvt_f16_f32(q.v[0]), vcvt_f16_f32(q.v[1]), vcvt_f16_f32(q.v[2]), vcvt_f16_f32(q.v[3])};
  ifl_v16h out;
  memcpy(&out, h, 32);
  return out;
#else
  ifl_v16u sign = (ifl_v16u)x & 0x80000000u, a = (ifl_v16u)x & 0x7fffffffu;
  ifl_v16u normal = (a - (112u << 23) + 0xfff + ((a >> 13) & 1)) >> 13; /* re-biased; rounding may carry to infinity */
  ifl_v16u small = (ifl_v16u)((ifl_v16)a + 0.5f) - 0x3f000000u;         /* below 2⁻¹⁴: the addition rounds at 2⁻²⁴ */
  ifl_v16u nan = (ifl_v16u)(a > 0x7f800000u), big = (ifl_v16u)(a >= 0x47800000u), tiny = (ifl_v16u)(a < 0x38800000u);
  ifl_v16u r = (tiny & small) | (~tiny & normal);
  r = (big & 0x7c00) | (~big & r);
  r |= (nan & (0x200 | ((a >> 13) & 0x3ff)));
  return __builtin_convertvector(r | (sign >> 16), ifl_v16h);
#endif
}

IFL_INLINE ifl_v16 ifl_from_bf16(ifl_v16h h) {
#ifdef IFL_AVX512
  return (ifl_v16)_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)h), 16); /* gcc 12 compiles the portable code to several instructions */
#else
  return (ifl_v16)(__builtin_convertvector(h, ifl_v16u) << 16);
#endif
}
IFL_INLINE float ifl_from_bf16_1(uint16_t h) {
  union { uint32_t u; float f; } v = {.u = (uint32_t)h << 16};
  return v.f;
}
IFL_INLINE ifl_v16h ifl_to_bf16(ifl_v16 x) {
  ifl_v16u a = (ifl_v16u)x, nan = (ifl_v16u)((a & 0x7fffffffu) > 0x7f800000u);
  ifl_v16u r = (a + 0x7fff + ((a >> 16) & 1)) >> 16;
  return __builtin_convertvector((nan & ((a >> 16) | 0x40)) | (~nan & r), ifl_v16h);
}

IFL_INLINE ifl_v16 ifl_load_f16(const uint16_t *p) { return ifl_from_f16(ifl_load_h(p)); }
IFL_INLINE ifl_v16 ifl_load_bf16(const uint16_t *p) { return ifl_from_bf16(ifl_load_h(p)); }
IFL_INLINE void ifl_store_f16(uint16_t *p, ifl_v16 x) { ifl_store_h(p, ifl_to_f16(x)); }
IFL_INLINE void ifl_store_bf16(uint16_t *p, ifl_v16 x) { ifl_store_h(p, ifl_to_bf16(x)); }

#include "ifl_math.h"
