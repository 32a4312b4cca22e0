/* Sparse outliers of a matrix (see ifl_sparse.h of the CPU target). After the panels, at multiples of 64 bytes, follow the
 * index of the first entry of each panel and the total number, u32 each, and then the entries, sorted by panel. They
 * multiply the packed activations. */
#pragma once
#include "ifl_gemv.cuh"

struct ifl_sparse_outlier {
  uint16_t row, col; /* row in the panel */
  float value;
};

/* Adds the sparse outliers of `panels` panels from p0 on, of `all`, to a matmul's output y; A is the packing of the rows. A warp
 * computes a panel and a row: its threads divide the entries, and sums are added in the order of threads. Ends with a block
 * barrier. */
template <class A> IFL_DEVICE void ifl_add_sparse(const uint8_t *outliers, int all, int p0, int panels, const ifl_rows_in &x, int k, float *y, int ldy) {
  const uint32_t *starts = reinterpret_cast<const uint32_t *>(outliers);
  const ifl_sparse_outlier *entries = reinterpret_cast<const ifl_sparse_outlier *>(outliers + ifl_round64(4 * ((int64_t)all + 1)));
  const int lane = threadIdx.x & 31;
  for (int item = threadIdx.x >> 5; item < panels * x.rows; item += IFL_WARPS) {
    const int p = item % panels, t = item / panels;
    const uint8_t *row = x.row(t);
    const uint32_t last = starts[p0 + p + 1];
    float sum[16] = {};
    for (uint32_t i = starts[p0 + p] + lane; i < last; i += 32) {
      const ifl_sparse_outlier e = entries[i];
      const float product = e.value * A::value(row, k, e.col);
#pragma unroll
      for (int r = 0; r < 16; r++)
        sum[r] += e.row == r ? product : 0.0f;
    }
    float mine = 0;
#pragma unroll
    for (int r = 0; r < 16; r++) {
      const float s = ifl_warp_sum(sum[r]);
      if (lane == r)
        mine = s;
    }
    if (lane < 16)
      y[t * ldy + 16 * p + lane] += mine;
  }
  __syncthreads();
}
