/* Matmuls of many rows (FlashDecoding++ §5, ImplC). The packed rows are converted to f16, and the weights are unpacked
 * piece by piece to 16-bit floats. cuBLASLt or the kernel below multiplies each piece on tensor cores. */
#pragma once
#include "ifl_gemv.cuh"

IFL_DEVICE uint32_t ifl_half_pair(float a, float b) {
  return ifl_bits16(__float2half_rn(a)) | (uint32_t)ifl_bits16(__float2half_rn(b)) << 16;
}

/* Converts a row of k numbers, packed as A, to f16 with zeros up to ld, which is even. The row is scaled by a power of two
 * that moves its largest number to 2^13 … 2^14, within the range of f16. The results must be multiplied by factor. */
template <class A> IFL_DEVICE void ifl_widen(const ifl_block &g, const uint8_t *row, int k, uint16_t *wide, int ld, float *factor) {
  auto at = [&](int i) { return i < k ? A::value(row, k, i) : 0.0f; };
  float top = 0;
  for (int i = g.lane; i < k; i += g.lanes)
    top = fmaxf(top, fabsf(at(i)));
  top = ifl_max_over(g, top);
  const int exponent = ifl_min_int(ifl_max_int((int)(__float_as_uint(top) >> 23), 27), 253); /* 127 + the exponent of top */
  const float up = __uint_as_float((uint32_t)(267 - exponent) << 23), down = __uint_as_float((uint32_t)(exponent - 13) << 23);
  for (int i = 2 * g.lane; i < ld; i += 2 * g.lanes)
    *reinterpret_cast<uint32_t *>(wide + i) = ifl_half_pair(at(i) * up, at(i + 1) * up);
  if (g.lane == 0)
    *factor = down;
}

/* Unpacks a panel of 16 rows of k weights with all blocks of a grid column to to[row · ld + column], with zeros up to ld,
 * a multiple of 64. Offsets are 32-bit, because with 64 bits the 2-bit variant spills a register. */
template <class F> struct ifl_unpack_block {
  static __device__ __forceinline__ int64_t bytes(int k) { return (int64_t)ifl_blocks(k, F::BLOCK) * F::STRIDE; }
  static __device__ inline void panel(const uint8_t *w, int k, uint16_t *to, int ld) {
    const int first = blockIdx.y * blockDim.x + threadIdx.x, q = first & 3, have = ifl_blocks(k, F::BLOCK) * F::UNITS;
    for (int u = first >> 2; u < ld / F::BLOCK * F::UNITS; u += gridDim.y * blockDim.x / 4) {
      const int b = u / F::UNITS, i = u % F::UNITS;
      uint16_t *out = to + (uint32_t)(4 * q * ld + b * F::BLOCK + 4 * i * F::QUADS);
      if (u >= have) {
        for (int j = 0; j < F::QUADS; j++)
          for (int r = 0; r < 4; r++)
            *reinterpret_cast<uint2 *>(out + (int64_t)r * ld + 4 * j) = make_uint2(0, 0);
        continue;
      }
      const uint8_t *tile = w + (uint32_t)(b * F::STRIDE);
      const uint2 s = *reinterpret_cast<const uint2 *>(tile + F::CODES + 8 * q);
      const uint2 o = F::SIGNED ? make_uint2(0, 0) : *reinterpret_cast<const uint2 *>(tile + F::CODES + 32 + 8 * q);
      const float scale[4] = {ifl_half_bits(s.x & 0xffff), ifl_half_bits(s.x >> 16), ifl_half_bits(s.y & 0xffff),
                              ifl_half_bits(s.y >> 16)},
                  base[4] = {ifl_half_bits(o.x & 0xffff), ifl_half_bits(o.x >> 16), ifl_half_bits(o.y & 0xffff),
                             ifl_half_bits(o.y >> 16)};
      F::decode(tile + (uint32_t)(64 * F::VECTORS * i + 16 * q), [&](int j, ifl_codes c) {
#pragma unroll
        for (int r = 0; r < 4; r++) {
          float v[4];
#pragma unroll
          for (int e = 0; e < 4; e++) {
            const int code = (int)(c.x[r] >> (8 * e) & 255);
            v[e] = F::SIGNED ? scale[r] * (float)(code - 128) : fmaf(scale[r], (float)code, base[r]);
          }
          *reinterpret_cast<uint2 *>(out + (int64_t)r * ld + 4 * j) = make_uint2(ifl_half_pair(v[0], v[1]), ifl_half_pair(v[2], v[3]));
        }
      });
    }
  }
};

template <class E> struct ifl_unpack_float {
  static constexpr int ROWS = 16 / sizeof(typename E::element), GROUPS = 16 / ROWS;
  static __device__ __forceinline__ int64_t bytes(int k) { return (int64_t)k * 16 * sizeof(typename E::element); }
  static __device__ inline void panel(const uint8_t *w, int k, uint16_t *to, int ld) {
    const int first = blockIdx.y * blockDim.x + threadIdx.x, q = first % GROUPS;
    for (int i = first / GROUPS * 2; i < ld; i += gridDim.y * blockDim.x / GROUPS * 2) { /* two columns */
      uint4 v[2];
#pragma unroll
      for (int j = 0; j < 2; j++)
        v[j] = i + j < k ? ifl_load_stream(w + ((int64_t)(i + j) * 16 + q * ROWS) * sizeof(typename E::element)) : make_uint4(0, 0, 0, 0);
      const typename E::element *a = reinterpret_cast<const typename E::element *>(&v[0]),
                                *b = reinterpret_cast<const typename E::element *>(&v[1]);
#pragma unroll
      for (int r = 0; r < ROWS; r++)
        *reinterpret_cast<uint32_t *>(to + (int64_t)(q * ROWS + r) * ld + i) = ifl_half_pair(E::get(a[r]), E::get(b[r]));
    }
  }
};

#define IFL_TILE 128 /* rows of either operand per block: manifest.GemmTile */
#define IFL_DEPTH 32 /* columns per stage */
#define IFL_PIPE 4   /* cp.async stages */

/* The offset of 16 bytes in a stage. The four 16-byte pieces of a row are swizzled by row, so that ldmatrix has no bank
 * conflicts. */
IFL_DEVICE int ifl_swizzled(int row, int chunk) { return row * (2 * IFL_DEPTH) + ((chunk ^ (row >> 1 & 3)) << 4); }

/* Loads one stage of columns from k on of 128 rows from r0 on. Rows beyond the last repeat it; their results are unused. */
IFL_DEVICE void ifl_fetch_tile(uint8_t *to, const uint16_t *from, int r0, int rows, int ld, int k) {
#pragma unroll
  for (int i = 0; i < IFL_TILE * 4 / 256; i++) {
    const int at = i * 256 + threadIdx.x, row = at >> 2, chunk = at & 3;
    ifl_cp_async16(to + ifl_swizzled(row, chunk), from + (int64_t)ifl_min_int(r0 + row, rows - 1) * ld + k + 8 * chunk);
  }
}

/* y[t · ldy + m] = Σ w[m · ld + k] · x[t · ld + k] over ld columns, a multiple of 32, for a tile of 128 × 128 per block of
 * 256 threads; a warp computes 32 rows of w and 64 of x. sm holds 2·IFL_PIPE tiles, aligned to 16. */
IFL_DEVICE void ifl_gemm(const uint16_t *w, const uint16_t *x, float *y, int m, int t, int ld, int64_t ldy, uint8_t *sm) {
  constexpr int TILE = IFL_TILE * IFL_DEPTH * 2;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, m0 = blockIdx.y * IFL_TILE, t0 = blockIdx.x * IFL_TILE;
  const int wm = warp % 4 * 32, wt = warp / 4 * 64, steps = ld / IFL_DEPTH;
  float f[2][8][4] = {};
  auto fetch = [&](int i) { /* always commits a group, so that the group count equals the stage count */
    uint8_t *to = sm + i % IFL_PIPE * 2 * TILE;
    if (i < steps) {
      ifl_fetch_tile(to, w, m0, m, ld, i * IFL_DEPTH);
      ifl_fetch_tile(to + TILE, x, t0, t, ld, i * IFL_DEPTH);
    }
    ifl_cp_async_commit();
  };
  for (int i = 0; i < IFL_PIPE - 1; i++)
    fetch(i);
  for (int i = 0; i < steps; i++) {
    ifl_cp_async_wait<IFL_PIPE - 2>();
    __syncthreads(); /* the stage is complete, and all threads have finished the previous one */
    fetch(i + IFL_PIPE - 1);
    const uint8_t *a = sm + i % IFL_PIPE * 2 * TILE, *b = a + TILE;
#pragma unroll
    for (int s = 0; s < IFL_DEPTH / 16; s++) {
      uint32_t af[2][4], bf[4][4];
#pragma unroll
      for (int j = 0; j < 2; j++)
        ifl_ldmatrix_x4(af[j], a + ifl_swizzled(wm + 16 * j + (lane & 15), 2 * s + (lane >> 4)));
#pragma unroll
      for (int j = 0; j < 4; j++)
        ifl_ldmatrix_x4(bf[j], b + ifl_swizzled(wt + 16 * j + (lane & 7) + (lane >> 4) * 8, 2 * s + (lane >> 3 & 1)));
#pragma unroll
      for (int j = 0; j < 2; j++)
#pragma unroll
        for (int n = 0; n < 8; n++) {
          const uint32_t v[2] = {bf[n / 2][n % 2 * 2], bf[n / 2][n % 2 * 2 + 1]};
          ifl_mma_m16n8k16_f16(f[j][n], af[j], v);
        }
    }
  }
#pragma unroll
  for (int j = 0; j < 2; j++)
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int row = m0 + wm + 16 * j + (lane >> 2) + (i >> 1) * 8, at = t0 + wt + 8 * n + (lane & 3) * 2 + (i & 1);
        if (row < m && at < t)
          y[(int64_t)at * ldy + row] = f[j][n][i];
      }
}
