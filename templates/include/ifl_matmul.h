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

#ifdef IFL_LORA_PARTS
#include "ifl_lora.h"
#endif

#ifdef IFL_CALIB_SUMS
/* Calibration gives the same bits for any number of threads: each column's sum belongs to one thread, which adds the rows in
 * their order. */

/* Adds the squares of rows by column, for this thread's part of the k columns, and counts the rows in sums[k]. */
static __attribute__((noinline, unused)) void ifl_add_squares(double *sums, const float *x, int rows, int pitch, int k, int tid, int threads) {
  const int from = (int)((int64_t)k * tid / threads), to = (int)((int64_t)k * (tid + 1) / threads);
  for (int t = 0; t < rows; t++, x += pitch)
    for (int i = from; i < to; i++) sums[i] += (double)x[i] * (double)x[i];
  if (tid == 0) sums[k] += rows;
}

/* Adds a row of a step of few rows, which every thread packs, to the sums at `at`; copies row r of another step for
 * ifl_calib_rows, padded with zeros to `pitch` columns. */
static inline __attribute__((unused)) void ifl_calib_row(const ifl_ctx *c, const ifl_packing *p, int tid, int64_t at, int r, const float *x, int k, int pitch) {
  if (!c->calib) return;
  if (p->pack_private) {
    ifl_add_squares(c->calib + tid * IFL_CALIB_SUMS + at, x, 1, 0, k, tid, c->threads);
    return;
  }
  float *to = c->calib_rows + (int64_t)r * pitch;
  memcpy(to, x, (size_t)k * sizeof(float));
  memset(to + k, 0, (size_t)(pitch - k) * sizeof(float));
}

/* Adds the Hessian XᵀX of the rows: for each diagonal block of `width` columns, the tiles of 64·64 on and above the diagonal,
 * row by row. Each thread computes some rows of the tiles. 64 rows of x at a time, whose 64 columns fit into L1. */
static __attribute__((noinline, unused)) void ifl_add_products(float *to, const float *x, int rows, int pitch, int width, int tid, int threads) {
  for (int c = 0; c < pitch; c += width, x += width)
    for (int a = 0; a < width; a += 64)
      for (int b = a; b < width; b += 64, to += 64 * 64)
        for (int first = 0; first < rows; first += 64)
          for (int i = tid; i < 64; i += threads) {
            float *at = to + i * 64;
            ifl_v16 s0 = ifl_load(at), s1 = ifl_load(at + 16), s2 = ifl_load(at + 32), s3 = ifl_load(at + 48);
            const float *row = x + (int64_t)first * pitch;
            for (int t = first; t < rows && t < first + 64; t++, row += pitch) {
              const ifl_v16 f = ifl_set1(row[a + i]);
              s0 = ifl_fma(f, ifl_load(row + b), s0), s1 = ifl_fma(f, ifl_load(row + b + 16), s1);
              s2 = ifl_fma(f, ifl_load(row + b + 32), s2), s3 = ifl_fma(f, ifl_load(row + b + 48), s3);
            }
            ifl_store(at, s0), ifl_store(at + 16, s1), ifl_store(at + 32, s2), ifl_store(at + 48, s3);
          }
}

/* Calibration: adds the packed rows to the sums and the Hessian at these places. Hessians skip steps of few rows. */
static inline __attribute__((unused)) void ifl_calib_rows(const ifl_ctx *c, const ifl_packing *p, int tid, int64_t sums, int k, int64_t hessian, int pitch, int width) {
  if (!c->calib || p->pack_private) return;
  ifl_add_squares(c->calib + tid * IFL_CALIB_SUMS + sums, c->calib_rows, p->rows, pitch, k, tid, c->threads);
  if (c->hessians) ifl_add_products(c->hessians + hessian, c->calib_rows, p->rows, pitch, width, tid, c->threads);
}
#endif
