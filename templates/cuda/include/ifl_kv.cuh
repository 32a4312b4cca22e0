/* KV cache pages in the layout of ifl_kv.h of the CPU target, written by a group of threads. A page holds 64 rows: for each
 * KV head the keys [64/16][dim16][16], then for each KV head the values [64][vdim16]. With q8_b32t2 the elements are bytes,
 * followed by the 16-bit scales of blocks of 32. */
#pragma once
#include "ifl_device.cuh"

#define IFL_PAGE_ROWS 64

IFL_DEVICE int32_t ifl_kv_page(const ifl_step *s, int seq, int slot) { return s->page[s->page_at[seq] + slot / IFL_PAGE_ROWS]; }

/* Index in a page, in elements, of the first key element of a row (stride 16) and of its first value element (stride 1). */
IFL_DEVICE int64_t ifl_kv_key_at(int row, int head, int dim) {
  const int d16 = ifl_round16(dim);
  return (int64_t)head * IFL_PAGE_ROWS * d16 + (int64_t)(row / 16) * d16 * 16 + row % 16;
}
IFL_DEVICE int64_t ifl_kv_value_at(int row, int head, int kv_heads, int dim, int vdim) {
  return (int64_t)IFL_PAGE_ROWS * kv_heads * ifl_round16(dim) + ((int64_t)head * IFL_PAGE_ROWS + row) * ifl_round16(vdim);
}
IFL_DEVICE int64_t ifl_kv_elements(int kv_heads, int dim, int vdim) {
  return (int64_t)IFL_PAGE_ROWS * kv_heads * (ifl_round16(dim) + ifl_round16(vdim));
}
IFL_DEVICE int ifl_kv_blocks(int n) { return (n + 31) / 32; }
IFL_DEVICE int64_t ifl_kv_key_scale_at(int row, int head, int dim) { /* blocks have a stride of 16 */
  return (int64_t)head * IFL_PAGE_ROWS * ifl_kv_blocks(dim) + row / 16 * ifl_kv_blocks(dim) * 16 + row % 16;
}
IFL_DEVICE int64_t ifl_kv_value_scale_at(int row, int head, int kv_heads, int dim, int vdim) { /* blocks have a stride of 64 */
  return (int64_t)IFL_PAGE_ROWS * (kv_heads * ifl_kv_blocks(dim) + head * ifl_kv_blocks(vdim)) + row;
}

/* The element types of a KV cache: conversion from and to float. */
struct ifl_kv_f32 {
  typedef float element;
  static constexpr bool scaled = false;
  static __device__ __forceinline__ element put(float x) { return x; }
  static __device__ __forceinline__ float get(element x) { return x; }
};
struct ifl_kv_f16 {
  typedef __half element;
  static constexpr bool scaled = false;
  static __device__ __forceinline__ element put(float x) { return __float2half_rn(ifl_min(ifl_max(x, -65504.0f), 65504.0f)); }
  static __device__ __forceinline__ float get(element x) { return __half2float(x); }
};
struct ifl_kv_bf16 {
  typedef __nv_bfloat16 element;
  static constexpr bool scaled = false;
  static __device__ __forceinline__ element put(float x) { return __float2bfloat16(x); }
  static __device__ __forceinline__ float get(element x) { return __bfloat162float(x); }
};
struct ifl_kv_q8_b32t2 {
  typedef int8_t element;
  static constexpr bool scaled = true;
  static __device__ __forceinline__ float get(element x) { return (float)x; }
};

/* Writes n numbers of one head; one thread per element. */
template <class K, class G>
IFL_DEVICE void ifl_kv_write(const G &g, typename K::element *to, int step, uint16_t *scale, int scale_step, const float *x,
                             int n) {
  if constexpr (!K::scaled) {
    for (int i = g.lane; i < n; i += g.lanes)
      to[(int64_t)i * step] = K::put(x[i]);
  } else {
    for (int b = g.lane; b < ifl_kv_blocks(n); b += g.lanes) { /* one thread per block of 32 */
      const int have = ifl_min_int(32, n - 32 * b);
      float top = 0;
      for (int i = 0; i < have; i++)
        top = fmaxf(top, fabsf(x[32 * b + i])); /* ignores NaN */
      const __half h = __float2half_rn(fminf(top / 127.0f, 65504.0f));
      const float s = __half2float(h), inv = s > 0 ? 1.0f / s : 0.0f;
      *reinterpret_cast<__half *>(scale + (int64_t)b * scale_step) = h;
      for (int i = 0; i < have; i++) {
        const float q = x[32 * b + i] * inv;
        to[(int64_t)(32 * b + i) * step] = (int8_t)(q == q ? rintf(fminf(fmaxf(q, -127.0f), 127.0f)) : 0.0f);
      }
    }
  }
}

/* Writes the key (dim floats) and the value (vdim floats) of one KV head into row 0…63 of a page; either may be NULL. */
template <class K, class G>
IFL_DEVICE void ifl_kv_put_(const G &g, uint8_t *page, int row, int head, int kv_heads, int dim, int vdim, const float *k,
                            const float *v) {
  typename K::element *p = reinterpret_cast<typename K::element *>(page);
  uint16_t *scales = reinterpret_cast<uint16_t *>(page + ifl_kv_elements(kv_heads, dim, vdim));
  if (k)
    ifl_kv_write<K>(g, p + ifl_kv_key_at(row, head, dim), 16, scales + ifl_kv_key_scale_at(row, head, dim), 16, k, dim);
  if (v)
    ifl_kv_write<K>(g, p + ifl_kv_value_at(row, head, kv_heads, dim, vdim), 1,
                    scales + ifl_kv_value_scale_at(row, head, kv_heads, dim, vdim), 64, v, vdim);
}

/* Copies row `from` of a page to row `to` of the same or another page, head by head; one thread per element. */
template <class K>
IFL_DEVICE void ifl_kv_move(uint8_t *to_page, int to, const uint8_t *from_page, int from, int kv_heads, int dim, int vdim) {
  typedef typename K::element element;
  element *x = reinterpret_cast<element *>(to_page);
  const element *y = reinterpret_cast<const element *>(from_page);
  [[maybe_unused]] uint16_t *xs = reinterpret_cast<uint16_t *>(to_page + ifl_kv_elements(kv_heads, dim, vdim));
  [[maybe_unused]] const uint16_t *ys = reinterpret_cast<const uint16_t *>(from_page + ifl_kv_elements(kv_heads, dim, vdim));
  for (int h = 0; h < kv_heads; h++) {
    for (int i = threadIdx.x; i < dim; i += blockDim.x)
      x[ifl_kv_key_at(to, h, dim) + (int64_t)16 * i] = y[ifl_kv_key_at(from, h, dim) + (int64_t)16 * i];
    for (int i = threadIdx.x; i < vdim; i += blockDim.x)
      x[ifl_kv_value_at(to, h, kv_heads, dim, vdim) + i] = y[ifl_kv_value_at(from, h, kv_heads, dim, vdim) + i];
    if constexpr (K::scaled) {
      for (int b = threadIdx.x; b < ifl_kv_blocks(dim); b += blockDim.x)
        xs[ifl_kv_key_scale_at(to, h, dim) + 16 * b] = ys[ifl_kv_key_scale_at(from, h, dim) + 16 * b];
      for (int b = threadIdx.x; b < ifl_kv_blocks(vdim); b += blockDim.x)
        xs[ifl_kv_value_scale_at(to, h, kv_heads, dim, vdim) + 64 * b] =
            ys[ifl_kv_value_scale_at(from, h, kv_heads, dim, vdim) + 64 * b];
    }
  }
}

#define ifl_kv_put_f32(...) ifl_kv_put_<ifl_kv_f32>(g, __VA_ARGS__)
#define ifl_kv_put_f16(...) ifl_kv_put_<ifl_kv_f16>(g, __VA_ARGS__)
#define ifl_kv_put_bf16(...) ifl_kv_put_<ifl_kv_bf16>(g, __VA_ARGS__)
#define ifl_kv_put_q8_b32t2(...) ifl_kv_put_<ifl_kv_q8_b32t2>(g, __VA_ARGS__)
