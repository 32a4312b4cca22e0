/* State rows of attention: a page holds 64 rows of one layer: for each KV head the keys [64/16][dim16][16], then for
 * each KV head the values [64][vdim16]; dim16 is dim rounded up to 16. Padding is zero and never written.
 * Elements are f32, f16 or bf16, rounded to nearest even; f16 saturates at ±65504 and keeps NaN. */
#pragma once
#include "ifl_step.h"
#include <string.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define IFL_PAGE_ROWS 64

static inline int ifl_round16(int n) { return (n + 15) & ~15; }

/* Bytes of a page; with 4-byte and 2-byte elements a multiple of 64. */
static inline int64_t ifl_kv_page_bytes(int kv_heads, int dim, int vdim, int elem_bytes) {
  return (int64_t)IFL_PAGE_ROWS * kv_heads * (ifl_round16(dim) + ifl_round16(vdim)) * elem_bytes;
}

/* The page id that holds state row `slot` of sequence `seq`. */
static inline int32_t ifl_kv_page(const ifl_step *s, int seq, int slot) {
  return s->page[s->page_at[seq] + slot / IFL_PAGE_ROWS];
}

/* Index in a page, in elements, of the first key element of a row (the next ones follow at a distance of 16) and of its
 * first value element (the next ones follow at once). */
static inline int64_t ifl_kv_key_at(int row, int head, int dim) {
  int d16 = ifl_round16(dim);
  return (int64_t)head * IFL_PAGE_ROWS * d16 + (int64_t)(row / 16) * d16 * 16 + row % 16;
}
static inline int64_t ifl_kv_value_at(int row, int head, int kv_heads, int dim, int vdim) {
  return (int64_t)IFL_PAGE_ROWS * kv_heads * ifl_round16(dim) + ((int64_t)head * IFL_PAGE_ROWS + row) * ifl_round16(vdim);
}

static inline uint32_t ifl_f32_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}

static inline uint16_t ifl_f16_of_f32(float x) {
  uint32_t u = ifl_f32_bits(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00); /* NaN */
  if (a >= 0x477ff000) return (uint16_t)(sign | 0x7bff);
  if (a >= 0x38800000) return (uint16_t)(sign | ((a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13));
  if (a < 0x33000000) return (uint16_t)sign; /* below half of the smallest subnormal */
  uint32_t shift = 126 - (a >> 23), m = (a & 0x7fffff) | 0x800000;
  uint32_t half = 1u << (shift - 1), low = m & (2 * half - 1), r = m >> shift;
  return (uint16_t)(sign | (r + (low > half || (low == half && (r & 1)))));
}

static inline uint16_t ifl_bf16_of_f32(float x) {
  uint32_t u = ifl_f32_bits(x);
  if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 0x40);
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* ifl_kv_put_TYPE writes the key (dim floats) and the value (vdim floats) of one KV head into row 0…63 of a page; k or v
 * may be NULL: that part is left as it is. */
static inline void ifl_kv_put_f32(uint8_t *page, int row, int head, int kv_heads, int dim, int vdim, const float *k, const float *v) {
  float *p = (float *)page;
  if (k) {
    float *to = p + ifl_kv_key_at(row, head, dim);
    for (int d = 0; d < dim; d++) to[(int64_t)d * 16] = k[d];
  }
  if (v) memcpy(p + ifl_kv_value_at(row, head, kv_heads, dim, vdim), v, (size_t)vdim * 4);
}

static inline void ifl_kv_put_f16(uint8_t *page, int row, int head, int kv_heads, int dim, int vdim, const float *k, const float *v) {
  uint16_t *p = (uint16_t *)page;
  if (k) {
    uint16_t *to = p + ifl_kv_key_at(row, head, dim);
    for (int d = 0; d < dim; d++) to[(int64_t)d * 16] = ifl_f16_of_f32(k[d]);
  }
  if (v) {
    uint16_t *to = p + ifl_kv_value_at(row, head, kv_heads, dim, vdim);
    for (int d = 0; d < vdim; d++) to[d] = ifl_f16_of_f32(v[d]);
  }
}

static inline void ifl_kv_put_bf16(uint8_t *page, int row, int head, int kv_heads, int dim, int vdim, const float *k, const float *v) {
  uint16_t *p = (uint16_t *)page;
  if (k) {
    uint16_t *to = p + ifl_kv_key_at(row, head, dim);
    for (int d = 0; d < dim; d++) to[(int64_t)d * 16] = ifl_bf16_of_f32(k[d]);
  }
  if (v) {
    uint16_t *to = p + ifl_kv_value_at(row, head, kv_heads, dim, vdim);
    for (int d = 0; d < vdim; d++) to[d] = ifl_bf16_of_f32(v[d]);
  }
}
