/* Matmuls of very few rows (FlashDecoding++ §5, ImplA). A warp reads the weights of a panel of 16 rows once and multiplies
 * them with NT activation rows. The warps of a block divide its panels, and also K if there are fewer panels than warps. The
 * parts of K are added in order. */
#pragma once
#include "ifl_act.cuh"
#include "ifl_codes.cuh"

#define IFL_WARPS 8 /* warps per block of a matmul */

/* The activation rows of a thread block. */
struct ifl_rows_in {
  const uint8_t *at; /* of row 0 */
  int64_t stride;    /* bytes */
  int rows;          /* rows beyond the last repeat it */
  const int *index;  /* row numbers; NULL: consecutive rows */
  __device__ __forceinline__ const uint8_t *row(int t) const {
    const int i = t < rows ? t : rows - 1;
    return at + (index ? index[i] : i) * stride;
  }
};

/* The addresses of NT rows, computed once: the compiler would otherwise read the index for every weight. */
template <int NT> struct ifl_offsets {
  const uint8_t *at;
  uint32_t of[NT];
  __device__ __forceinline__ explicit ifl_offsets(const ifl_rows_in &x) : at(x.at) {
#pragma unroll
    for (int t = 0; t < NT; t++)
      of[t] = (uint32_t)(x.row(t) - x.at);
  }
  __device__ __forceinline__ const uint8_t *operator()(int t) const { return at + of[t]; }
};

/* The products of a row's O outliers with row r of a panel; the blocks' sums include their bases. */
template <class F, int O> IFL_DEVICE float ifl_outlier_sum(const uint8_t *panel, int k, int r, const uint8_t *x) {
  constexpr int FOURS = F::BLOCK / 4;
  const ifl_outlier *e = ifl_a8<F::BLOCK, O>::outliers(x, k);
  float sum = 0;
  for (int o = 0; o < O; o++) {
    const int v = e[o].group % FOURS, i = v / F::QUADS;
    const uint8_t *tile = panel + (int64_t)(e[o].group / FOURS) * F::STRIDE;
    uint32_t four = 0;
    F::decode(tile + 64 * F::VECTORS * i + r / 4 * 16, [&](int j, ifl_codes c) {
      if (j == v % F::QUADS)
        four = r % 4 == 0 ? c.x[0] : r % 4 == 1 ? c.x[1] : r % 4 == 2 ? c.x[2] : c.x[3];
    });
    const int acc = F::SIGNED ? __dp4a((int)(four ^ 0x80808080u), (int)e[o].codes, 0) : ifl_dp4a_us(four, (int)e[o].codes, 0);
    sum = fmaf((float)acc * ifl_half_bits(reinterpret_cast<const uint16_t *>(tile + F::CODES)[r]), e[o].scale, sum);
  }
  return sum;
}

/* Block types: a group of four threads, each with four rows, reads a unit of a few vectors that are decoded together.
 * Activations are packed as ifl_a8<F::BLOCK, O>. */
template <class F, int NT, int O> struct ifl_panel_block {
  static constexpr int ROWS = 4, GROUPS = 4; /* rows per thread; threads per unit */
  static __device__ __forceinline__ int64_t bytes(int k) { return (int64_t)ifl_blocks(k, F::BLOCK) * F::STRIDE; }
  static __device__ __forceinline__ float more(const uint8_t *panel, int k, int r, const uint8_t *x) {
    return ifl_outlier_sum<F, O>(panel, k, r, x);
  }
  static __device__ inline void sum(const uint8_t *w, int k, int part, int parts, const ifl_rows_in &x, float (&f)[NT][ROWS]) {
    const ifl_offsets<NT> row(x);
    const int lane = threadIdx.x & 31, q = lane & 3, total = ifl_blocks(k, F::BLOCK) * F::UNITS;
    const int64_t scale_at = ifl_a8_scale_at(k, F::BLOCK), sum_at = ifl_a8_sum_at(k, F::BLOCK);
    for (int u = part * 8 + (lane >> 2); u < total; u += parts * 8) {
      const int b = u / F::UNITS, i = u % F::UNITS;
      const uint8_t *tile = w + (int64_t)b * F::STRIDE;
      const uint2 s = *reinterpret_cast<const uint2 *>(tile + F::CODES + 8 * q);
      int acc[NT][4] = {};
      F::decode(tile + 64 * F::VECTORS * i + 16 * q, [&](int j, ifl_codes c) {
#pragma unroll
        for (int t = 0; t < NT; t++) {
          const int four = reinterpret_cast<const int *>(row(t))[b * (F::BLOCK / 4) + i * F::QUADS + j];
#pragma unroll
          for (int r = 0; r < 4; r++)
            acc[t][r] = F::SIGNED ? __dp4a((int)(c.x[r] ^ 0x80808080u), four, acc[t][r]) : ifl_dp4a_us(c.x[r], four, acc[t][r]);
        }
      });
      const float scale[4] = {ifl_half_bits(s.x & 0xffff), ifl_half_bits(s.x >> 16), ifl_half_bits(s.y & 0xffff),
                              ifl_half_bits(s.y >> 16)};
#pragma unroll
      for (int t = 0; t < NT; t++) {
        const float xs = reinterpret_cast<const float *>(row(t) + scale_at)[b];
#pragma unroll
        for (int r = 0; r < 4; r++)
          f[t][r] = fmaf((float)acc[t][r] * scale[r], xs, f[t][r]);
      }
      if (!F::SIGNED && i == 0) {
        const uint2 o = *reinterpret_cast<const uint2 *>(tile + F::CODES + 32 + 8 * q);
        const float base[4] = {ifl_half_bits(o.x & 0xffff), ifl_half_bits(o.x >> 16), ifl_half_bits(o.y & 0xffff),
                               ifl_half_bits(o.y >> 16)};
#pragma unroll
        for (int t = 0; t < NT; t++) {
          const float xm = reinterpret_cast<const float *>(row(t) + sum_at)[b];
#pragma unroll
          for (int r = 0; r < 4; r++)
            f[t][r] = fmaf(base[r], xm, f[t][r]);
        }
      }
    }
  }
};

/* Block types with f32 activations: weights are dequantized to floats. */
template <class F, int NT> struct ifl_panel_exact {
  static constexpr int ROWS = 4, GROUPS = 4;
  static __device__ __forceinline__ int64_t bytes(int k) { return (int64_t)ifl_blocks(k, F::BLOCK) * F::STRIDE; }
  static __device__ __forceinline__ float more(const uint8_t *, int, int, const uint8_t *) { return 0.0f; }
  static __device__ inline void sum(const uint8_t *w, int k, int part, int parts, const ifl_rows_in &x, float (&f)[NT][ROWS]) {
    const ifl_offsets<NT> row(x);
    const int lane = threadIdx.x & 31, q = lane & 3, total = ifl_blocks(k, F::BLOCK) * F::UNITS;
    for (int u = part * 8 + (lane >> 2); u < total; u += parts * 8) {
      const int b = u / F::UNITS, i = u % F::UNITS;
      const uint8_t *tile = w + (int64_t)b * F::STRIDE;
      const uint16_t *scales = reinterpret_cast<const uint16_t *>(tile + F::CODES) + 4 * q;
      float acc[NT][ROWS] = {}, all[NT] = {};
      F::decode(tile + 64 * F::VECTORS * i + 16 * q, [&](int j, ifl_codes c) {
        const int at = b * F::BLOCK + 4 * (i * F::QUADS + j);
#pragma unroll
        for (int t = 0; t < NT; t++)
#pragma unroll
          for (int e = 0; e < 4; e++) {
            const float a = at + e < k ? reinterpret_cast<const float *>(row(t))[at + e] : 0.0f;
            all[t] += a;
#pragma unroll
            for (int r = 0; r < ROWS; r++)
              acc[t][r] = fmaf((float)((int)(c.x[r] >> (8 * e) & 255) - (F::SIGNED ? 128 : 0)), a, acc[t][r]);
          }
      });
#pragma unroll
      for (int r = 0; r < ROWS; r++) {
        const float scale = ifl_half_bits(scales[r]), base = F::SIGNED ? 0.0f : ifl_half_bits(scales[16 + r]);
#pragma unroll
        for (int t = 0; t < NT; t++)
          f[t][r] = fmaf(base, all[t], fmaf(scale, acc[t][r], f[t][r]));
      }
    }
  }
};

/* Unquantized types: 16 bytes are 8 rows at one k (f32: 4). */
struct ifl_element_f32 {
  typedef float element;
  static __device__ __forceinline__ float get(float x) { return x; }
};
struct ifl_element_f16 {
  typedef uint16_t element;
  static __device__ __forceinline__ float get(uint16_t x) { return ifl_half_bits(x); }
};
struct ifl_element_bf16 {
  typedef uint16_t element;
  static __device__ __forceinline__ float get(uint16_t x) { return ifl_bf16_bits(x); }
};
template <class E, int NT> struct ifl_panel_float {
  static constexpr int ROWS = 16 / sizeof(typename E::element), GROUPS = 16 / ROWS;
  static __device__ __forceinline__ int64_t bytes(int k) { return (int64_t)k * 16 * sizeof(typename E::element); }
  static __device__ __forceinline__ float more(const uint8_t *, int, int, const uint8_t *) { return 0.0f; }
  static __device__ inline void sum(const uint8_t *w, int k, int part, int parts, const ifl_rows_in &x, float (&f)[NT][ROWS]) {
    const ifl_offsets<NT> row(x);
    constexpr int COLS = 32 / GROUPS; /* columns that a warp reads per load */
    const int lane = threadIdx.x & 31, q = lane % GROUPS;
#pragma unroll 4
    for (int i = part * COLS + lane / GROUPS; i < k; i += parts * COLS) {
      const uint4 v = ifl_load_stream(w + ((int64_t)i * 16 + q * ROWS) * sizeof(typename E::element));
      const typename E::element *e = reinterpret_cast<const typename E::element *>(&v);
#pragma unroll
      for (int t = 0; t < NT; t++) {
        const float a = reinterpret_cast<const float *>(row(t))[i];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
          f[t][r] = fmaf(E::get(e[r]), a, f[t][r]);
      }
    }
  }
};

/* y = the sum of each product's parts, in order, plus P's outliers. Ends with a block barrier. */
template <class P, int NT>
IFL_DEVICE void ifl_add_parts(const uint8_t *w, int k, int panels, int parts, const ifl_rows_in &x, const float *red, float *y,
                              int ldy) {
  for (int i = threadIdx.x; i < x.rows * panels * 16; i += 32 * IFL_WARPS) {
    const int t = i / (panels * 16), n = i % (panels * 16);
    float sum = 0;
    for (int j = 0; j < parts; j++)
      sum += red[((n / 16 * parts + j) * NT + t) * 16 + n % 16];
    y[t * ldy + n] = sum + P::more(w + n / 16 * P::bytes(k), k, n % 16, x.row(t));
  }
  __syncthreads();
}

/* y[t·ldy + 16·p + r] = panel p of w times row t, for `panels` panels and x.rows ≤ NT rows, by all warps of the block; red
 * holds IFL_WARPS·max(panels/IFL_WARPS, 1)·NT·16 floats. Ends with a block barrier. */
template <class P, int NT>
IFL_DEVICE void ifl_gemv(const uint8_t *w, int k, int panels, const ifl_rows_in &x, float *red, float *y, int ldy) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int parts = panels < IFL_WARPS ? IFL_WARPS / panels : 1;
  for (int item = warp; item < panels * parts; item += IFL_WARPS) {
    float f[NT][P::ROWS] = {};
    P::sum(w + item / parts * P::bytes(k), k, item % parts, parts, x, f);
#pragma unroll
    for (int t = 0; t < NT; t++)
#pragma unroll
      for (int r = 0; r < P::ROWS; r++)
        for (int o = 16; o >= P::GROUPS; o >>= 1)
          f[t][r] += __shfl_xor_sync(0xffffffffu, f[t][r], o);
    if (lane < P::GROUPS)
      for (int t = 0; t < NT; t++)
        for (int r = 0; r < P::ROWS; r++)
          red[(item * NT + t) * 16 + lane * P::ROWS + r] = f[t][r];
  }
  __syncthreads();
  ifl_add_parts<P, NT>(w, k, panels, parts, x, red, y, ldy);
}
