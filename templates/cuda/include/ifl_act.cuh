/* Activation rows as matmuls read them. A row of K numbers is
 *   f32: [K] f32
 *   a8:  [Kp] i8 codes, then at 16-byte-aligned offsets [Kp/B] f32 scale and [Kp/B] f32 scale·Σcode; Kp is K rounded up
 *        to whole blocks of B = 32 or 64
 * A block of B numbers is rounded as on the CPU: scale = max|x| / 127, code = x·(127 / max|x|) to the nearest even. */
#pragma once
#include "ifl_device.cuh"

IFL_DEVICE int64_t ifl_round16l(int64_t n) { return (n + 15) & ~(int64_t)15; }
IFL_DEVICE int ifl_blocks(int k, int b) { return (k + b - 1) / b; }
IFL_DEVICE int64_t ifl_a8_scale_at(int k, int b) { return ifl_round16l((int64_t)ifl_blocks(k, b) * b); }
IFL_DEVICE int64_t ifl_a8_sum_at(int k, int b) { return ifl_a8_scale_at(k, b) + ifl_round16l((int64_t)ifl_blocks(k, b) * 4); }
IFL_DEVICE int64_t ifl_a8_bytes(int k, int b) { return ifl_a8_sum_at(k, b) + ifl_round16l((int64_t)ifl_blocks(k, b) * 4); }

/* Packs columns c0 … c0+n−1 of a row of k, which lie at x; c0 is a multiple of B, and n too but at the row's end. A thread
 * takes four numbers, B/4 neighbouring threads a block. g.lanes is a multiple of 32, so a block's threads lie in one warp. */
template <int B, class G> IFL_DEVICE void ifl_pack_a8_part(const G &g, uint8_t *act, const float *x, int k, int c0, int n) {
  constexpr int PER = B / 4;
  const int words = ifl_blocks(n, B) * PER;
  float *scales = reinterpret_cast<float *>(act + ifl_a8_scale_at(k, B)) + c0 / B,
        *sums = reinterpret_cast<float *>(act + ifl_a8_sum_at(k, B)) + c0 / B;
  uint32_t *codes = reinterpret_cast<uint32_t *>(act + c0);
  for (int base = 0; base < words; base += g.lanes) { /* whole warps take part in the exchanges */
    const int i = base + g.lane;
    float v[4], top = 0;
    for (int j = 0; j < 4; j++) {
      v[j] = 4 * i + j < n ? x[4 * i + j] : 0.0f;
      top = fmaxf(top, fabsf(v[j]));
    }
    for (int o = PER / 2; o; o >>= 1)
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
    const float inv = top > 0 ? 127.0f / top : 0.0f;
    int sum = 0;
    uint32_t word = 0;
    for (int j = 0; j < 4; j++) {
      const int q = (int)rintf(v[j] * inv);
      sum += q;
      word |= (uint32_t)(q & 255) << (8 * j);
    }
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
template <class G> IFL_DEVICE void ifl_pack_f32_part(const G &g, uint8_t *act, const float *x, int k, int c0, int n) {
  for (int i = g.lane; i < n; i += g.lanes)
    reinterpret_cast<float *>(act)[c0 + i] = x[i];
  g.sync();
}

/* The kinds of activations. */
struct ifl_a8_b32 {
  static __device__ __forceinline__ int64_t bytes(int k) { return ifl_a8_bytes(k, 32); }
  template <class G> static __device__ __forceinline__ void pack(const G &g, uint8_t *act, const float *x, int k, int c0, int n) {
    ifl_pack_a8_part<32>(g, act, x, k, c0, n);
  }
};
struct ifl_a8_b64 {
  static __device__ __forceinline__ int64_t bytes(int k) { return ifl_a8_bytes(k, 64); }
  template <class G> static __device__ __forceinline__ void pack(const G &g, uint8_t *act, const float *x, int k, int c0, int n) {
    ifl_pack_a8_part<64>(g, act, x, k, c0, n);
  }
};
struct ifl_f32 {
  static __device__ __forceinline__ int64_t bytes(int k) { return ifl_round16l((int64_t)k * 4); }
  template <class G> static __device__ __forceinline__ void pack(const G &g, uint8_t *act, const float *x, int k, int c0, int n) {
    ifl_pack_f32_part(g, act, x, k, c0, n);
  }
};
