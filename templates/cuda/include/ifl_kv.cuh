/* KV cache pages in the layout of ifl_kv.h of the CPU target, written by a group of threads. A page holds 64 rows: for each
 * KV head the keys [64/16][dim16][16], then for each KV head the values [64][vdim16]. With q8_b32t2 the elements are bytes,
 * followed by the 16-bit scales of blocks of 32. q4_b32t2 packs codes of four and five bits: see ifl_kv.h. */
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

/* The element types of a KV cache: conversion from and to float, the places in a page, in elements, and whether keys are rotated.
 * key(p, d) is channel d of the key at p, value(p, c) is channel c of the value at p; the block's scale is not applied. */
struct ifl_kv_unpacked {
  static constexpr bool packed = false;
  static __device__ __forceinline__ int64_t key_at(int row, int head, int dim) { return ifl_kv_key_at(row, head, dim); }
  static __device__ __forceinline__ int64_t value_at(int row, int head, int kv_heads, int dim, int vdim) {
    return ifl_kv_value_at(row, head, kv_heads, dim, vdim);
  }
  static __device__ __forceinline__ int64_t scales_at(int kv_heads, int dim, int vdim) { return ifl_kv_elements(kv_heads, dim, vdim); }
  static __device__ __forceinline__ int value_step(int vdim) { return ifl_round16(vdim); }
};
struct ifl_kv_f32 : ifl_kv_unpacked {
  typedef float element;
  static constexpr bool scaled = false;
  static __device__ __forceinline__ element put(float x) { return x; }
  static __device__ __forceinline__ float get(element x) { return x; }
  static __device__ __forceinline__ float key(const element *p, int d) { return get(p[(int64_t)d * 16]); }
  static __device__ __forceinline__ float value(const element *p, int c) { return get(p[c]); }
};
struct ifl_kv_f16 : ifl_kv_unpacked {
  typedef __half element;
  static constexpr bool scaled = false;
  static __device__ __forceinline__ element put(float x) { return __float2half_rn(ifl_min(ifl_max(x, -65504.0f), 65504.0f)); }
  static __device__ __forceinline__ float get(element x) { return __half2float(x); }
  static __device__ __forceinline__ float key(const element *p, int d) { return get(p[(int64_t)d * 16]); }
  static __device__ __forceinline__ float value(const element *p, int c) { return get(p[c]); }
};
struct ifl_kv_bf16 : ifl_kv_unpacked {
  typedef __nv_bfloat16 element;
  static constexpr bool scaled = false;
  static __device__ __forceinline__ element put(float x) { return __float2bfloat16(x); }
  static __device__ __forceinline__ float get(element x) { return __bfloat162float(x); }
  static __device__ __forceinline__ float key(const element *p, int d) { return get(p[(int64_t)d * 16]); }
  static __device__ __forceinline__ float value(const element *p, int c) { return get(p[c]); }
};
struct ifl_kv_q8_b32t2 : ifl_kv_unpacked {
  typedef int8_t element;
  static constexpr bool scaled = true;
  static __device__ __forceinline__ float key(const element *p, int d) { return (float)p[(int64_t)d * 16]; }
  static __device__ __forceinline__ float value(const element *p, int c) { return (float)p[c]; }
};
struct ifl_kv_q4_b32t2 {
  typedef uint8_t element;
  static constexpr bool scaled = true, packed = true;
  static __device__ __forceinline__ int64_t key_at(int row, int head, int dim) {
    return (int64_t)(head * 4 + row / 16) * 16 * (dim / 32 * 20) + row % 16;
  }
  static __device__ __forceinline__ int64_t value_at(int row, int head, int kv_heads, int dim, int vdim) {
    return (int64_t)IFL_PAGE_ROWS * kv_heads * (dim / 32 * 20) + ((int64_t)head * IFL_PAGE_ROWS + row) * (vdim / 2);
  }
  static __device__ __forceinline__ int64_t scales_at(int kv_heads, int dim, int vdim) { return value_at(0, kv_heads, kv_heads, dim, vdim); }
  static __device__ __forceinline__ int value_step(int vdim) { return vdim / 2; }
  static __device__ __forceinline__ float key(const element *p, int d) {
    const element *block = p + (int64_t)(d / 32) * 20 * 16;
    const int low = block[d % 16 * 16] >> (d / 16 % 2 * 4) & 15, sign = block[(16 + d % 32 / 8) * 16] >> (d % 8) & 1;
    return (float)(low - 16 * sign);
  }
  static __device__ __forceinline__ float value(const element *p, int c) {
    const int low = p[c / 32 * 16 + c % 16] >> (c / 16 % 2 * 4) & 15;
    return (float)((low ^ 8) - 8);
  }
};

/* Numbers of a segment of keys and queries that is rotated: the largest power of two that divides n, at most 256. */
#define IFL_KV_ROTATE 256
__host__ __device__ constexpr int ifl_kv_segment(int n) { return (n & -n) < IFL_KV_ROTATE ? n & -n : IFL_KV_ROTATE; }

/* Multiplies the DIM numbers of a row by the Hadamard matrix divided by the square root of its order, segment by segment. A warp
 * holds number lane + 32·j in x[j]. */
template <int DIM> IFL_DEVICE void ifl_kv_rotate(float (&x)[DIM / 32]) {
  constexpr int N = ifl_kv_segment(DIM);
  const int lane = threadIdx.x & 31;
  const float f = 1.0f / sqrtf((float)N);
#pragma unroll
  for (int j = 0; j < DIM / 32; j++)
    for (int h = 1; h < 32; h *= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, x[j], h);
      x[j] = lane & h ? other - x[j] : x[j] + other;
    }
#pragma unroll
  for (int h = 1; h < N / 32; h *= 2)
#pragma unroll
    for (int j = 0; j < DIM / 32; j++)
      if (!(j & h)) {
        const float a = x[j], b = x[j + h];
        x[j] = a + b, x[j + h] = a - b;
      }
#pragma unroll
  for (int j = 0; j < DIM / 32; j++)
    x[j] *= f;
}

/* Block b of a rotated row of n numbers: the sum of the segment's blocks, each with its sign, times a matrix of order 32. */
IFL_DEVICE void ifl_kv_rotated(const float *x, int n, int b, float (&y)[32]) {
  const int blocks = ifl_kv_segment(n) / 32, first = b / blocks * blocks;
#pragma unroll
  for (int i = 0; i < 32; i++)
    y[i] = 0;
  for (int j = 0; j < blocks; j++) {
    const bool minus = __popc(j & (b - first)) & 1;
#pragma unroll
    for (int i = 0; i < 32; i++)
      y[i] += minus ? -x[32 * (first + j) + i] : x[32 * (first + j) + i];
  }
#pragma unroll
  for (int h = 1; h < 32; h *= 2)
#pragma unroll
    for (int i = 0; i < 32; i++)
      if (!(i & h)) {
        const float a = y[i], c = y[i + h];
        y[i] = a + c, y[i + h] = a - c;
      }
  const float f = 1.0f / sqrtf((float)(32 * blocks));
#pragma unroll
  for (int i = 0; i < 32; i++)
    y[i] *= f;
}

/* Rounds a block to codes −low … low−1 of q4_b32t2 and returns the scale. */
IFL_DEVICE __half ifl_kv_quantize_q4(float (&y)[32], float low) {
  float top = 0;
#pragma unroll
  for (int i = 0; i < 32; i++) {
    y[i] = y[i] == y[i] ? y[i] : 0.0f;
    if (fabsf(y[i]) > fabsf(top) || y[i] == -fabsf(top))
      top = y[i];
  }
  const __half h = __float2half_rn(ifl_min(ifl_max(top / -low, -65504.0f), 65504.0f));
  const float s = __half2float(h), inv = s == 0 ? 0.0f : 1.0f / s;
#pragma unroll
  for (int i = 0; i < 32; i++)
    y[i] = rintf(fminf(fmaxf(y[i] * inv, -low), low - 1));
  return h;
}

/* Writes n numbers of one head as q4_b32t2, keys in steps of 16 bytes with signs of their own; one thread per block of 32. */
template <bool KEYS, class G>
IFL_DEVICE void ifl_kv_write_q4(const G &g, uint8_t *to, uint16_t *scale, int scale_step, const float *x, int n) {
  constexpr int STEP = KEYS ? 16 : 1, BYTES = KEYS ? 20 : 16;
  for (int b = g.lane; b < ifl_kv_blocks(n); b += g.lanes) {
    float y[32];
    if constexpr (KEYS) {
      ifl_kv_rotated(x, n, b, y);
    } else {
#pragma unroll
      for (int i = 0; i < 32; i++)
        y[i] = x[32 * b + i];
    }
    *reinterpret_cast<__half *>(scale + (int64_t)b * scale_step) = ifl_kv_quantize_q4(y, KEYS ? 16.0f : 8.0f);
    uint8_t *block = to + (int64_t)b * BYTES * STEP;
#pragma unroll
    for (int i = 0; i < 16; i++)
      block[i * STEP] = (uint8_t)(((int)y[i] & 15) | ((int)y[i + 16] & 15) << 4);
#pragma unroll
    for (int j = 0; KEYS && j < 4; j++) {
      int signs = 0;
#pragma unroll
      for (int i = 0; i < 8; i++)
        signs |= (y[8 * j + i] < 0) << i;
      block[(16 + j) * STEP] = (uint8_t)signs;
    }
  }
}

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
  uint16_t *scales = reinterpret_cast<uint16_t *>(page + K::scales_at(kv_heads, dim, vdim));
  if constexpr (K::packed) {
    if (k)
      ifl_kv_write_q4<true>(g, p + K::key_at(row, head, dim), scales + ifl_kv_key_scale_at(row, head, dim), 16, k, dim);
    if (v)
      ifl_kv_write_q4<false>(g, p + K::value_at(row, head, kv_heads, dim, vdim),
                             scales + ifl_kv_value_scale_at(row, head, kv_heads, dim, vdim), 64, v, vdim);
  } else {
    if (k)
      ifl_kv_write<K>(g, p + K::key_at(row, head, dim), 16, scales + ifl_kv_key_scale_at(row, head, dim), 16, k, dim);
    if (v)
      ifl_kv_write<K>(g, p + K::value_at(row, head, kv_heads, dim, vdim), 1,
                      scales + ifl_kv_value_scale_at(row, head, kv_heads, dim, vdim), 64, v, vdim);
  }
}

/* Copies row `from` of a page to row `to` of the same or another page, head by head; one thread per element. */
template <class K>
IFL_DEVICE void ifl_kv_move(uint8_t *to_page, int to, const uint8_t *from_page, int from, int kv_heads, int dim, int vdim) {
  typedef typename K::element element;
  element *x = reinterpret_cast<element *>(to_page);
  const element *y = reinterpret_cast<const element *>(from_page);
  [[maybe_unused]] uint16_t *xs = reinterpret_cast<uint16_t *>(to_page + K::scales_at(kv_heads, dim, vdim));
  [[maybe_unused]] const uint16_t *ys = reinterpret_cast<const uint16_t *>(from_page + K::scales_at(kv_heads, dim, vdim));
  const int keys = K::packed ? dim / 32 * 20 : dim, values = K::packed ? vdim / 2 : vdim;
  for (int h = 0; h < kv_heads; h++) {
    for (int i = threadIdx.x; i < keys; i += blockDim.x)
      x[K::key_at(to, h, dim) + (int64_t)16 * i] = y[K::key_at(from, h, dim) + (int64_t)16 * i];
    for (int i = threadIdx.x; i < values; i += blockDim.x)
      x[K::value_at(to, h, kv_heads, dim, vdim) + i] = y[K::value_at(from, h, kv_heads, dim, vdim) + i];
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
#define ifl_kv_put_q4_b32t2(...) ifl_kv_put_<ifl_kv_q4_b32t2>(g, __VA_ARGS__)
