/* KV cache pages: a page holds 64 rows of one layer: for each KV head the keys [64/16][dim16][16], then for
 * each KV head the values [64][vdim16]; dim16 is dim rounded up to 16. Padding is zero and never written.
 * Elements are f32, f16 or bf16, rounded to nearest even; f16 saturates at ±65504 and keeps NaN. With q8_b32t2 they are
 * one byte and followed by the scales: see ifl_kv_put_q8_b32t2. ifl_kv_put_q4_b32t2 has a layout of its own. */
#pragma once
#include "ifl_kernel.h"
#include "ifl_vec.h"
#include <string.h>

#define IFL_PAGE_ROWS 64

/* Bytes of a page; a multiple of 64 for 4-byte and 2-byte elements. */
static inline int64_t ifl_kv_page_bytes(int kv_heads, int dim, int vdim, int elem_bytes) {
  return (int64_t)IFL_PAGE_ROWS * kv_heads * (ifl_round16(dim) + ifl_round16(vdim)) * elem_bytes;
}

/* The id of the page with KV cache row `slot` of sequence `seq`. */
static inline int32_t ifl_kv_page(const ifl_step *s, int seq, int slot) {
  return s->page[s->page_at[seq] + slot / IFL_PAGE_ROWS];
}

/* Index in a page, in elements, of the first key element of a row (stride 16) and of its first value element
 * (stride 1). */
static inline int64_t ifl_kv_key_at(int row, int head, int dim) {
  int d16 = ifl_round16(dim);
  return (int64_t)head * IFL_PAGE_ROWS * d16 + (int64_t)(row / 16) * d16 * 16 + row % 16;
}
static inline int64_t ifl_kv_value_at(int row, int head, int kv_heads, int dim, int vdim) {
  return (int64_t)IFL_PAGE_ROWS * kv_heads * ifl_round16(dim) + ((int64_t)head * IFL_PAGE_ROWS + row) * ifl_round16(vdim);
}

/* 16 numbers in the element type of the cache. The order of the operands of min and max preserves NaN. */
IFL_INLINE ifl_v16h ifl_kv_f16(ifl_v16 x) { return ifl_to_f16(ifl_min(ifl_set1(65504.0f), ifl_max(ifl_set1(-65504.0f), x))); }
IFL_INLINE ifl_v16h ifl_kv_bf16(ifl_v16 x) { return ifl_to_bf16(x); }

/* ifl_kv_put_TYPE writes the key (dim floats) and the value (vdim floats) of one KV head into row 0…63 of a page; k or v
 * may be NULL; that part is not written. */
static inline void ifl_kv_put_f32(uint8_t *page, int row, int head, int kv_heads, int dim, int vdim, const float *k, const float *v) {
  float *p = (float *)page;
  if (k) {
    float *to = p + ifl_kv_key_at(row, head, dim);
    for (int d = 0; d < dim; d++) to[(int64_t)d * 16] = k[d];
  }
  if (v) memcpy(p + ifl_kv_value_at(row, head, kv_heads, dim, vdim), v, (size_t)vdim * 4);
}

/* Prefetches the cache lines of a key before it is written. Elements of a key are 16 elements apart, so it touches many
 * lines, and none of them is cached when a sequence appends its next key. */
static inline void ifl_kv_expect(const uint8_t *page, int row, int head, int dim, int elem_bytes) {
  const uint8_t *key = page + ifl_kv_key_at(row / 16 * 16, head, dim) * elem_bytes;
  for (int i = 0; i < dim * 16 * elem_bytes; i += 64) __builtin_prefetch(key + i, 1, 3);
}

#define IFL_KV_PUT_16_(type)                                                                                          \
  static inline void ifl_kv_put_##type(uint8_t *page, int row, int head, int kv_heads, int dim, int vdim,             \
                                       const float *k, const float *v) {                                              \
    uint16_t *p = (uint16_t *)page, h[16];                                                                            \
    uint16_t *to = p + ifl_kv_key_at(row, head, dim);                                                                 \
    for (int d = 0; k && d < dim; d += 16) {                                                                          \
      int n = dim - d < 16 ? dim - d : 16;                                                                            \
      ifl_store_h(h, ifl_kv_##type(n < 16 ? ifl_load_n(k + d, n) : ifl_load(k + d)));                                 \
      for (int i = 0; i < n; i++, to += 16) *to = h[i];                                                               \
    }                                                                                                                 \
    to = p + ifl_kv_value_at(row, head, kv_heads, dim, vdim);                                                         \
    for (int d = 0; v && d + 16 <= vdim; d += 16) ifl_store_h(to + d, ifl_kv_##type(ifl_load(v + d)));                \
    if (v && vdim % 16) {                                                                                             \
      ifl_store_h(h, ifl_kv_##type(ifl_load_n(v + vdim / 16 * 16, vdim % 16)));                                       \
      memcpy(to + vdim / 16 * 16, h, (size_t)(vdim % 16) * 2);                                                        \
    }                                                                                                                 \
  }
IFL_KV_PUT_16_(f16)
IFL_KV_PUT_16_(bf16)

/* q8_b32t2: blocks of 32 numbers along the head's row, the last one may be shorter: an f16 scale = max|x| / 127 and int8 codes,
 * x / scale rounded to nearest even; NaN counts as 0. A page holds the codes in the element layout above, then for
 * each KV head the scales of the keys [64/16][blocks][16], then for each KV head the scales of the values [blocks][64]. */
static inline int ifl_kv_blocks(int n) { return (n + 31) / 32; }
static inline int64_t ifl_kv_page_bytes_q8_b32t2(int kv_heads, int dim, int vdim) {
  return ifl_kv_page_bytes(kv_heads, dim, vdim, 1) + (int64_t)IFL_PAGE_ROWS * kv_heads * 2 * (ifl_kv_blocks(dim) + ifl_kv_blocks(vdim));
}

/* The offset of a head's scales in a page, in 16-bit words from the end of the codes. */
static inline int64_t ifl_kv_key_scales_at(int head, int dim) { return (int64_t)head * IFL_PAGE_ROWS * ifl_kv_blocks(dim); }
static inline int64_t ifl_kv_value_scales_at(int head, int kv_heads, int dim, int vdim) {
  return (int64_t)IFL_PAGE_ROWS * (kv_heads * ifl_kv_blocks(dim) + head * ifl_kv_blocks(vdim));
}

/* Quantizes n ≤ 32 numbers and returns the scale. */
static inline uint16_t ifl_kv_quantize_(const float *x, int n, int8_t *codes) {
  ifl_v16 v[2] = {n < 16 ? ifl_load_n(x, n) : ifl_load(x), n > 16 ? ifl_load_n(x + 16, n - 16) : ifl_set1(0)};
  const float top = ifl_max_of(ifl_max(ifl_abs(v[0]), ifl_max(ifl_abs(v[1]), ifl_set1(0)))); /* ignores NaN */
  const ifl_v16h h = ifl_kv_f16(ifl_set1(top / 127.0f));
  const float scale = ifl_from_f16_1(h[0]), inv = scale > 0 ? 1.0f / scale : 0.0f;
  for (int i = 0; i < 2; i++) {
    ifl_v16 q = v[i] * inv;
    q = ifl_select(q == q, ifl_nearest(ifl_min(ifl_max(q, ifl_set1(-127.0f)), ifl_set1(127.0f))), ifl_set1(0));
    const ifl_v16i whole = __builtin_convertvector(q, ifl_v16i);
    for (int j = 0; j < 16; j++) codes[16 * i + j] = (int8_t)whole[j];
  }
  return h[0];
}

static inline void ifl_kv_put_q8_b32t2(uint8_t *page, int row, int head, int kv_heads, int dim, int vdim, const float *k, const float *v) {
  int8_t *p = (int8_t *)page, codes[32], *to = p + ifl_kv_key_at(row, head, dim);
  uint16_t *scales = (uint16_t *)(void *)(page + ifl_kv_page_bytes(kv_heads, dim, vdim, 1));
  uint16_t *scale = scales + ifl_kv_key_scales_at(head, dim) + row / 16 * ifl_kv_blocks(dim) * 16 + row % 16;
  for (int d = 0; k && d < dim; d += 32, scale += 16) {
    const int n = dim - d < 32 ? dim - d : 32;
    *scale = ifl_kv_quantize_(k + d, n, codes);
    for (int i = 0; i < n; i++, to += 16) *to = codes[i];
  }
  to = p + ifl_kv_value_at(row, head, kv_heads, dim, vdim);
  scale = scales + ifl_kv_value_scales_at(head, kv_heads, dim, vdim) + row;
  for (int d = 0; v && d < vdim; d += 32, scale += IFL_PAGE_ROWS) {
    const int n = vdim - d < 32 ? vdim - d : 32;
    *scale = ifl_kv_quantize_(v + d, n, codes);
    memcpy(to + d, codes, (size_t)n);
  }
}

/* q4_b32t2: values of 4 bits, and keys of 5 bits (q5r_b32t2) that are rotated first. Widths are whole blocks of 32 numbers: an f16
 * scale = the number of the largest magnitude / −8 or −16, and codes x / scale rounded to nearest even, in two's complement; NaN
 * counts as 0. Bytes 0…15 of a block have the low four bits of codes j and j + 16; in bytes 16…19 of a block of keys, bit i of byte
 * 16 + j is the sign of code 8·j + i. A page holds for each KV head the bytes of the keys [64/16][20·blocks][16], then for each KV
 * head those of the values [64][16·blocks], then the scales like q8_b32t2. */
#define IFL_KV_ROTATE 256 /* maximum numbers of a rotated segment; ir/tensor has the same */
static inline int64_t ifl_kv_key_at_q4(int row, int head, int dim) {
  return (int64_t)(head * 4 + row / 16) * 16 * (dim / 32 * 20) + row % 16;
}
static inline int64_t ifl_kv_value_at_q4(int row, int head, int kv_heads, int dim, int vdim) {
  return (int64_t)IFL_PAGE_ROWS * kv_heads * (dim / 32 * 20) + ((int64_t)head * IFL_PAGE_ROWS + row) * (vdim / 2);
}
static inline int64_t ifl_kv_scales_q4(int kv_heads, int dim, int vdim) { return ifl_kv_value_at_q4(0, kv_heads, kv_heads, dim, vdim); }
static inline int64_t ifl_kv_page_bytes_q4_b32t2(int kv_heads, int dim, int vdim) {
  return ifl_kv_scales_q4(kv_heads, dim, vdim) + (int64_t)IFL_PAGE_ROWS * kv_heads * 2 * (ifl_kv_blocks(dim) + ifl_kv_blocks(vdim));
}

/* Numbers of a segment that is rotated: the largest power of two that divides n. */
static inline int ifl_kv_segment(int n) { return (n & -n) < IFL_KV_ROTATE ? n & -n : IFL_KV_ROTATE; }

/* Multiplies a segment by the Hadamard matrix divided by √n. */
static inline void ifl_kv_rotate(float *x, int n) {
  for (int h = 1; h < n; h *= 2)
    for (int i = 0; i < n; i += 2 * h)
      for (int j = i; j < i + h; j++) {
        const float a = x[j], b = x[j + h];
        x[j] = a + b, x[j + h] = a - b;
      }
  const float f = n == 32 ? 0x1.6a09e6p-3f : n == 64 ? 0.125f : n == 128 ? 0x1.6a09e6p-4f : 0.0625f; /* 1/√n */
  for (int i = 0; i < n; i++) x[i] *= f;
}

/* Quantizes 32 numbers to codes −low … low−1 and returns the scale. */
static inline uint16_t ifl_kv_quantize_q4_(const float *x, float low, int8_t *codes) {
  const ifl_v16 zero = {0};
  ifl_v16 v[2] = {ifl_load(x), ifl_load(x + 16)};
  for (int i = 0; i < 2; i++) v[i] = ifl_select(v[i] == v[i], v[i], zero);
  const float high = ifl_max_of(ifl_max(v[0], v[1])), least = -ifl_max_of(ifl_max(zero - v[0], zero - v[1]));
  const ifl_v16h h = ifl_kv_f16(ifl_set1((-least >= high ? least : high) / -low));
  const float scale = ifl_from_f16_1(h[0]), inv = scale == 0 ? 0.0f : 1.0f / scale;
  for (int i = 0; i < 2; i++) {
    const ifl_v16i whole = __builtin_convertvector(ifl_nearest(ifl_min(ifl_max(v[i] * inv, ifl_set1(-low)), ifl_set1(low - 1))), ifl_v16i);
    for (int j = 0; j < 16; j++) codes[16 * i + j] = (int8_t)whole[j];
  }
  return h[0];
}

static inline void ifl_kv_put_q4_b32t2(uint8_t *page, int row, int head, int kv_heads, int dim, int vdim, const float *k, const float *v) {
  uint16_t *scales = (uint16_t *)(void *)(page + ifl_kv_scales_q4(kv_heads, dim, vdim));
  uint16_t *scale = scales + ifl_kv_key_scales_at(head, dim) + row / 16 * ifl_kv_blocks(dim) * 16 + row % 16;
  uint8_t *to = page + ifl_kv_key_at_q4(row, head, dim);
  const int n = ifl_kv_segment(dim);
  _Alignas(64) float x[IFL_KV_ROTATE];
  int8_t codes[32];
  for (int d = 0; k && d < dim; d += 32, scale += 16, to += 20 * 16) {
    if (d % n == 0) memcpy(x, k + d, (size_t)n * 4), ifl_kv_rotate(x, n);
    *scale = ifl_kv_quantize_q4_(x + d % n, 16, codes);
    for (int j = 0; j < 16; j++) to[16 * j] = (uint8_t)((codes[j] & 15) | (codes[j + 16] & 15) << 4);
    for (int j = 0; j < 4; j++) {
      int signs = 0;
      for (int i = 0; i < 8; i++) signs |= (codes[8 * j + i] < 0) << i;
      to[16 * (16 + j)] = (uint8_t)signs;
    }
  }
  to = page + ifl_kv_value_at_q4(row, head, kv_heads, dim, vdim);
  scale = scales + ifl_kv_value_scales_at(head, kv_heads, dim, vdim) + row;
  for (int d = 0; v && d < vdim; d += 32, scale += IFL_PAGE_ROWS, to += 16) {
    *scale = ifl_kv_quantize_q4_(v + d, 8, codes);
    for (int j = 0; j < 16; j++) to[j] = (uint8_t)((codes[j] & 15) | (codes[j + 16] & 15) << 4);
  }
}

/* 16 bytes, for codes of one byte each. */
typedef uint64_t ifl_kv_bytes __attribute__((vector_size(16)));

/* Unpacks the keys of 16 rows to codes of one byte [dim][16]. */
static inline void ifl_kv_unpack_keys(const uint8_t *from, int dim, int8_t *to) {
  for (int b = 0; b < dim / 32; b++, from += 20 * 16, to += 32 * 16) {
    for (int i = 0; i < 32; i++) {
      ifl_kv_bytes low, signs;
      memcpy(&low, from + i % 16 * 16, 16);
      memcpy(&signs, from + (16 + i / 8) * 16, 16);
      low = low >> (i / 16 * 4) & 0x0f0f0f0f0f0f0f0f;
      signs = signs >> (i % 8) & 0x0101010101010101;
      low |= (signs << 8) - (signs << 4); /* 0xf0 in each byte with a sign */
      memcpy(to + 16 * i, &low, 16);
    }
  }
}

/* Unpacks n values, whole blocks of 32, to codes of one byte. */
static inline void ifl_kv_unpack_values(const uint8_t *from, int64_t n, int8_t *to) {
  for (int64_t b = 0; b < n / 32; b++, from += 16, to += 32) {
    ifl_kv_bytes both;
    memcpy(&both, from, 16);
    for (int h = 0; h < 2; h++) {
      ifl_kv_bytes low = both >> (4 * h) & 0x0f0f0f0f0f0f0f0f;
      const ifl_kv_bytes signs = low >> 3 & 0x0101010101010101;
      low |= (signs << 8) - (signs << 4);
      memcpy(to + 16 * h, &low, 16);
    }
  }
}

/* Copies one head's row j of a page to a head's row i of the same or another page, which may have another number of
 * heads. Key elements have a stride of 16, value elements a stride of 1. */
#define IFL_KV_COPY_(type)                                                                                             \
  static inline void ifl_kv_copy_##type(type *to, int i, int h, int heads, const type *from, int j, int g, int from_heads, \
                                        int dim, int vdim) {                                                           \
    type *k = to + ifl_kv_key_at(i, h, dim);                                                                           \
    const type *x = from + ifl_kv_key_at(j, g, dim);                                                                   \
    for (int d = 0; d < dim; d++) k[(int64_t)d * 16] = x[(int64_t)d * 16];                                             \
    memmove(to + ifl_kv_value_at(i, h, heads, dim, vdim), from + ifl_kv_value_at(j, g, from_heads, dim, vdim),         \
            (size_t)ifl_round16(vdim) * sizeof(type));                                                                 \
  }
IFL_KV_COPY_(uint8_t)
IFL_KV_COPY_(uint16_t)
IFL_KV_COPY_(uint32_t)

/* Copies the scales of a row of q8_b32t2 or q4_b32t2; t and f are those of the pages. */
static inline void ifl_kv_copy_scales_(uint16_t *t, int i, int h, int heads, const uint16_t *f, int j, int g, int from_heads, int dim, int vdim) {
  const int kb = ifl_kv_blocks(dim), vb = ifl_kv_blocks(vdim);
  uint16_t *tk = t + ifl_kv_key_scales_at(h, dim) + i / 16 * kb * 16 + i % 16, *tv = t + ifl_kv_value_scales_at(h, heads, dim, vdim) + i;
  const uint16_t *fk = f + ifl_kv_key_scales_at(g, dim) + j / 16 * kb * 16 + j % 16, *fv = f + ifl_kv_value_scales_at(g, from_heads, dim, vdim) + j;
  for (int b = 0; b < kb; b++) tk[b * 16] = fk[b * 16];
  for (int b = 0; b < vb; b++) tv[b * IFL_PAGE_ROWS] = fv[b * IFL_PAGE_ROWS];
}

static inline void ifl_kv_copy_q4_(uint8_t *to, int i, int h, int heads, const uint8_t *from, int j, int g, int from_heads, int dim, int vdim) {
  uint8_t *k = to + ifl_kv_key_at_q4(i, h, dim);
  const uint8_t *x = from + ifl_kv_key_at_q4(j, g, dim);
  for (int d = 0; d < dim / 32 * 20; d++) k[d * 16] = x[d * 16];
  memmove(to + ifl_kv_value_at_q4(i, h, heads, dim, vdim), from + ifl_kv_value_at_q4(j, g, from_heads, dim, vdim), (size_t)(vdim / 2));
  ifl_kv_copy_scales_((uint16_t *)(void *)(to + ifl_kv_scales_q4(heads, dim, vdim)), i, h, heads,
                      (const uint16_t *)(const void *)(from + ifl_kv_scales_q4(from_heads, dim, vdim)), j, g, from_heads, dim, vdim);
}

/* The same for any element type: elem_bytes is 4, 2, 0 for q8_b32t2 or −1 for q4_b32t2, which also copy the scales. */
static inline void ifl_kv_copy_head(uint8_t *to, int i, int h, int heads, const uint8_t *from, int j, int g, int from_heads, int dim, int vdim, int elem_bytes) {
  if (elem_bytes == 4) ifl_kv_copy_uint32_t((uint32_t *)(void *)to, i, h, heads, (const uint32_t *)(const void *)from, j, g, from_heads, dim, vdim);
  if (elem_bytes == 2) ifl_kv_copy_uint16_t((uint16_t *)(void *)to, i, h, heads, (const uint16_t *)(const void *)from, j, g, from_heads, dim, vdim);
  if (elem_bytes == -1) ifl_kv_copy_q4_(to, i, h, heads, from, j, g, from_heads, dim, vdim);
  if (elem_bytes) return;
  ifl_kv_copy_uint8_t(to, i, h, heads, from, j, g, from_heads, dim, vdim);
  ifl_kv_copy_scales_((uint16_t *)(void *)(to + ifl_kv_page_bytes(heads, dim, vdim, 1)), i, h, heads,
                      (const uint16_t *)(const void *)(from + ifl_kv_page_bytes(from_heads, dim, vdim, 1)), j, g, from_heads, dim, vdim);
}

/* Copies row `from` of a page to row `to` of the same or another page. */
static inline void ifl_kv_move(uint8_t *to, int i, const uint8_t *from, int j, int kv_heads, int dim, int vdim, int elem_bytes) {
  for (int h = 0; h < kv_heads; h++) ifl_kv_copy_head(to, i, h, kv_heads, from, j, h, kv_heads, dim, vdim, elem_bytes);
}
