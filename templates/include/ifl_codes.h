/* Weight codes: 64 bytes, of which bytes 4r … 4r+3 belong to row r of a panel, for four consecutive k. */
#pragma once
#include "ifl_vec.h"

typedef uint8_t ifl_v64u8 __attribute__((vector_size(64)));
typedef uint16_t ifl_v32u16 __attribute__((vector_size(64)));

IFL_INLINE ifl_v64u8 ifl_load_codes(const uint8_t *p) { ifl_v64u8 v; memcpy(&v, p, 64); return v; }
IFL_INLINE void ifl_store_codes(uint8_t *p, ifl_v64u8 v) { memcpy(p, &v, 64); }

/* One row of the bit matrix of ifl_field: bit `to` of the result is bit `from` of the byte. */
#define IFL_ROW_(i) ((i) < width ? (uint64_t)1 << (from + (i)) << (8 * (7 - to - (i))) : 0)

/* `width` ≤ 5 bits of every byte, from bit `from`, moved to bit `to`; the other bits are 0. All three are constants. */
IFL_INLINE ifl_v64u8 ifl_field(ifl_v64u8 p, const int from, const int width, const int to) {
  const uint8_t mask = (uint8_t)((1u << width) - 1);
  if (from == to) return p & (uint8_t)(mask << to);
#if defined(IFL_AVX512) && defined(__GFNI__)
  const uint64_t matrix = IFL_ROW_(0) | IFL_ROW_(1) | IFL_ROW_(2) | IFL_ROW_(3) | IFL_ROW_(4);
  return (ifl_v64u8)_mm512_gf2p8affine_epi64_epi8((__m512i)p, _mm512_set1_epi64((long long)matrix), 0);
#else
  /* Shifts of 16-bit lanes; what crosses from one byte to the other is masked away. */
  ifl_v32u16 h = (ifl_v32u16)p;
  h = from > to ? h >> (from - to) : h << (to - from);
  return (ifl_v64u8)h & (uint8_t)(mask << to);
#endif
}

/* acc[r] += Σ codes[4r+i]·x[i], i = 0…3, exact: codes are unsigned, x is signed. */
IFL_INLINE ifl_v16i ifl_dot4(ifl_v16i acc, ifl_v64u8 codes, const int8_t *x) {
#if defined(IFL_AVX512) && defined(__AVX512VNNI__)
  int32_t four;
  memcpy(&four, x, 4);
  return (ifl_v16i)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)codes, _mm512_set1_epi32(four));
#elif defined(__SSE2__)
  /* Codes 0, 2 and codes 1, 3 as 16-bit lanes: two multiply-adds of pairs for every four rows. */
  const __m128i even = _mm_set1_epi32((int32_t)((uint16_t)x[0] | (uint32_t)(uint16_t)x[2] << 16));
  const __m128i odd = _mm_set1_epi32((int32_t)((uint16_t)x[1] | (uint32_t)(uint16_t)x[3] << 16));
  __m128i c[4], a[4];
  memcpy(c, &codes, 64);
  memcpy(a, &acc, 64);
  for (int i = 0; i < 4; i++) {
    __m128i lo = _mm_and_si128(c[i], _mm_set1_epi16(0xff)), hi = _mm_srli_epi16(c[i], 8);
    a[i] = _mm_add_epi32(a[i], _mm_add_epi32(_mm_madd_epi16(lo, even), _mm_madd_epi16(hi, odd)));
  }
  memcpy(&acc, a, 64);
  return acc;
#else
  ifl_v16i c = (ifl_v16i)codes;
  acc += (c & 0xff) * (int32_t)x[0] + ((c >> 8) & 0xff) * (int32_t)x[1];
  return acc + ((c >> 16) & 0xff) * (int32_t)x[2] + ((c >> 24) & 0xff) * (int32_t)x[3];
#endif
}

/* The two codes of a pair v = 11·q + r < 121, which stands in the low 7 bits of every byte (bit 7 is ignored). */
#if defined(IFL_AVX512) && defined(__AVX512VBMI__)
#define IFL_ELEVEN_(q) q, q, q, q, q, q, q, q, q, q, q
static const uint8_t ifl_quotients[128] __attribute__((aligned(64), unused)) = {
    IFL_ELEVEN_(0), IFL_ELEVEN_(1), IFL_ELEVEN_(2), IFL_ELEVEN_(3), IFL_ELEVEN_(4),  IFL_ELEVEN_(5),
    IFL_ELEVEN_(6), IFL_ELEVEN_(7), IFL_ELEVEN_(8), IFL_ELEVEN_(9), IFL_ELEVEN_(10), 11, 11, 11, 11, 11, 11, 11};
#define IFL_TO_TEN_ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
static const uint8_t ifl_remainders[128] __attribute__((aligned(64), unused)) = {
    IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_,
    IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_, IFL_TO_TEN_, 0, 1, 2, 3, 4, 5, 6};
IFL_INLINE ifl_v64u8 ifl_lookup128_(const uint8_t *table, ifl_v64u8 v) { /* vpermi2b itself ignores bit 7 */
  return (ifl_v64u8)_mm512_permutex2var_epi8(_mm512_load_si512(table), (__m512i)v, _mm512_load_si512(table + 64));
}
IFL_INLINE ifl_v64u8 ifl_pair_first(ifl_v64u8 v) { return ifl_lookup128_(ifl_quotients, v); }
IFL_INLINE ifl_v64u8 ifl_pair_second(ifl_v64u8 v) { return ifl_lookup128_(ifl_remainders, v); }
#else
IFL_INLINE ifl_v64u8 ifl_pair_first(ifl_v64u8 v) {
  ifl_v32u16 lo = (ifl_v32u16)v & 0x7f, hi = ((ifl_v32u16)v >> 8) & 0x7f; /* 187/2048 is 1/11 for every v < 128 */
  return (ifl_v64u8)(((lo * 187) >> 11) | (((hi * 187) >> 11) << 8));
}
IFL_INLINE ifl_v64u8 ifl_pair_second(ifl_v64u8 v) {
  ifl_v64u8 q = ifl_pair_first(v);
  return (v & 0x7f) - (q + (q << 1) + (q << 3));
}
#endif
