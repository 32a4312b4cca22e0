/* Matmuls of very few rows (FlashDecoding++ §5, ImplA). A warp reads the weights of a panel of 16 rows once and multiplies
 * them with NT activation rows. The warps of a block divide its panels, and also K if there are fewer panels than warps. The
 * parts of K are added in order. If the matrix has too few panels for the GPU, gridDim.z blocks divide K as well. */
#pragma once
#include "ifl_panel.cuh"

#define IFL_WARPS 8 /* warps per block of a matmul */

/* y = the sum of each product's parts, in order. Ends with a block barrier. */
template <int NT> IFL_DEVICE void ifl_add_parts(int rows, int panels, int parts, const float *red, float *y, int ldy) {
  for (int i = threadIdx.x; i < rows * panels * 16; i += 32 * IFL_WARPS) {
    const int t = i / (panels * 16), n = i % (panels * 16);
    float sum = 0;
    for (int j = 0; j < parts; j++)
      sum += red[((n / 16 * parts + j) * NT + t) * 16 + n % 16];
    y[t * ldy + n] = sum;
  }
  __syncthreads();
}

/* Adds the tiles of the gridDim.z blocks that share rows and columns, in order. The block that arrives last gets the sum
 * and true; the others are done. flag is a word of shared memory. */
IFL_DEVICE bool ifl_join(float *partial, unsigned *arrived, float *tile, int floats, int *flag) {
  if (gridDim.z == 1)
    return true;
  const int at = blockIdx.y * gridDim.x + blockIdx.x;
  float *parts = partial + (int64_t)at * gridDim.z * floats;
  for (int i = threadIdx.x; i < floats; i += 32 * IFL_WARPS)
    parts[blockIdx.z * floats + i] = tile[i];
  if (!ifl_last_block(arrived + at, gridDim.z, flag))
    return false;
  for (int i = threadIdx.x; i < floats; i += 32 * IFL_WARPS) {
    float sum = 0;
    for (int z = 0; z < (int)gridDim.z; z++)
      sum += __ldcg(parts + z * floats + i);
    tile[i] = sum;
  }
  __syncthreads();
  return true;
}

/* Adds what the sums of the packed codes leave out: the rows' outliers. Ends with a block barrier. */
template <class P, class M> IFL_DEVICE void ifl_add_more(const M &product, const ifl_rows_in &x, float *y, int ldy) {
  if constexpr (P::MORE) {
    const int columns = product.panels * 16;
    for (int i = threadIdx.x; i < x.rows * columns; i += 32 * IFL_WARPS) {
      const int t = i / columns, n = i % columns;
      y[t * ldy + n] += P::more(product.panel(n / 16), product.k, n % 16, x.row(t));
    }
    __syncthreads();
  }
}

/* `panels` panels of k columns: those at w, or `half` at w and the others at `other`. */
template <class P> struct ifl_matrix {
  const uint8_t *w, *other;
  int k, panels, half;
  __device__ __forceinline__ const uint8_t *panel(int p) const {
    return half == 0 || p < half ? w + p * P::bytes(k) : other + (p - half) * P::bytes(k);
  }
};

/* The product of a matrix with up to NT rows by all warps of a block. The constructor starts to load weights; what run() reads
 * need not be there yet. */
template <class P, int NT> struct ifl_gemv : ifl_matrix<P> {
  using ifl_matrix<P>::k;
  using ifl_matrix<P>::panels;
  int parts; /* of K per panel within the block */
  typename P::stream stream;

  __device__ __forceinline__ ifl_gemv(const uint8_t *w_, int k_, int panels_, const uint8_t *other_ = NULL, int half_ = 0)
      : ifl_matrix<P>{w_, other_, k_, panels_, half_} {
    parts = panels < IFL_WARPS ? IFL_WARPS / panels : 1;
    open(threadIdx.x >> 5);
  }
  __device__ __forceinline__ void open(int item) {
    if (item < panels * parts)
      stream.open(this->panel(item / parts), k, {(int)blockIdx.z * parts + item % parts, (int)gridDim.z * parts});
  }

  /* y[t·ldy + 16·p + r] = panel p times row t, or this block's part of it; red holds
   * IFL_WARPS·max(panels/IFL_WARPS, 1)·NT·16 floats. Ends with a block barrier. */
  __device__ __forceinline__ void run(const ifl_rows_in &x, float *red, float *y, int ldy) {
    const int lane = threadIdx.x & 31, first = threadIdx.x >> 5;
    for (int item = first; item < panels * parts; item += IFL_WARPS) {
      float f[NT][P::ROWS] = {};
      if (item > first)
        open(item);
      P::sum(stream, k, x, f);
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
    ifl_add_parts<NT>(x.rows, panels, parts, red, y, ldy);
  }
};
