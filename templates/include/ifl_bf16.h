/* Dot products of bf16 pairs, summed in float (vdpbf16ps). A bf16 panel stores 16 weights per k. A pair vector holds in 32-bit
 * lane r the weights of row r for an even k, in the low half, and for k + 1. */
#pragma once
#include "ifl_lanes.h"

typedef uint32_t ifl_pairs __attribute__((vector_size(4 * IFL_LANES)));

/* The pairs of two consecutive k; w points to the first of IFL_LANES weights. */
IFL_INLINE ifl_pairs ifl_join_pairs(const uint16_t *w) {
#ifdef IFL_AVX512
  const ifl_v16u lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const ifl_v16u order = (lane + 16) << 16 | lane; /* words 0, 16, 1, 17, … */
  return (ifl_pairs)_mm512_permutexvar_epi16((__m512i)order, _mm512_loadu_si512(w));
#else
  ifl_lanes_h low, high;
  memcpy(&low, w, sizeof low);
  memcpy(&high, w + 16, sizeof high);
  return __builtin_convertvector(low, ifl_lanes_u) | __builtin_convertvector(high, ifl_lanes_u) << 16;
#endif
}

/* The pairs of the last k if the number of columns is odd: the second weight is 0. */
IFL_INLINE ifl_pairs ifl_lone_pairs(const uint16_t *w) {
  ifl_lanes_h low;
  memcpy(&low, w, sizeof low);
  return __builtin_convertvector(low, ifl_lanes_u);
}

/* acc[r] += w[r]·x over both halves; x is one pair in memory. vdpbf16ps flushes subnormal numbers to 0 and has its own order
 * of additions; the portable code adds the low half first and rounds as ifl_lanes_fma. */
IFL_INLINE ifl_lanes ifl_dot2(ifl_lanes acc, ifl_pairs w, const uint16_t *x) {
#if defined(IFL_AVX512) && defined(__AVX512BF16__)
  __m512 sum = (__m512)acc; /* with the intrinsic, gcc 12 emits a separate broadcast instruction */
  __asm__("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"((__m512i)w), "m"(*(const int32_t *)(const void *)x));
  return (ifl_lanes)sum;
#else
  acc = ifl_lanes_fma((ifl_lanes)(w << 16), ifl_lanes_set1(ifl_from_bf16_1(x[0])), acc);
  return ifl_lanes_fma((ifl_lanes)(w & 0xffff0000u), ifl_lanes_set1(ifl_from_bf16_1(x[1])), acc);
#endif
}
