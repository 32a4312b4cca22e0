/* Sparse outliers: entries of a matrix with a large quantization error. Their correction is added after the matmul.
 *
 * After the panels, at multiples of 64 bytes, follow the index of the first entry of each panel and the total number, u32
 * each, and then the entries, sorted by panel and column. Every output sums the products of its entries in the order of
 * columns, from zero, and then adds that sum. So results are bit-identical for any number of rows and panels per call.
 *
 * Entries multiply the packed activations, unpacked to floats: [K] for one row, [⌈rows/16⌉][K][16] for more rows. */
#pragma once
#include "ifl_kernel.h"
#include "ifl_vec.h"

typedef struct {
  uint16_t row, col; /* row in the panel */
  float value;
} ifl_sparse_outlier;

/* Unpacks row m of a packed tile of mt rows to floats with a stride. */
IFL_INLINE void ifl_unpack_a8_(const uint8_t *tile, float *x, int stride, int k, int mt, int m, const int block) {
  const int kp = (k + block - 1) / block * block;
  const float *scales = (const float *)(const void *)(tile + ifl_a8_scale_at(kp, mt));
  for (int c = 0; c < k; c++)
    x[(int64_t)c * stride] = scales[c / block * mt + m] * (float)((const int8_t *)tile)[4 * ((int64_t)(c / 4) * mt + m) + c % 4];
  const ifl_outliers *o = (const ifl_outliers *)(const void *)(tile + ifl_a8_outliers_at(kp, mt, block));
  for (const ifl_outlier *e = o->at + o->each * m, *end = e + o->each; e < end; e++)
    for (int j = 0, c = e->block * block + 4 * e->vector; j < 4 && c + j < k; j++) x[(int64_t)(c + j) * stride] += e->scale * (float)e->codes[j];
}

/* Unpacks row m of a tile of mt rows to the place of row t of `rows`. */
static __attribute__((noinline, unused)) void ifl_unpack_row(ifl_act_kind kind, const uint8_t *tile, float *x, int k, int mt, int m, int t, int rows) {
  const int stride = rows == 1 ? 1 : 16;
  if (rows > 1) x += (int64_t)(t / 16) * k * 16 + t % 16;
  if (kind == IFL_A8_B16) {
    ifl_unpack_a8_(tile, x, stride, k, mt, m, 16);
  } else if (kind == IFL_A8_B32) {
    ifl_unpack_a8_(tile, x, stride, k, mt, m, 32);
  } else if (kind == IFL_A8_B64) {
    ifl_unpack_a8_(tile, x, stride, k, mt, m, 64);
  } else if (kind == IFL_BF16) {
    const uint16_t *from = (const uint16_t *)(const void *)tile;
    for (int c = 0; c < k; c++) {
      const uint32_t bits = (uint32_t)from[((int64_t)(c / 2) * mt + m) * 2 + c % 2] << 16;
      memcpy(x + (int64_t)c * stride, &bits, 4);
    }
  } else {
    const float *from = (const float *)(const void *)tile;
    for (int c = 0; c < k; c++) x[(int64_t)c * stride] = from[(int64_t)c * mt + m];
  }
}

/* Adds the sparse outliers of `panels` panels from p0 on, of `all`, to a matmul's output y. */
static __attribute__((noinline, unused)) void ifl_add_sparse(const uint8_t *outliers, int all, int p0, int panels, const float *x, int k, int rows, float *y, int64_t ldy) {
  const uint32_t *starts = (const uint32_t *)(const void *)outliers;
  const ifl_sparse_outlier *entries = (const ifl_sparse_outlier *)(const void *)(outliers + ifl_round64(4 * ((int64_t)all + 1)));
  for (int p = 0; p < panels; p++, y += 16) {
    const ifl_sparse_outlier *from = entries + starts[p0 + p], *to = entries + starts[p0 + p + 1];
    if (from == to) continue;
    if (rows == 1) {
      float sum[16] = {0};
      for (const ifl_sparse_outlier *e = from; e < to; e++) sum[e->row] += e->value * x[e->col];
      for (int r = 0; r < 16; r++) y[r] += sum[r];
      continue;
    }
    for (int t = 0; t < rows; t += 16) {
      const float *at = x + (int64_t)t * k;
      ifl_v16 sum[16] = {0};
      for (const ifl_sparse_outlier *e = from; e < to; e++) sum[e->row] += ifl_set1(e->value) * ifl_load(at + e->col * 16);
      const int n = rows - t < 16 ? rows - t : 16;
      for (int r = 0; r < 16; r++)
        for (int m = 0; m < n; m++) y[(t + m) * ldy + r] += sum[r][m];
    }
  }
}
