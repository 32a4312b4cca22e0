/* Vectors of the CPU's register width, for the inner loops of matmul kernels: IFL_LANES rows of a panel of 16.
 * The arithmetic of a lane does not depend on IFL_LANES. (ifl_v16 is always 16 wide; if registers are narrower,
 * gcc keeps such vectors in memory.) */
#pragma once
#include "ifl_vec.h"

#if defined(IFL_AVX512)
#define IFL_LANES 16
#define IFL_SPLAT_(x) {x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}
#elif defined(IFL_AVX2)
#define IFL_LANES 8
#define IFL_SPLAT_(x) {x, x, x, x, x, x, x, x}
#else
#define IFL_LANES 4
#define IFL_SPLAT_(x) {x, x, x, x}
#endif

typedef float ifl_lanes __attribute__((vector_size(4 * IFL_LANES)));
typedef int32_t ifl_lanes_i __attribute__((vector_size(4 * IFL_LANES)));
typedef uint32_t ifl_lanes_u __attribute__((vector_size(4 * IFL_LANES)));
typedef uint16_t ifl_lanes_h __attribute__((vector_size(2 * IFL_LANES))); /* f16 or bf16, as bits */

IFL_INLINE ifl_lanes ifl_lanes_set1(float x) { return (ifl_lanes)IFL_SPLAT_(x); }
IFL_INLINE ifl_lanes_i ifl_lanes_set1i(int32_t x) { return (ifl_lanes_i)IFL_SPLAT_(x); }
IFL_INLINE ifl_lanes ifl_lanes_load(const float *p) { ifl_lanes v; memcpy(&v, p, sizeof v); return v; }
IFL_INLINE void ifl_lanes_store(float *p, ifl_lanes v) { memcpy(p, &v, sizeof v); }

/* a·b + c; rounded as ifl_fma. */
IFL_INLINE ifl_lanes ifl_lanes_fma(ifl_lanes a, ifl_lanes b, ifl_lanes c) {
#if defined(IFL_AVX512)
  return (ifl_lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(IFL_AVX2)
  return (ifl_lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(IFL_NEON)
  return (ifl_lanes)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}

#ifdef IFL_NEON
/* The same with lane `lane`, a literal, of x for a, without a separate broadcast. */
#define IFL_LANES_FMA_LANE(x, lane, b, c) ((ifl_lanes)vfmaq_laneq_f32((float32x4_t)(c), (float32x4_t)(b), (float32x4_t)(x), lane))
#endif

IFL_INLINE ifl_lanes ifl_lanes_load_f16(const uint16_t *p) {
  ifl_lanes_h h;
  memcpy(&h, p, sizeof h);
#if defined(IFL_AVX512)
  return (ifl_lanes)_mm512_cvtph_ps((__m256i)h);
#elif defined(IFL_AVX2)
  return (ifl_lanes)_mm256_cvtph_ps((__m128i)h);
#elif defined(IFL_NEON)
  float16x4_t q;
  memcpy(&q, &h, sizeof q);
  return (ifl_lanes)vcvt_f32_f16(q);
#else
  /* As in ifl_from_f16: shift the bits into place, then correct the exponent's bias by 2¹¹². */
  const ifl_lanes_u u = __builtin_convertvector(h, ifl_lanes_u);
  const ifl_lanes f = (ifl_lanes)((u & 0x7fff) << 13) * 0x1p112f;
  const ifl_lanes_u special = (ifl_lanes_u)((u & 0x7c00) == 0x7c00) & 0x7f800000;
  return (ifl_lanes)((ifl_lanes_u)f | special | ((u & 0x8000) << 16));
#endif
}

/* Scales of one byte: bits 7 to 14 of an f16 number, times 2⁻⁸. */
IFL_INLINE ifl_lanes ifl_lanes_load_byte_scale(const uint8_t *p) {
  uint8_t b __attribute__((vector_size(IFL_LANES)));
  memcpy(&b, p, sizeof b);
  const ifl_lanes_h h = __builtin_convertvector(b, ifl_lanes_h) << 7;
  return ifl_lanes_load_f16((const uint16_t *)(const void *)&h) * 0x1p-8f;
}

IFL_INLINE ifl_lanes ifl_lanes_load_bf16(const uint16_t *p) {
  ifl_lanes_h h;
  memcpy(&h, p, sizeof h);
  return (ifl_lanes)(__builtin_convertvector(h, ifl_lanes_u) << 16);
}

IFL_INLINE ifl_lanes ifl_lanes_load_i8(const int8_t *p) {
#if defined(IFL_AVX512)
  return (ifl_lanes)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
#elif defined(IFL_AVX2)
  return (ifl_lanes)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
#elif defined(IFL_NEON)
  int32_t four;
  memcpy(&four, p, 4);
  return (ifl_lanes)vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
#else
  return (ifl_lanes){(float)p[0], (float)p[1], (float)p[2], (float)p[3]};
#endif
}
