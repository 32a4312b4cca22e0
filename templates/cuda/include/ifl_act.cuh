/* Activation rows as matmuls read them. A row of K numbers is
 *   f32: [K] f32
 *   a8:  [Kp] i8 codes, then at 16-byte-aligned offsets [Kp/B] f32 scale, [Kp/B] f32 scale·Σcode and the row's outliers; Kp
 *        is K rounded up to whole blocks of B = 32 or 64
 * A block of B numbers is rounded as on the CPU: scale = max|x| / 127, code = x·(127 / max|x|) to the nearest even. A row
 * is the sum of its codes and its outliers. The codes do not include the outliers, but scale·Σcode, the factor of a weight's
 * base, does. */
#pragma once
#include "ifl_device.cuh"

IFL_DEVICE int64_t ifl_round16l(int64_t n) { return (n + 15) & ~(int64_t)15; }
IFL_DEVICE int ifl_blocks(int k, int b) { return (k + b - 1) / b; }
IFL_DEVICE int64_t ifl_a8_scale_at(int k, int b) { return ifl_round16l((int64_t)ifl_blocks(k, b) * b); }
IFL_DEVICE int64_t ifl_a8_sum_at(int k, int b) { return ifl_a8_scale_at(k, b) + ifl_round16l((int64_t)ifl_blocks(k, b) * 4); }

IFL_DEVICE int64_t ifl_a8_outliers_at(int k, int b) { return ifl_a8_sum_at(k, b) + ifl_round16l((int64_t)ifl_blocks(k, b) * 4); }

/* An outlier group: four columns of a row with their own scale. */
struct ifl_outlier {
  int32_t group;  /* columns from 4·group */
  uint32_t codes; /* byte j is the code of column j */
  float scale;
  int32_t unused;
  __device__ __forceinline__ int code(int j) const { return (int8_t)(codes >> (8 * j) & 255); }
};

/* Quantizes four numbers to codes in a word, and sums the codes. */
IFL_DEVICE uint32_t ifl_codes_of(const float (&v)[4], float inv, int &sum) {
  uint32_t word = 0;
  sum = 0;
  for (int j = 0; j < 4; j++) {
    const int q = (int)rintf(v[j] * inv);
    sum += q;
    word |= (uint32_t)(q & 255) << (8 * j);
  }
  return word;
}

IFL_DEVICE float ifl_top_of(const float (&v)[4]) {
  return fmaxf(fmaxf(fabsf(v[0]), fabsf(v[1])), fmaxf(fabsf(v[2]), fabsf(v[3])));
}

/* Packs columns c0 … c0+n−1 of a row of k; load(i, v) loads the four columns of group i. c0 is a multiple of B, and so is n
 * except at the row's end. A thread quantizes four numbers, B/4 adjacent threads a block. g.lanes is a multiple of 32, so
 * the threads of a block are in one warp. */
template <int B, class G, class L> IFL_DEVICE void ifl_pack_a8_part(const G &g, uint8_t *act, int k, int c0, int n, L load) {
  constexpr int PER = B / 4;
  const int words = ifl_blocks(n, B) * PER;
  float *scales = reinterpret_cast<float *>(act + ifl_a8_scale_at(k, B)) + c0 / B,
        *sums = reinterpret_cast<float *>(act + ifl_a8_sum_at(k, B)) + c0 / B;
  uint32_t *codes = reinterpret_cast<uint32_t *>(act + c0);
  for (int base = 0; base < words; base += g.lanes) { /* shuffles need whole warps */
    const int i = base + g.lane;
    float v[4];
    load(i, v);
    float top = ifl_top_of(v);
    for (int o = PER / 2; o; o >>= 1)
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
    int sum;
    const uint32_t word = ifl_codes_of(v, top > 0 ? 127.0f / top : 0.0f, sum);
    for (int o = PER / 2; o; o >>= 1)
      sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (i < words) {
      codes[i] = word;
      if (i % PER == 0) {
        scales[i / PER] = top / 127.0f;
        sums[i / PER] = top / 127.0f * (float)sum;
      }
    }
  }
  g.sync();
}

/* The outliers of a row during their extraction; every thread holds a copy. */
template <int O> struct ifl_taken {
  ifl_outlier at[O];
  float rest[O][4]; /* remainder of each outlier's columns */

  /* Loads group i of a row of k without its outliers. */
  __device__ __forceinline__ void load(const float *x, int k, int i, float (&v)[4]) const {
#pragma unroll
    for (int j = 0; j < 4; j++)
      v[j] = 4 * i + j < k ? x[4 * i + j] : 0.0f;
#pragma unroll
    for (int o = 0; o < O; o++) /* if a group was extracted twice, the later remainder counts */
      if (at[o].group == i)
        for (int j = 0; j < 4; j++)
          v[j] = rest[o][j];
  }
  /* Extracts the group with the largest magnitude O times; ties go to the first. */
  template <class G> __device__ inline void take(const G &g, const float *x, int k) {
#pragma unroll
    for (int o = 0; o < O; o++)
      at[o].group = -1;
#pragma unroll
    for (int o = 0; o < O; o++) {
      float v[4], top = -1.0f;
      int group = 0;
      for (int i = g.lane; 4 * i < k; i += g.lanes) {
        load(x, k, i, v);
        const float here = ifl_top_of(v);
        if (here > top)
          top = here, group = i;
      }
      ifl_first_of(g, top, group);
      float inv = top > 0 ? 127.0f / top : 0.0f;
      if (!(inv <= 3.402823466e38f))
        inv = 0.0f;
      load(x, k, group, v);
      at[o].group = group, at[o].scale = top / 127.0f;
      int sum;
      at[o].codes = ifl_codes_of(v, inv, sum);
      for (int j = 0; j < 4; j++) /* rounded twice, as on the CPU */
        rest[o][j] = __fsub_rn(v[j], __fmul_rn(at[o].scale, (float)at[o].code(j)));
    }
  }
};

/* The packings of activations: bytes per row, packing by a group of threads, and the value of a packed column. ifl_a8 is
 * int8 in blocks of B with O outliers. */
template <int B, int O> struct ifl_a8 {
  static __device__ __forceinline__ int64_t bytes(int k) { return ifl_a8_outliers_at(k, B) + O * (int64_t)sizeof(ifl_outlier); }
  static __device__ __forceinline__ const ifl_outlier *outliers(const uint8_t *act, int k) {
    return reinterpret_cast<const ifl_outlier *>(act + ifl_a8_outliers_at(k, B));
  }
  /* With outliers, only whole rows can be packed. */
  template <class G> static __device__ inline void pack(const G &g, uint8_t *act, const float *x, int k, int c0, int n) {
    if constexpr (O == 0) {
      ifl_pack_a8_part<B>(g, act, k, c0, n, [&](int i, float (&v)[4]) {
        for (int j = 0; j < 4; j++)
          v[j] = 4 * i + j < n ? x[4 * i + j] : 0.0f;
      });
    } else {
      ifl_taken<O> taken;
      taken.take(g, x, k);
      ifl_pack_a8_part<B>(g, act, k, 0, k, [&](int i, float (&v)[4]) { taken.load(x, k, i, v); });
      if (g.lane == 0) {
        float *sums = reinterpret_cast<float *>(act + ifl_a8_sum_at(k, B));
        ifl_outlier *to = reinterpret_cast<ifl_outlier *>(act + ifl_a8_outliers_at(k, B));
#pragma unroll
        for (int o = 0; o < O; o++) {
          const ifl_outlier e = taken.at[o];
          to[o] = e;
          sums[e.group / (B / 4)] += e.scale * (float)(e.code(0) + e.code(1) + e.code(2) + e.code(3));
        }
      }
      g.sync();
    }
  }
  static __device__ inline float value(const uint8_t *act, int k, int c) {
    float v = reinterpret_cast<const float *>(act + ifl_a8_scale_at(k, B))[c / B] * (float)reinterpret_cast<const int8_t *>(act)[c];
    for (int o = 0; o < O; o++)
      if (outliers(act, k)[o].group == c / 4)
        v += outliers(act, k)[o].scale * (float)outliers(act, k)[o].code(c % 4);
    return v;
  }
};
struct ifl_f32 {
  static __device__ __forceinline__ int64_t bytes(int k) { return ifl_round16l((int64_t)k * 4); }
  template <class G> static __device__ __forceinline__ void pack(const G &g, uint8_t *act, const float *x, int k, int c0, int n) {
    for (int i = g.lane; i < n; i += g.lanes)
      reinterpret_cast<float *>(act)[c0 + i] = x[i];
    g.sync();
  }
  static __device__ __forceinline__ float value(const uint8_t *act, int, int c) { return reinterpret_cast<const float *>(act)[c]; }
};
/* Numbers rounded to bf16 and stored as floats. */
struct ifl_bf16 : ifl_f32 {
  template <class G> static __device__ __forceinline__ void pack(const G &g, uint8_t *act, const float *x, int k, int c0, int n) {
    for (int i = g.lane; i < n; i += g.lanes)
      reinterpret_cast<float *>(act)[c0 + i] = __bfloat162float(__float2bfloat16(x[i]));
    g.sync();
  }
};
