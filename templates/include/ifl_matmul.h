/* The parts of a matmul region that do not depend on the model: kernel selection, packing of activations, division of the
 * columns among threads, and calibration. Included by ifl_region.h. */
#pragma once
#include "ifl_vec.h"

/* The packing of a matmul's rows. Few rows are packed by every thread for itself, which needs no barrier. Otherwise each
 * thread packs some tiles for all threads. */
typedef struct {
  ifl_mm run;
  uint8_t *act;
  int rows, tile;        /* rows of the matmul; of a tile */
  int first, tiles, step; /* this thread packs tiles first, first + step, … below tiles */
  int pack_private;
} ifl_packing;

/* Selects the kernel from the dispatch table, by matmul and number of rows. */
static inline ifl_packing ifl_packing_of(const ifl_ctx *c, int tid, const ifl_impl *impls, int call, int rows) {
  const ifl_impl *impl = impls + c->dispatch[call * IFL_ROWS + (rows < IFL_ROWS ? rows : IFL_ROWS - 1)];
  const int pack_private = rows <= IFL_PRIVATE_ROWS;
  return (ifl_packing){
    .run = impl->run, .act = pack_private ? c->own[tid].act : c->act, .rows = rows, .tile = impl->tile,
    .first = pack_private ? 0 : tid, .tiles = (rows + impl->tile - 1) / impl->tile, .step = pack_private ? 1 : c->threads,
    .pack_private = pack_private,
  };
}

/* Rows of tile i. */
static inline int ifl_tile_rows(const ifl_packing *p, int i) { return ifl_min_int(p->tile, p->rows - i * p->tile); }

/* Ends packing: afterwards all rows are packed. */
static inline void ifl_packed(const ifl_ctx *c, const ifl_packing *p) {
  if (!p->pack_private) ifl_barrier(c->pool);
}

/* The column groups of a matmul that a thread computes, a few at a time. */
static inline ifl_columns ifl_columns_of_thread(const ifl_ctx *c, int tid, int rows, int groups, int group) {
  const int most = IFL_CALL / (ifl_max_int(rows, 1) * group);
  return ifl_columns_of(groups, tid, c->threads, most < 1 ? 1 : most, c->own[tid].claimed);
}

#ifdef IFL_CALIB_SUMS
static __attribute__((noinline, unused)) void ifl_add_squares(double *sums, const float *x, int k) {
  for (int i = 0; i < k; i++) sums[i] += (double)x[i] * (double)x[i];
  sums[k]++;
}

/* Calibration: adds a row's squares to the column sums at `at` and increments the row count after them. Rows that every
 * thread packs are counted by one thread only. */
static inline __attribute__((unused)) void ifl_calib_squares(const ifl_ctx *c, const ifl_packing *p, int tid, int64_t at, const float *x, int k) {
  if (c->calib && (!p->pack_private || tid == 0)) ifl_add_squares(c->calib + tid * IFL_CALIB_SUMS + at, x, k);
}
#endif

#ifdef IFL_CALIB_HESSIANS
/* The same, and copies row t for ifl_calib_products. */
static inline __attribute__((unused)) void ifl_calib_row(const ifl_ctx *c, const ifl_packing *p, int tid, int64_t at, int t, const float *x, int k) {
  ifl_calib_squares(c, p, tid, at, x, k);
  if (c->hessians && !p->pack_private) memcpy(c->calib_rows + (int64_t)t * IFL_CALIB_ROW, x, (size_t)k * sizeof(float));
}

/* Adds the Hessian XᵀX of the rows for columns i ≤ j of each diagonal block of `width` columns, a multiple of 64. Each
 * thread computes some i. */
static __attribute__((noinline, unused)) void ifl_add_products(float *to, const float *x, int rows, int k, int width, int tid, int threads) {
  for (int c = 0; c < k; c += width, to += (int64_t)width * width, x += width)
    for (int i = tid; i < width && c + i < k; i += threads)
      for (int j = i & ~63; j < width && c + j < k; j += 64) {
        float *at = to + (int64_t)i * width + j;
        ifl_v16 s0 = ifl_load(at), s1 = ifl_load(at + 16), s2 = ifl_load(at + 32), s3 = ifl_load(at + 48);
        const float *row = x;
        for (int t = 0; t < rows; t++, row += IFL_CALIB_ROW) {
          const ifl_v16 a = ifl_set1(row[i]);
          s0 = ifl_fma(a, ifl_load(row + j), s0), s1 = ifl_fma(a, ifl_load(row + j + 16), s1);
          s2 = ifl_fma(a, ifl_load(row + j + 32), s2), s3 = ifl_fma(a, ifl_load(row + j + 48), s3);
        }
        ifl_store(at, s0), ifl_store(at + 16, s1), ifl_store(at + 32, s2), ifl_store(at + 48, s3);
      }
}

/* Calibration: adds the Hessian of the packed rows to the blocks at `at`. Steps with few rows are skipped. */
static inline __attribute__((unused)) void ifl_calib_products(const ifl_ctx *c, const ifl_packing *p, int tid, int64_t at, int k, int width) {
  if (c->hessians && !p->pack_private) ifl_add_products(c->hessians + at, c->calib_rows, p->rows, k, width, tid, c->threads);
}
#endif
