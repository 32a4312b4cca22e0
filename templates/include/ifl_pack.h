/* Packing of activation rows into tiles (the layout is that of ifl_kernel.h).
 *
 * A block of B numbers is quantized with one scale: scale = max|x| / 127, code = x·(127 / max|x|) rounded to the nearest,
 * ties to even. The sum of the codes is stored too, because kernels multiply it with the weights' base. It is the sum of the
 * quantized numbers, so that the rounding errors of both parts cancel.
 *
 * A column that is many times larger than its neighbors determines the scale of its whole block. So the row's largest
 * groups of four columns may be stored as outliers (ifl_outliers) with 8 bits and a scale of their own; the block quantizes
 * the remainder. */
#pragma once
#include "ifl_kernel.h"
#include "ifl_vec.h"

/* The first n ≤ 16 of 16 numbers. */
IFL_INLINE ifl_v16 ifl_pack_load_(const float *x, int n) { return n >= 16 ? ifl_load(x) : n > 0 ? ifl_load_n(x, n) : ifl_set1(0); }

/* 16 integer codes in −127 … 127. */
IFL_INLINE void ifl_codes_of_(int8_t *out, ifl_v16 v, float inv, ifl_v16i *sum) {
#ifdef IFL_AVX512
  const __m512i q = _mm512_cvtps_epi32((__m512)(v * inv)); /* rounds to nearest even, the default mode */
  _mm_storeu_si128((__m128i *)out, _mm512_cvtepi32_epi8(q));
  *sum += (ifl_v16i)q;
#elif defined(__SSE2__)
  v *= inv;
  __m128 f[4];
  memcpy(f, &v, 64);
  const __m128i a = _mm_cvtps_epi32(f[0]), b = _mm_cvtps_epi32(f[1]), c = _mm_cvtps_epi32(f[2]), d = _mm_cvtps_epi32(f[3]);
  _mm_storeu_si128((__m128i *)out, _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d)));
  const __m128i four = _mm_add_epi32(_mm_add_epi32(a, b), _mm_add_epi32(c, d));
  ifl_v16i part = {0};
  memcpy(&part, &four, 16);
  *sum += part;
#elif defined(IFL_NEON)
  const ifl_quarters_ f = ifl_split_(v * inv);
  const int32x4_t a = vcvtnq_s32_f32(f.v[0]), b = vcvtnq_s32_f32(f.v[1]), c = vcvtnq_s32_f32(f.v[2]), d = vcvtnq_s32_f32(f.v[3]);
  vst1q_s8(out, vcombine_s8(vmovn_s16(vcombine_s16(vmovn_s32(a), vmovn_s32(b))), vmovn_s16(vcombine_s16(vmovn_s32(c), vmovn_s32(d)))));
  const int32x4_t four = vaddq_s32(vaddq_s32(a, b), vaddq_s32(c, d));
  ifl_v16i part = {0};
  memcpy(&part, &four, 16);
  *sum += part;
#else
  const ifl_v16i q = __builtin_convertvector(ifl_nearest(v * inv), ifl_v16i);
  for (int i = 0; i < 16; i++) out[i] = (int8_t)q[i];
  *sum += q;
#endif
}

IFL_INLINE int32_t ifl_sum_i_(ifl_v16i v) {
#ifdef IFL_AVX512
  return _mm512_reduce_add_epi32((__m512i)v);
#else
  int32_t s = 0;
  for (int i = 0; i < 16; i++) s += v[i];
  return s;
#endif
}

#ifdef IFL_AVX2
/* 32 codes; adds their sums to 32-bit lanes. */
IFL_INLINE __m256i ifl_codes_of_32_(int8_t *out, const float *x, __m256 inv, __m256i sum) {
  const __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inv)), b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), inv));
  const __m256i c = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 16), inv)), d = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 24), inv));
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d)); /* fours of a b c d a b c d */
  _mm256_storeu_si256((__m256i *)(void *)out, _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
  return _mm256_add_epi32(sum, _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d)));
}
#endif

/* A block with only `have` numbers at x: x itself if it is complete, else a zero-padded copy in `room`. */
IFL_INLINE const float *ifl_whole_block_(const float *x, int have, const int block, float *room) {
  if (have >= block) return x;
  memset(room, 0, (size_t)block * 4);
  memcpy(room, x, (size_t)have * 4);
  return room;
}

/* Quantizes one block and sums its codes; top is the block's largest magnitude. */
IFL_INLINE void ifl_quantize_(int8_t *codes, const float *x, const int block, float top, int32_t *sum) {
  const float inv = top > 0 ? 127.0f / top : 0.0f;
#ifdef IFL_AVX2
  if (block > 16) {
    __m256i total = _mm256_setzero_si256();
    for (int i = 0; i < block; i += 32) total = ifl_codes_of_32_(codes + i, x + i, _mm256_set1_ps(inv), total);
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(total), _mm256_extracti128_si256(total, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    *sum = _mm_cvtsi128_si32(four) + _mm_extract_epi32(four, 1);
    return;
  }
#endif
  ifl_v16i total = {0};
#pragma GCC unroll 4
  for (int i = 0; i < block; i += 16) ifl_codes_of_(codes + i, ifl_load(x + i), inv, &total);
  *sum = ifl_sum_i_(total);
}

/* The largest magnitude of a block. */
IFL_INLINE float ifl_top_of_(const float *x, const int block) {
#ifdef IFL_AVX2 /* the code below, in registers */
  const __m256 sign = _mm256_set1_ps(-0.0f);
#define ABS(i) _mm256_andnot_ps(sign, _mm256_loadu_ps(x + (i)))
  __m256 a = ABS(0), b = ABS(8);
  if (block > 16) a = _mm256_max_ps(a, ABS(16)), b = _mm256_max_ps(b, ABS(24));
  if (block == 64) a = _mm256_max_ps(a, _mm256_max_ps(ABS(32), ABS(48))), b = _mm256_max_ps(b, _mm256_max_ps(ABS(40), ABS(56)));
#undef ABS
  return ifl_max_of(ifl_both_(a, b));
#else
  ifl_v16 m = ifl_abs(ifl_load(x));
  if (block > 16) m = ifl_max(m, ifl_abs(ifl_load(x + 16)));
  if (block == 64) m = ifl_max(m, ifl_max(ifl_abs(ifl_load(x + 32)), ifl_abs(ifl_load(x + 48))));
  return ifl_max_of(m);
#endif
}

#ifdef IFL_AVX512
/* The largest magnitudes of four blocks, and of sixteen: maxima of transposed halves, until a lane is left for each block. */
IFL_INLINE __m512 ifl_wide_top_(const float *x, const int block) {
#define ABS(i) _mm512_abs_ps(_mm512_loadu_ps(x + (i)))
  __m512 m = ABS(0);
  if (block > 16) m = _mm512_max_ps(m, ABS(16));
  if (block == 64) m = _mm512_max_ps(m, _mm512_max_ps(ABS(32), ABS(48)));
#undef ABS
  return m;
}
/* Each quarter of the result has maxima of the four blocks. */
IFL_INLINE __m512 ifl_quarter_tops_(const float *x, const int block) {
  const __m512 m0 = ifl_wide_top_(x, block), m1 = ifl_wide_top_(x + block, block);
  const __m512 m2 = ifl_wide_top_(x + 2 * block, block), m3 = ifl_wide_top_(x + 3 * block, block);
  const __m512 a = _mm512_max_ps(_mm512_unpacklo_ps(m0, m1), _mm512_unpackhi_ps(m0, m1));
  const __m512 b = _mm512_max_ps(_mm512_unpacklo_ps(m2, m3), _mm512_unpackhi_ps(m2, m3));
  return _mm512_max_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
}
IFL_INLINE __m128 ifl_tops_of_4_(const float *x, const int block) {
  const __m512 c = ifl_quarter_tops_(x, block), d = _mm512_max_ps(c, _mm512_shuffle_f32x4(c, c, 0x4e));
  return _mm_max_ps(_mm512_castps512_ps128(d), _mm512_extractf32x4_ps(d, 1));
}
IFL_INLINE __m512 ifl_tops_of_16_(const float *x, const int block) {
  const __m512 a = ifl_quarter_tops_(x, block), b = ifl_quarter_tops_(x + 4 * block, block);
  const __m512 c = ifl_quarter_tops_(x + 8 * block, block), d = ifl_quarter_tops_(x + 12 * block, block);
  const __m512 ab = _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  const __m512 cd = _mm512_max_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
  return _mm512_max_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
}
#endif

/* The largest magnitudes of n blocks, of which k numbers are at x. */
IFL_INLINE void ifl_tops_of_(float *tops, const float *x, int n, int k, const int block) {
  float room[64];
#ifdef IFL_AVX512
  for (; n >= 16 && k >= 16 * block; n -= 16, k -= 16 * block, x += 16 * block, tops += 16) _mm512_storeu_ps(tops, ifl_tops_of_16_(x, block));
  for (; n >= 4 && k >= 4 * block; n -= 4, k -= 4 * block, x += 4 * block, tops += 4) _mm_storeu_ps(tops, ifl_tops_of_4_(x, block));
#endif
  for (; n > 0; n--, k -= block, x += block) *tops++ = ifl_top_of_(ifl_whole_block_(x, k, block, room), block);
}

enum { IFL_OUTLIER_BLOCKS = 4096 }; /* maximum blocks of a row with outliers */

/* A row during the extraction of its outliers. */
typedef struct {
  int count, touched;
  ifl_outlier taken[IFL_OUTLIERS];
  int part[IFL_OUTLIERS]; /* parts of 64 columns with outliers … */
  _Alignas(64) float rest[IFL_OUTLIERS][64]; /* … and their remainders */
  float tops[IFL_OUTLIER_BLOCKS];
} ifl_taken_;

/* The remainder of block b; x is the original row. */
IFL_INLINE const float *ifl_rest_(const ifl_taken_ *o, const float *x, int b, const int block) {
  for (int i = 0; i < o->touched; i++)
    if (o->part[i] == b * block / 64) return o->rest[i] + b * block % 64;
  return x + b * block;
}

/* The remainder of block b, which may be changed; x is the original row of k numbers. */
IFL_INLINE float *ifl_touch_(ifl_taken_ *o, const float *x, int k, int b, const int block) {
  const int part = b * block / 64, at = b * block % 64;
  for (int i = 0; i < o->touched; i++)
    if (o->part[i] == part) return o->rest[i] + at;
  float *rest = o->rest[o->touched];
  for (int i = 0; i < 64; i += 16) ifl_store(rest + i, ifl_pack_load_(x + part * 64 + i, k - part * 64 - i));
  o->part[o->touched++] = part;
  return rest + at;
}

#ifdef IFL_AVX512
/* The largest lane, in all lanes. */
IFL_INLINE __m512 ifl_max_lane_(__m512 v) {
  v = _mm512_max_ps(v, _mm512_shuffle_f32x4(v, v, 0x4e));
  v = _mm512_max_ps(v, _mm512_shuffle_f32x4(v, v, 0xb1));
  v = _mm512_max_ps(v, _mm512_permute_ps(v, 0x4e));
  return _mm512_max_ps(v, _mm512_permute_ps(v, 0xb1));
}

/* Subtracts from a block the group of four columns that has the magnitude top. In registers, because loads that cover several
 * stores would wait for them. Returns the group's first column, and the magnitude that is left. */
IFL_INLINE int ifl_take_group_(float *rest, float top, float scale, float inv, int8_t *codes, const int block, float *left) {
  __m512 v[4], m = _mm512_setzero_ps();
  uint64_t at = 0;
#pragma GCC unroll 4
  for (int i = 0; i < block / 16; i++) {
    v[i] = _mm512_load_ps(rest + 16 * i);
    at |= (uint64_t)_mm512_cmp_ps_mask(_mm512_abs_ps(v[i]), _mm512_set1_ps(top), _CMP_EQ_OQ) << 16 * i;
  }
  const int c = at ? __builtin_ctzll(at) & ~3 : 0;
  const __m128 four = _mm_load_ps(rest + c);
  const __m128i q = _mm_cvtps_epi32(_mm_mul_ps(four, _mm_set1_ps(inv)));
  const int32_t bytes = _mm_cvtsi128_si32(_mm_cvtepi32_epi8(q));
  memcpy(codes, &bytes, 4);
  const __m512 remainder = _mm512_broadcast_f32x4(_mm_sub_ps(four, _mm_mul_ps(_mm_set1_ps(scale), _mm_cvtepi32_ps(q))));
#pragma GCC unroll 4
  for (int i = 0; i < block / 16; i++) {
    v[i] = _mm512_mask_mov_ps(v[i], (__mmask16)((uint64_t)15 << c >> 16 * i), remainder);
    _mm512_store_ps(rest + 16 * i, v[i]);
    m = _mm512_max_ps(m, _mm512_abs_ps(v[i]));
  }
  *left = _mm512_cvtss_f32(ifl_max_lane_(m));
  return c;
}
#else
/* The index of the first of a block's numbers with magnitude top; there must be one. */
IFL_INLINE int ifl_find_top_(const float *x, float top, const int block) {
#ifdef IFL_AVX2
  const __m256 t = _mm256_set1_ps(top), sign = _mm256_set1_ps(-0.0f);
  for (int i = 0; i < block; i += 8) {
    const int at = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_andnot_ps(sign, _mm256_loadu_ps(x + i)), t, _CMP_EQ_OQ));
    if (at) return i + __builtin_ctz((unsigned)at);
  }
  return 0;
#else
  int c = 0;
  while (c < block - 1 && !(x[c] == top || x[c] == -top)) c++;
  return c;
#endif
}

/* Subtracts from a block the group of four columns that has the magnitude top. Returns its first column, and the magnitude
 * that is left. */
IFL_INLINE int ifl_take_group_(float *rest, float top, float scale, float inv, int8_t *codes, const int block, float *left) {
  const int c = ifl_find_top_(rest, top, block) & ~3;
  int8_t all[16];
  ifl_v16i total = {0};
  const ifl_v16 v = ifl_load_n(rest + c, 4);
  ifl_codes_of_(all, v, inv, &total);
  memcpy(codes, all, 4);
  for (int j = 0; j < 4; j++) rest[c + j] = v[j] - scale * (float)codes[j];
  *left = ifl_top_of_(rest, block);
  return c;
}
#endif

/* Extracts the largest group of block b of a row as an 8-bit outlier and leaves the remainder. */
IFL_INLINE void ifl_take_(ifl_taken_ *o, const float *x, int k, int b, const int block) {
  const float top = o->tops[b], scale = top / 127.0f;
  float inv = top > 0 ? 127.0f / top : 0.0f;
  if (!(inv <= 3.402823466e38f)) inv = 0;
  ifl_outlier *e = &o->taken[o->count++];
  const int c = ifl_take_group_(ifl_touch_(o, x, k, b, block), top, scale, inv, e->codes, block, &o->tops[b]);
  e->block = (uint16_t)b, e->vector = (uint16_t)(c / 4);
  e->scale = scale;
  e->corr = -128 * (e->codes[0] + e->codes[1] + e->codes[2] + e->codes[3]);
}

/* The first block with the largest top. */
IFL_INLINE int ifl_top_block_(const float *tops, int blocks) {
#ifdef IFL_AVX512
  __m512 most = _mm512_setzero_ps();
  for (int b = 0; b < blocks; b += 16) {
    const __mmask16 some = blocks - b >= 16 ? 0xffff : (__mmask16)((1u << (blocks - b)) - 1);
    most = _mm512_max_ps(most, _mm512_maskz_loadu_ps(some, tops + b));
  }
  most = ifl_max_lane_(most);
  for (int b = 0; b < blocks; b += 16) {
    const __mmask16 some = blocks - b >= 16 ? 0xffff : (__mmask16)((1u << (blocks - b)) - 1);
    const unsigned at = _mm512_mask_cmp_ps_mask(some, _mm512_maskz_loadu_ps(some, tops + b), most, _CMP_EQ_OQ);
    if (at) return b + __builtin_ctz(at);
  }
  return 0;
#else
  int b = 0;
  for (int j = 1; j < blocks; j++) b = tops[j] > tops[b] ? j : b;
  return b;
#endif
}

/* Extracts `count` outliers of a row one by one: each time the group with the largest magnitude, on ties the first. A
 * group may be extracted again if its remainder is the largest. */
IFL_INLINE void ifl_take_outliers_(ifl_taken_ *o, const float *x, int k, const int block, int count) {
  const int blocks = (k + block - 1) / block;
  o->count = o->touched = 0;
  ifl_tops_of_(o->tops, x, blocks, k, block);
  while (o->count < count) ifl_take_(o, x, k, ifl_top_block_(o->tops, blocks), block);
}

/* Stores the outliers of row m in its tile and adds them to the sums of its blocks. */
IFL_INLINE void ifl_put_outliers_(ifl_outliers *to, float *sums, const ifl_taken_ *o, int mt, int m) {
  to->each = o->count;
  for (int i = 0; i < o->count; i++) {
    const ifl_outlier e = o->taken[i];
    to->at[o->count * m + i] = e;
    sums[e.block * mt + m] += e.scale * (float)(e.corr / -128);
  }
}

/* A row that is packed. */
typedef struct {
  uint8_t *tile;
  float *scales, *sums; /* of block 0 */
  int32_t *corr;
  int mt, m;
} ifl_packed_row_;

#ifdef IFL_AVX512
/* Codes of 64 columns; the scales of 16 columns each are inv[0], … inv[3]. Quarter i holds four bytes each from columns 4·i,
 * 16 + 4·i, 32 + 4·i and 48 + 4·i. */
IFL_INLINE __m512i ifl_codes_of_64_(const float *x, const float *inv, const int block) {
#define CODES(i) _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + (i)), _mm512_set1_ps(inv[(i) / block])))
  return _mm512_packs_epi16(_mm512_packs_epi32(CODES(0), CODES(16)), _mm512_packs_epi32(CODES(32), CODES(48)));
#undef CODES
}

/* Transposes a block's codes from mt rows of 64 bytes, each in the order of ifl_codes_of_64_, to groups of four columns of
 * all rows. */
IFL_INLINE void ifl_turn_block_(uint8_t *block, const int mt) {
  _Alignas(64) uint8_t room[16 * 64];
  for (int m = 0; m < mt; m++) _mm512_store_si512(room + 64 * m, _mm512_loadu_si512(block + 64 * m));
  const __mmask16 rows = (__mmask16)((1u << mt) - 1);
#define FOUR(m, i) _mm_load_si128((const __m128i *)(const void *)(room + 64 * (m) + 16 * (i)))
#define FOURS(m, i) /* of rows m, 4 + m, 8 + m and 12 + m */ \
  _mm512_inserti32x4(_mm512_inserti32x4(_mm512_inserti32x4(_mm512_castsi128_si512(FOUR(m, i)), FOUR(m + 4, i), 1), FOUR(m + 8, i), 2), FOUR(m + 12, i), 3)
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    const __m512i a = FOURS(0, i), b = FOURS(1, i), c = FOURS(2, i), d = FOURS(3, i);
    const __m512i ab0 = _mm512_unpacklo_epi32(a, b), ab2 = _mm512_unpackhi_epi32(a, b);
    const __m512i cd0 = _mm512_unpacklo_epi32(c, d), cd2 = _mm512_unpackhi_epi32(c, d);
    uint8_t *out = block + 4 * mt * i; /* groups i, 4 + i, 8 + i and 12 + i */
    _mm512_mask_storeu_epi32(out, rows, _mm512_unpacklo_epi64(ab0, cd0));
    _mm512_mask_storeu_epi32(out + 16 * mt, rows, _mm512_unpackhi_epi64(ab0, cd0));
    _mm512_mask_storeu_epi32(out + 32 * mt, rows, _mm512_unpacklo_epi64(ab2, cd2));
    _mm512_mask_storeu_epi32(out + 48 * mt, rows, _mm512_unpackhi_epi64(ab2, cd2));
  }
#undef FOURS
#undef FOUR
}

/* Packs 64 columns: chunk c of the row, from its first block on. */
IFL_INLINE void ifl_pack_chunk_(const ifl_packed_row_ *r, int c, const float *x, const float *inv, const float *scale, const int block) {
  const __m512i codes = ifl_codes_of_64_(x, inv, block);
  const __m512i turned = r->mt > 1 ? codes : _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), codes);
  _mm512_storeu_si512(r->tile + 64 * ((int64_t)c * r->mt + r->m), turned);
  const __m512i fours = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), codes);
  const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(fours), _mm512_extracti64x4_epi64(fours, 1));
  int32_t s[4]; /* of 16 columns each */
  _mm_storeu_si128((__m128i *)(void *)s, _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
#pragma GCC unroll 4
  for (int b = 0; b < 64 / block; b++) {
    int32_t sum = s[b * block / 16];
    for (int i = 1; i < block / 16; i++) sum += s[b * block / 16 + i];
    const int64_t i = ((int64_t)c * (64 / block) + b) * r->mt;
    r->scales[i] = scale[b], r->sums[i] = scale[b] * (float)sum, r->corr[i] = -128 * sum;
  }
}

/* Sets the scales of n ≤ 64 blocks. */
IFL_INLINE void ifl_scales_of_(float *inv, float *scale, const float *tops, int n) {
  const __m512 most = _mm512_set1_ps(127.0f);
  for (int b = 0; b < n; b += 16) {
    const __mmask16 some = n - b >= 16 ? 0xffff : (__mmask16)((1u << (n - b)) - 1);
    const __m512 top = _mm512_maskz_loadu_ps(some, tops + b);
    _mm512_store_ps(inv + b, _mm512_maskz_div_ps(_mm512_cmp_ps_mask(top, _mm512_setzero_ps(), _CMP_GT_OQ), most, top));
    _mm512_store_ps(scale + b, _mm512_div_ps(top, most));
  }
}

/* Packs the whole chunks of 64 columns of a row, and returns how many blocks they have. `taken` are its outliers, or NULL. It
 * makes separate passes over several blocks, because the latency of one block's maximum is a hundred cycles. Rows are stored
 * contiguously and transposed with the last row, because a single row would write every four codes to another cache line. */
IFL_INLINE int ifl_pack_chunks_(const ifl_packed_row_ *r, const float *x, int k, const int block, const ifl_taken_ *taken) {
  enum { SOME = 64 };
  const int each = 64 / block, chunks = (k + block - 1) / block / each;
  _Alignas(64) float tops[SOME], inv[SOME], scale[SOME], room[64];
  for (int from = 0; from < chunks; from += SOME / each) {
    const int n = chunks - from < SOME / each ? chunks - from : SOME / each;
    const float *at[SOME];
    for (int c = 0; c < n; c++) at[c] = x + (from + c) * 64;
    at[n - 1] = ifl_whole_block_(at[n - 1], k - (from + n - 1) * 64, 64, room);
    for (int i = 0; taken && i < taken->touched; i++)
      if (taken->part[i] >= from && taken->part[i] < from + n) at[taken->part[i] - from] = taken->rest[i];
    if (!taken) ifl_tops_of_(tops, x + from * 64, n * each, k - from * 64, block);
    ifl_scales_of_(inv, scale, taken ? taken->tops + from * each : tops, n * each);
    for (int c = 0; c < n; c++) ifl_pack_chunk_(r, from + c, at[c], inv + c * each, scale + c * each, block);
  }
  const int turns = r->mt > 1 && r->m == r->mt - 1 ? chunks : 0;
  for (int c = 0; c < turns; c++) {
    uint8_t *codes = r->tile + (int64_t)c * 64 * r->mt;
    if (r->mt == 16)
      ifl_turn_block_(codes, 16); /* specialized for full tiles */
    else
      ifl_turn_block_(codes, r->mt);
  }
  return chunks * each;
}
#endif

/* Packs a row into row m of a tile of mt rows, with `outliers` ≤ IFL_OUTLIERS outliers; all rows of a tile have the same number.
 * Rows are packed in order, and the last one completes the tile. */
IFL_INLINE void ifl_pack_a8_(uint8_t *tile, const float *x, int k, int mt, int m, const int block, const int outliers) {
  const int blocks = (k + block - 1) / block, kp = blocks * block;
  const ifl_packed_row_ r = {tile, (float *)(tile + ifl_a8_scale_at(kp, mt)) + m, (float *)(tile + ifl_a8_sum_at(kp, mt, block)) + m,
                             (int32_t *)(tile + ifl_a8_corr_at(kp, mt, block)) + m, mt, m};
  ifl_taken_ taken;
  taken.count = taken.touched = 0;
  if (outliers) ifl_take_outliers_(&taken, x, k, block, outliers);
  int b = 0;
#ifdef IFL_AVX512
  b = ifl_pack_chunks_(&r, x, k, block, outliers ? &taken : NULL);
#endif
  for (; b < blocks; b++) {
    int8_t local[64], *codes = mt == 1 ? (int8_t *)tile + b * block : local;
    int32_t sum;
    float room[64];
    const float *rest = ifl_whole_block_(ifl_rest_(&taken, x, b, block), k - b * block, block, room);
    const float top = outliers ? taken.tops[b] : ifl_top_of_(rest, block), scale = top / 127.0f;
    ifl_quantize_(codes, rest, block, top, &sum);
    if (mt > 1) {
      uint8_t *out = tile + 4 * ((int64_t)b * (block / 4) * mt + m);
#pragma GCC unroll 16
      for (int j = 0; j < block / 4; j++, out += 4 * mt) memcpy(out, local + 4 * j, 4);
    }
    r.scales[b * mt] = scale;
    r.sums[b * mt] = scale * (float)sum;
    r.corr[b * mt] = -128 * sum;
  }
  ifl_put_outliers_((ifl_outliers *)(tile + ifl_a8_outliers_at(kp, mt, block)), r.sums - m, &taken, mt, m);
}

static __attribute__((unused)) void ifl_pack_a8_b16(uint8_t *tile, const float *x, int k, int mt, int m) { ifl_pack_a8_(tile, x, k, mt, m, 16, 0); }
static __attribute__((unused)) void ifl_pack_a8_b32(uint8_t *tile, const float *x, int k, int mt, int m) { ifl_pack_a8_(tile, x, k, mt, m, 32, 0); }
static __attribute__((unused)) void ifl_pack_a8_b64(uint8_t *tile, const float *x, int k, int mt, int m) { ifl_pack_a8_(tile, x, k, mt, m, 64, 0); }

/* The same with outliers; k ≤ block · IFL_OUTLIER_BLOCKS. */
static __attribute__((unused)) void ifl_pack_a8_b16_outliers(uint8_t *tile, const float *x, int k, int mt, int m, int outliers) { ifl_pack_a8_(tile, x, k, mt, m, 16, outliers); }
static __attribute__((unused)) void ifl_pack_a8_b32_outliers(uint8_t *tile, const float *x, int k, int mt, int m, int outliers) { ifl_pack_a8_(tile, x, k, mt, m, 32, outliers); }
static __attribute__((unused)) void ifl_pack_a8_b64_outliers(uint8_t *tile, const float *x, int k, int mt, int m, int outliers) { ifl_pack_a8_(tile, x, k, mt, m, 64, outliers); }

static __attribute__((unused)) void ifl_pack_f32(uint8_t *tile, const float *x, int k, int mt, int m) {
  float *out = (float *)tile + m;
  if (mt == 1)
    memcpy(out, x, (size_t)k * 4);
  else
    for (int i = 0; i < k; i++) out[(int64_t)i * mt] = x[i];
}

/* Rounds to nearest even; an odd number of columns is padded with 0. */
static __attribute__((unused)) void ifl_pack_bf16(uint8_t *tile, const float *x, int k, int mt, int m) {
  uint16_t *out = (uint16_t *)(void *)tile + 2 * m, h[16];
  for (int i = 0; i < k; i += 16) {
    const int n = k - i < 16 ? k - i : 16;
    ifl_store_h(h, ifl_to_bf16(ifl_pack_load_(x + i, n)));
    if (mt == 1)
      memcpy(out + i, h, (size_t)(n + 1) / 2 * 4);
    else
      for (int j = 0; j < n; j += 2) memcpy(out + (int64_t)(i + j) * mt, h + j, 4);
  }
}

/* Packs all mt rows of a tile; rows[m] is row m. */
static __attribute__((unused)) void ifl_pack_tile_f32(uint8_t *tile, const float *const rows[], int k, int mt) {
  for (int m = 0; m < mt; m++) ifl_pack_f32(tile, rows[m], k, mt, m);
}
static __attribute__((unused)) void ifl_pack_tile_a8_b16(uint8_t *tile, const float *const rows[], int k, int mt) {
  for (int m = 0; m < mt; m++) ifl_pack_a8_b16(tile, rows[m], k, mt, m);
}
static __attribute__((unused)) void ifl_pack_tile_a8_b32(uint8_t *tile, const float *const rows[], int k, int mt) {
  for (int m = 0; m < mt; m++) ifl_pack_a8_b32(tile, rows[m], k, mt, m);
}
static __attribute__((unused)) void ifl_pack_tile_a8_b64(uint8_t *tile, const float *const rows[], int k, int mt) {
  for (int m = 0; m < mt; m++) ifl_pack_a8_b64(tile, rows[m], k, mt, m);
}
static __attribute__((unused)) void ifl_pack_tile_bf16(uint8_t *tile, const float *const rows[], int k, int mt) {
  for (int m = 0; m < mt; m++) ifl_pack_bf16(tile, rows[m], k, mt, m);
}
