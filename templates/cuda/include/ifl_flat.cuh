/* Matmuls of a few rows on tensor cores (FlashDecoding++ §5, ImplB). Weights are the M operand and activation rows, in tiles
 * of 8, the N operand. Each warp computes a panel of 16 rows over a part of K. It loads its weights with cp.async, 16 bytes
 * at a time, into its own ring in shared memory, so that it never waits for other warps. Each weight fragment is used for
 * all rows of the block. The parts of K are added in order. */
#pragma once
#include "ifl_gemv.cuh"

#define IFL_STAGES 3 /* pieces of weights in flight per warp */

/* Loads the first `bytes` of a piece into shared memory and zeroes the rest of its `size`. Both are multiples of 16. */
IFL_DEVICE void ifl_fetch(uint8_t *to, const uint8_t *from, int bytes, int size) {
  for (int i = (threadIdx.x & 31) * 16; i < size; i += 512) {
    if (i < bytes)
      ifl_cp_async16(to + i, from + i);
    else
      *reinterpret_cast<uint4 *>(to + i) = make_uint4(0, 0, 0, 0);
  }
}

/* Block types: a piece is a tile-block. Its codes are unpacked to one per byte. Dot products are exact in int32, and each
 * block's sum is scaled in float. Activations are packed as ifl_a8<F::BLOCK, O>. */
template <class F, int O> struct ifl_flat_block {
  static constexpr bool MORE = O > 0;
  static constexpr bool PACKED = F::QUADS > 1 || F::VECTORS > 1;
  static constexpr int PIECE = F::BLOCK, BYTES = F::STRIDE, EXTRA = PACKED ? 16 * F::BLOCK : 0;
  static constexpr int WARP = IFL_STAGES * BYTES + EXTRA; /* bytes of shared memory per warp */
  static __device__ __forceinline__ int64_t bytes(int k) { return (int64_t)ifl_blocks(k, F::BLOCK) * F::STRIDE; }
  static __device__ __forceinline__ int valid(int) { return BYTES; }
  static __device__ __forceinline__ float more(const uint8_t *panel, int k, int r, const uint8_t *x) {
    return ifl_outlier_sum<F, O>(panel, k, r, x);
  }

  /* f[j][i]: row 8·j + 2·(lane%4) + i%2 of the activations, row 2·(lane/4) + i/2 of the panel. */
  template <int NB>
  static __device__ inline void multiply(const uint8_t *tile, uint8_t *extra, int b, int k, const ifl_rows_in &x,
                                         float (&f)[NB][4]) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    const uint8_t *codes = tile;
    if (PACKED) {
      for (int u = lane >> 2; u < F::UNITS; u += 8)
        F::decode(ifl_in_shared{tile + 64 * F::VECTORS * u + 16 * t}, [&](int j, ifl_codes c) {
          *reinterpret_cast<uint4 *>(extra + 64 * (u * F::QUADS + j) + 16 * t) = make_uint4(c.x[0], c.x[1], c.x[2], c.x[3]);
        });
      __syncwarp();
      codes = extra;
    }
    int acc[NB][4] = {};
#pragma unroll
    for (int s = 0; s < F::BLOCK / 32; s++) {
      const uint2 lo = *reinterpret_cast<const uint2 *>(codes + 64 * (8 * s + t) + 8 * g),
                  hi = *reinterpret_cast<const uint2 *>(codes + 64 * (8 * s + 4 + t) + 8 * g);
      const uint32_t flip = F::SIGNED ? 0x80808080u : 0u, a[4] = {lo.x ^ flip, lo.y ^ flip, hi.x ^ flip, hi.y ^ flip};
#pragma unroll
      for (int j = 0; j < NB; j++) {
        const uint32_t *row = reinterpret_cast<const uint32_t *>(x.row(8 * j + g)) + b * (F::BLOCK / 4) + 8 * s;
        const uint32_t v[2] = {row[t], row[4 + t]};
        if (F::SIGNED)
          ifl_mma_m16n8k32_s8(acc[j], a, v);
        else
          ifl_mma_m16n8k32_u8s8(acc[j], a, v);
      }
    }
    const uint32_t s2 = *reinterpret_cast<const uint32_t *>(tile + F::CODES + 4 * g);
    const uint32_t o2 = F::SIGNED ? 0 : *reinterpret_cast<const uint32_t *>(tile + F::CODES + 32 + 4 * g);
    const float scale[2] = {ifl_half_bits(s2 & 0xffff), ifl_half_bits(s2 >> 16)},
                base[2] = {ifl_half_bits(o2 & 0xffff), ifl_half_bits(o2 >> 16)};
    const int64_t scale_at = ifl_a8_scale_at(k, F::BLOCK), sum_at = ifl_a8_sum_at(k, F::BLOCK);
#pragma unroll
    for (int j = 0; j < NB; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint8_t *row = x.row(8 * j + 2 * t + (i & 1));
        f[j][i] = fmaf((float)acc[j][i] * scale[i >> 1], reinterpret_cast<const float *>(row + scale_at)[b], f[j][i]);
        if (!F::SIGNED)
          f[j][i] = fmaf(base[i >> 1], reinterpret_cast<const float *>(row + sum_at)[b], f[j][i]);
      }
  }
  static __device__ __forceinline__ int panel_row(int g, int i) { return 2 * g + (i >> 1); }
};

/* 16-bit floats: a piece is 32 columns. An activation is split into the sum of two numbers of the weights' type, to keep its
 * precision. It saturates at the type's largest number. */
template <class E> struct ifl_flat_float {
  static constexpr bool MORE = false;
  static constexpr int PIECE = 32, BYTES = 32 * 16 * 2, EXTRA = 0, WARP = IFL_STAGES * BYTES;
  static __device__ __forceinline__ int64_t bytes(int k) { return (int64_t)k * 32; }
  static __device__ __forceinline__ int valid(int columns) { return columns < PIECE ? columns * 32 : BYTES; }
  static __device__ __forceinline__ float more(const uint8_t *, int, int, const uint8_t *) { return 0.0f; }

  template <int NB>
  static __device__ inline void multiply(const uint8_t *tile, uint8_t *, int b, int k, const ifl_rows_in &x, float (&f)[NB][4]) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int s = 0; s < 2; s++) {
      uint32_t a[4]; /* the tile is [k][16 rows]: load the transposed fragment */
      ifl_ldmatrix_x4_trans(a, tile + (16 * s + (lane & 7) + (lane >> 4) * 8) * 32 + (lane >> 3 & 1) * 16);
#pragma unroll
      for (int j = 0; j < NB; j++) {
        const float *row = reinterpret_cast<const float *>(x.row(8 * j + g));
        uint32_t hi[2], lo[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int at = b * PIECE + 16 * s + 8 * h + 2 * t;
          E::split(at < k ? row[at] : 0.0f, at + 1 < k ? row[at + 1] : 0.0f, hi[h], lo[h]);
        }
        E::mma(f[j], a, hi);
        E::mma(f[j], a, lo);
      }
    }
  }
  static __device__ __forceinline__ int panel_row(int g, int i) { return g + (i >> 1) * 8; }
};

struct ifl_flat_f16 {
  static __device__ __forceinline__ void split(float u, float v, uint32_t &hi, uint32_t &lo) {
    u = fminf(fmaxf(u, -65504.0f), 65504.0f), v = fminf(fmaxf(v, -65504.0f), 65504.0f);
    const __half uh = __float2half_rn(u), vh = __float2half_rn(v), ul = __float2half_rn(u - __half2float(uh)),
                 vl = __float2half_rn(v - __half2float(vh));
    hi = ifl_bits16(uh) | (uint32_t)ifl_bits16(vh) << 16, lo = ifl_bits16(ul) | (uint32_t)ifl_bits16(vl) << 16;
  }
  static __device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    ifl_mma_m16n8k16_f16(d, a, b);
  }
};
struct ifl_flat_bf16 {
  static __device__ __forceinline__ void split(float u, float v, uint32_t &hi, uint32_t &lo) {
    const __nv_bfloat16 uh = __float2bfloat16(u), vh = __float2bfloat16(v), ul = __float2bfloat16(u - __bfloat162float(uh)),
                        vl = __float2bfloat16(v - __bfloat162float(vh));
    hi = ifl_bits16(uh) | (uint32_t)ifl_bits16(vh) << 16, lo = ifl_bits16(ul) | (uint32_t)ifl_bits16(vl) << 16;
  }
  static __device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    ifl_mma_m16n8k16_bf16(d, a, b);
  }
};

/* As ifl_gemv for up to 8·NB rows; ring holds IFL_WARPS·P::WARP bytes, aligned to 16, and red as there with NT = 8·NB. */
template <class P, int NB>
IFL_DEVICE void ifl_flat(const uint8_t *w, int k, int panels, const ifl_rows_in &x, uint8_t *ring, float *red, float *y,
                         int ldy) {
  constexpr int NT = 8 * NB;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, pieces = ifl_blocks(k, P::PIECE);
  const int parts = panels < IFL_WARPS ? IFL_WARPS / panels : 1;
  uint8_t *mine = ring + warp * P::WARP;
  for (int item = warp; item < panels * parts; item += IFL_WARPS) {
    const uint8_t *panel = w + item / parts * P::bytes(k);
    const int part = item % parts, count = (pieces - part + parts - 1) / parts;
    float f[NB][4] = {};
    auto fetch = [&](int i) { /* loads piece part + i·parts, if it exists; always commits a group, so that the group count equals the piece count */
                              const int b = part + i * parts;
                              if (i < count)
                                ifl_fetch(mine + i % IFL_STAGES * P::BYTES, panel + (int64_t)b * P::BYTES,
                                          P::valid(k - b * P::PIECE), P::BYTES);
                              ifl_cp_async_commit();
    };
    for (int i = 0; i < IFL_STAGES - 1; i++)
      fetch(i);
    for (int i = 0; i < count; i++) {
      ifl_cp_async_wait<IFL_STAGES - 2>();
      __syncwarp(); /* the piece is complete, and all threads have finished the previous one */
      fetch(i + IFL_STAGES - 1);
      P::template multiply<NB>(mine + i % IFL_STAGES * P::BYTES, mine + IFL_STAGES * P::BYTES, part + i * parts, k, x, f);
    }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < NB; j++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        red[(item * NT + 8 * j + 2 * (lane & 3) + (i & 1)) * 16 + P::panel_row(lane >> 2, i)] = f[j][i];
  }
  __syncthreads();
  ifl_add_parts<NT>(x.rows, panels, parts, red, y, ldy);
  ifl_add_more<P>(w, k, panels, x, y, ldy);
}
