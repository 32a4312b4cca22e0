/* Weight codes. A stored vector is 64 bytes: bytes 4r … 4r+3 belong to row r of a panel, for four consecutive k.
 * A register holds the codes of IFL_LANES rows. */
#pragma once
#include "ifl_lanes.h"

typedef uint8_t ifl_codes __attribute__((vector_size(4 * IFL_LANES)));
typedef uint16_t ifl_codes_h __attribute__((vector_size(4 * IFL_LANES)));

IFL_INLINE ifl_codes ifl_load_codes(const uint8_t *p) { ifl_codes v; memcpy(&v, p, sizeof v); return v; }
IFL_INLINE void ifl_store_codes(uint8_t *p, ifl_codes v) { memcpy(p, &v, sizeof v); }

/* One row of the bit matrix of ifl_field: bit `to` of the result is bit `from` of the byte. */
#define IFL_ROW_(i) ((i) < width ? (uint64_t)1 << (from + (i)) << (8 * (7 - to - (i))) : 0)

/* `width` ≤ 5 bits of every byte, from bit `from`, moved to bit `to`; the other bits are 0. All three are constants. */
IFL_INLINE ifl_codes ifl_field(ifl_codes p, const int from, const int width, const int to) {
  const uint8_t mask = (uint8_t)((1u << width) - 1);
  if (from == to) return p & (uint8_t)(mask << to);
#if defined(IFL_AVX512) && defined(__GFNI__)
  const uint64_t matrix = IFL_ROW_(0) | IFL_ROW_(1) | IFL_ROW_(2) | IFL_ROW_(3) | IFL_ROW_(4);
  return (ifl_codes)_mm512_gf2p8affine_epi64_epi8((__m512i)p, _mm512_set1_epi64((long long)matrix), 0);
#else
  /* Shifts 16-bit lanes and masks the bits that cross a byte boundary. */
  ifl_codes_h h = (ifl_codes_h)p;
  h = from > to ? h >> (from - to) : h << (to - from);
  return (ifl_codes)h & (uint8_t)(mask << to);
#endif
}

/* The low nibbles of bytes, or with high = 1 the high nibbles. */
IFL_INLINE ifl_codes ifl_nibble(ifl_codes p, int high) { return (ifl_codes)((ifl_codes_h)p >> (uint16_t)(4 * high)) & 15; }

#ifdef IFL_NEON
/* 16 bytes of activations: four groups of four, each a factor of ifl_dot4. IFL_DOT4_LANE is ifl_dot4 with group `lane`,
 * a literal. 128 is subtracted from 8-bit codes first, to make them signed, and the start value of the sum corrects for it. */
IFL_INLINE int8x16_t ifl_load_four(const int8_t *x) { return vld1q_s8(x); }
#define IFL_DOT4_LANE(acc, codes, four, lane) ((ifl_lanes_i)vdotq_laneq_s32((int32x4_t)(acc), (int8x16_t)(codes), four, lane))
IFL_INLINE ifl_codes ifl_less_128(ifl_codes c) { return c - 128; }
#endif

#ifdef IFL_AVX2
/* Sums of pairs of byte products in 16 bits (vpmaddubsw). */
typedef int16_t ifl_pairs __attribute__((vector_size(32)));

IFL_INLINE __m256i ifl_four_(const int8_t *x) {
  int32_t four;
  memcpy(&four, x, 4);
  return _mm256_set1_epi32(four);
}
/* codes[2i]·x[2i % 4] + codes[2i+1]·x[2i % 4 + 1]: codes are unsigned and below 128. */
IFL_INLINE ifl_pairs ifl_pairs_of(ifl_codes codes, const int8_t *x) { return (ifl_pairs)_mm256_maddubs_epi16((__m256i)codes, ifl_four_(x)); }
/* The same for signed codes: the instruction multiplies magnitudes, and the signs are applied to x, which is never −128. */
IFL_INLINE ifl_pairs ifl_pairs_signed(ifl_codes codes, const int8_t *x) {
  const __m256i c = (__m256i)codes;
  return (ifl_pairs)_mm256_maddubs_epi16(_mm256_abs_epi8(c), _mm256_sign_epi8(ifl_four_(x), c));
}
IFL_INLINE ifl_lanes_i ifl_pairs_widen(ifl_pairs p) { return (ifl_lanes_i)_mm256_madd_epi16((__m256i)p, _mm256_set1_epi16(1)); }
IFL_INLINE ifl_codes ifl_less_128(ifl_codes c) { return c - 128; }
#endif

/* acc[r] += Σ codes[4r+i]·x[i], i = 0…3, exact: codes are unsigned, x is signed. */
IFL_INLINE ifl_lanes_i ifl_dot4(ifl_lanes_i acc, ifl_codes codes, const int8_t *x) {
#if defined(IFL_AVX512) && defined(__AVX512VNNI__)
  /* With the intrinsic, gcc 12 emits a separate broadcast instruction, which costs a sixth of the speed. */
  __m512i sum = (__m512i)acc;
  __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"((__m512i)codes), "m"(*(const int32_t *)(const void *)x));
  return (ifl_lanes_i)sum;
#elif defined(IFL_NEON)
  /* The instruction multiplies signed bytes, so codes must be below 128 or reduced by 128 (ifl_less_128). */
  int32_t four;
  memcpy(&four, x, 4);
  return (ifl_lanes_i)vdotq_s32((int32x4_t)acc, (int8x16_t)codes, vreinterpretq_s8_s32(vdupq_n_s32(four)));
#elif defined(IFL_AVX2)
  /* As above: codes must be below 128 or reduced by 128. */
  return acc + ifl_pairs_widen(ifl_pairs_signed(codes, x));
#elif defined(__SSE2__)
  /* Codes 0, 2 and codes 1, 3 as 16-bit lanes, and the same of x: two multiply-adds of pairs. */
  int32_t four;
  memcpy(&four, x, 4);
  const ifl_codes_h c = (ifl_codes_h)codes;
  const __m128i v = _mm_set1_epi32(four), even = _mm_srai_epi16(_mm_slli_epi16(v, 8), 8), odd = _mm_srai_epi16(v, 8);
  acc += (ifl_lanes_i)_mm_madd_epi16((__m128i)(c & 0xff), even);
  return acc + (ifl_lanes_i)_mm_madd_epi16((__m128i)(c >> 8), odd);
#else
  const ifl_lanes_i c = (ifl_lanes_i)codes;
  acc += (c & 0xff) * (int32_t)x[0] + ((c >> 8) & 0xff) * (int32_t)x[1];
  return acc + ((c >> 16) & 0xff) * (int32_t)x[2] + ((c >> 24) & 0xff) * (int32_t)x[3];
#endif
}

/* The two codes q and r of a pair v = 11·q + r < 121 in the low 7 bits of every byte; bit 7 is ignored. */
#if defined(IFL_AVX512) && defined(__AVX512VBMI__)
#define IFL_ELEVEN_(q) q, q, q, q, q, q, q, q, q, q, q
static const uint8_t ifl_quotients[128] __attribute__((aligned(64), unused)) = {
    IFL_ELEVEN_(0), IFL_ELEVEN_(1), IFL_ELEVEN_(2), IFL_ELEVEN_(3), IFL_ELEVEN_(4),  IFL_ELEVEN_(5),
    IFL_ELEVEN_(6), IFL_ELEVEN_(7), IFL_ELEVEN_(8), IFL_ELEVEN_(9), IFL_ELEVEN_(10), 11, 11, 11, 11, 11, 11, 11};
#define IFL_TO_TEN_ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
static const uint8_t ifl_remainders[128] __attribute__((aligned(64), unused)) = {
    IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_,
    IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_, 0, 1, 2, 3, 4, 5, 6};
IFL_INLINE ifl_codes ifl_lookup128_(const uint8_t *table, ifl_codes v) { /* vpermi2b itself ignores bit 7 */
  return (ifl_codes)_mm512_permutex2var_epi8(_mm512_load_si512(table), (__m512i)v, _mm512_load_si512(table + 64));
}
IFL_INLINE ifl_codes ifl_pair_first(ifl_codes v) { return ifl_lookup128_(ifl_quotients, v); }
IFL_INLINE ifl_codes ifl_pair_second(ifl_codes v) { return ifl_lookup128_(ifl_remainders, v); }
#elif defined(IFL_AVX2)
/* Constants are loaded from memory, because gcc 12 otherwise builds each one at every use and replaces the multiplication
 * by 11 with three shifts and additions. */
#define IFL_EACH16_(low, high) IFL_EACH8_(low, high), IFL_EACH8_(low, high)
#define IFL_EACH8_(low, high) low, high, low, high, low, high, low, high, low, high, low, high, low, high, low, high
static const uint8_t ifl_pair_constants[6][32] __attribute__((aligned(32), unused)) = {
    {IFL_EACH16_(0x7f, 0x7f)}, {IFL_EACH16_(1, 1)}, {IFL_EACH16_(93, 0)}, {IFL_EACH16_(0, 93)}, {IFL_EACH16_(0, 15)}, {IFL_EACH16_(11, 0)}};
IFL_INLINE __m256i ifl_pair_constant_(const int i) {
  const uint8_t *p = ifl_pair_constants[0];
  __asm__("" : "+r"(p));
  return _mm256_load_si256((const __m256i *)(const void *)(p + 32 * i));
}
IFL_INLINE ifl_codes ifl_pair_first(ifl_codes v) {
  const __m256i more = _mm256_add_epi8(_mm256_and_si256((__m256i)v, ifl_pair_constant_(0)), ifl_pair_constant_(1));
  /* 93·(v + 1)/1024 rounds down to v/11 for every v < 128. */
  const __m256i even = _mm256_maddubs_epi16(more, ifl_pair_constant_(2)), odd = _mm256_maddubs_epi16(more, ifl_pair_constant_(3));
  return (ifl_codes)_mm256_or_si256(_mm256_srli_epi16(even, 10), _mm256_and_si256(_mm256_srli_epi16(odd, 2), ifl_pair_constant_(4)));
}
IFL_INLINE ifl_codes ifl_pair_second(ifl_codes v) { /* no carry between bytes: 11·11 < 256 */
  const __m256i eleven = _mm256_mullo_epi16((__m256i)ifl_pair_first(v), ifl_pair_constant_(5));
  return (ifl_codes)_mm256_sub_epi8(_mm256_and_si256((__m256i)v, ifl_pair_constant_(0)), eleven);
}
#else
IFL_INLINE ifl_codes ifl_pair_first(ifl_codes v) {
  ifl_codes_h lo = (ifl_codes_h)v & 0x7f, hi = ((ifl_codes_h)v >> 8) & 0x7f; /* 187/2048 is 1/11 for every v < 128 */
  return (ifl_codes)(((lo * 187) >> 11) | (((hi * 187) >> 11) << 8));
}
IFL_INLINE ifl_codes ifl_pair_second(ifl_codes v) {
  ifl_codes q = ifl_pair_first(v);
  return (v & 0x7f) - (q + (q << 1) + (q << 3));
}
#endif
