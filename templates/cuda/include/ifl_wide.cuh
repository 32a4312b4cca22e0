/* The activations of matmuls of many rows as f16, in the two layouts that they read, and the weights unpacked for cuBLASLt. */
#pragma once
#include "ifl_gemv.cuh"

IFL_DEVICE uint32_t ifl_half_pair(float a, float b) {
  return ifl_bits16(__float2half_rn(a)) | (uint32_t)ifl_bits16(__float2half_rn(b)) << 16;
}

/* Rows of ld numbers one after another, for cuBLASLt. */
struct ifl_plain_rows {
  uint16_t *row;
  __device__ __forceinline__ ifl_plain_rows(uint16_t *wide, int t, int, int ld) : row(wide + (int64_t)t * ld) {}
  __device__ __forceinline__ uint16_t *operator()(int k) const { return row + k; }
};

/* The number of a tiled layout's rows: a whole number of the widest tiles. */
IFL_DEVICE int64_t ifl_tiled_rows(int rows) { return (rows + 255) & ~255; }

/* Tiles for gemm and wgmma: [64 columns][rows rounded up to 256][64 columns], so that the tile of any rows is contiguous. The
 * eight 16-byte pieces of a row are swizzled by row, as wgmma's 128-byte swizzle does; ldmatrix then has no bank conflicts.
 *
 * Columns are in the order in which a thread of a warp decodes weights. Q code vectors of four columns are decoded together;
 * thread t of a group of four decodes the group 4·s + t. Its vector j becomes the columns 2t, 2t+1, 2t+8, 2t+9 of a
 * fragment, which is number Q·s + j of its 16·Q columns. Q = 0: columns are in their own order. */
template <int Q> struct ifl_tiled_rows_of {
  uint16_t *row;
  int64_t chunk;
  int turn;
  __device__ __forceinline__ ifl_tiled_rows_of(uint16_t *wide, int t, int rows, int)
      : row(wide + (int64_t)t * 64), chunk(ifl_tiled_rows(rows) * 64), turn(t & 7) {}
  __device__ __forceinline__ uint16_t *operator()(int k) const { /* k is even */
    int at = k;
    if constexpr (Q > 0) {
      const int four = k / 4, s = four / Q / 4, t = four / Q % 4, j = four % Q;
      at = 16 * (Q * s + j) + 2 * t + 4 * (k & 2);
    }
    return row + at / 64 * chunk + ((at / 8 % 8 ^ turn) * 8 + at % 8);
  }
};

/* Converts a row of k numbers, packed as A, to f16 with zeros up to ld, which is even. The row is scaled by a power of two
 * that moves its largest number to 2^13 … 2^14, within the range of f16. The results must be multiplied by factor. to(i) is
 * the address of columns i and i + 1. */
template <class A, class R> IFL_DEVICE void ifl_widen(const ifl_block &g, const uint8_t *row, int k, const R &to, int ld, float *factor) {
  auto at = [&](int i) { return i < k ? A::value(row, k, i) : 0.0f; };
  float top = 0;
  for (int i = g.lane; i < k; i += g.lanes)
    top = fmaxf(top, fabsf(at(i)));
  top = ifl_max_over(g, top);
  const int exponent = ifl_min_int(ifl_max_int((int)(__float_as_uint(top) >> 23), 27), 253); /* 127 + the exponent of top */
  const float up = __uint_as_float((uint32_t)(267 - exponent) << 23), down = __uint_as_float((uint32_t)(exponent - 13) << 23);
  for (int i = 2 * g.lane; i < ld; i += 2 * g.lanes)
    *reinterpret_cast<uint32_t *>(to(i)) = ifl_half_pair(at(i) * up, at(i + 1) * up);
  if (g.lane == 0)
    *factor = down;
}

/* Unpacks a panel of 16 rows of k weights with all blocks of a grid column to to[row · ld + column], with zeros up to ld,
 * a multiple of 64. Offsets are 32-bit, because with 64 bits the 2-bit variant spills a register. */
template <class F> struct ifl_unpack_block : ifl_block_panel<F> {
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
      const typename F::scales s = *reinterpret_cast<const typename F::scales *>(tile + F::CODES + 4 * F::SCALE * q);
      const uint2 o = F::SIGNED ? make_uint2(0, 0) : *reinterpret_cast<const uint2 *>(tile + F::CODES + 32 + 8 * q);
      float scale[4], base[4];
      ifl_unpack_scales<F>(s, scale), ifl_unpack_halves(o, base);
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
