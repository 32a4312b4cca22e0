/* Fixed-size states in cells: what the ops on them share, and short convolutions, token shift and RG-LRU.
 *
 * A cell belongs to rows 16·i … 16·i+15 of a sequence (ifl_step.h). It holds, for each element of each of the states,
 *   start  the state before the first of these rows. It is zero, and not read, in a sequence's first cell
 *   rows   [16] what each row contributes to the start of the next cell
 * Rows that are computed again are written again, and start follows from the cell before. Each op defines both so that a row's
 * result depends only on start and on the rows up to it, in a fixed order: not on the batch, the chunks of a prompt or rejected
 * drafts. Every thread of the pool calls an op, which divides the work by columns or heads. */
#pragma once
#include "ifl_kernel.h"
#include "ifl_vec.h"
#include <string.h>

/* One element of a state: cell i begins at base + i·(start + 16·row), in floats. */
typedef struct {
  const ifl_step *step;
  int tid, threads;
  float *base;
  int64_t start, row;
} ifl_cells;

/* The id of the cell with row r of a sequence; −1: it is not kept. */
static inline int32_t ifl_cell_of(const ifl_step *s, int seq, int r) { return s->cell[s->cell_at[seq] + r / IFL_CELL_ROWS - s->cell_from[seq]]; }
static inline float *ifl_cell_start(const ifl_cells *c, int32_t id) { return c->base + id * (c->start + IFL_CELL_ROWS * c->row); }
static inline float *ifl_cell_row(const ifl_cells *c, int32_t id, int r) { return ifl_cell_start(c, id) + c->start + r % IFL_CELL_ROWS * c->row; }

/* The token before token t of a tree, on its path; −1: the sequence's last row of an earlier step. */
static inline int ifl_cells_parent(const ifl_step *s, int seq, int t) {
  const int first = s->first[seq];
  const uint64_t *words = s->mask + (int64_t)t * s->mask_words;
  for (int i = t - 1; i >= first; i--)
    if (words[(i - first) / 64] >> ((i - first) % 64) & 1) return i;
  return -1;
}

/* The columns lo … hi−1 of a thread, in whole vectors. */
static inline void ifl_cells_share(const ifl_cells *c, int cols, int *lo, int *hi) {
  const int64_t vectors = (cols + 15) / 16;
  *lo = (int)(16 * (vectors * c->tid / c->threads));
  *hi = (int)(16 * (vectors * (c->tid + 1) / c->threads));
  if (*hi > cols) *hi = cols;
}

/* Short convolution: out[t] = Σ_j w[j]·x[t − taps + 1 + j] + bias, j ascending. start: the taps − 1 rows before the cell's,
 * [taps − 1][pitch]; rows: x. Token shift: taps is 2, w is NULL, and out[t] = x[t − 1]. */
typedef struct {
  ifl_cells cells;
  const float *x; int64_t ldx; /* [T][cols] */
  float *out; int64_t ldo;     /* [T][cols] */
  const float *w; int64_t ldw; /* [taps][cols] */
  const float *bias;           /* [cols], or NULL */
  int cols, taps, silu;        /* silu: out is silu of the above */
} ifl_conv;

/* x of row r of a sequence without a tree; NULL: it is zero. */
static inline const float *ifl_conv_line(const ifl_conv *a, int seq, int r) {
  const ifl_step *s = a->cells.step;
  const int first = s->cell_from[seq] * IFL_CELL_ROWS;
  if (r < 0) return NULL;
  if (r >= s->past[seq]) return a->x + (s->first[seq] + r - s->past[seq]) * a->ldx;
  if (r >= first) return ifl_cell_row(&a->cells, ifl_cell_of(s, seq, r), r);
  return ifl_cell_start(&a->cells, ifl_cell_of(s, seq, first)) + (r - first + a->taps - 1) * a->cells.row;
}

/* x of the row `back` rows before that of token t. */
static inline const float *ifl_conv_at(const ifl_conv *a, int seq, int t, int back, int tree) {
  const ifl_step *s = a->cells.step;
  if (!tree) return ifl_conv_line(a, seq, s->past[seq] + t - s->first[seq] - back);
  for (; back > 0 && t >= 0; back--) t = ifl_cells_parent(s, seq, t);
  if (t >= 0) return a->x + t * a->ldx;
  return ifl_conv_line(a, seq, s->past[seq] - 1 - back);
}

/* Writes the rows of a sequence, and the rows before each cell after the first that is kept, for columns lo … hi−1. In a tree,
 * those before a cell within it depend on the path, and are written when it is accepted. */
static void ifl_conv_keep(const ifl_conv *a, int seq, int lo, int hi) {
  const ifl_step *s = a->cells.step;
  const int past = s->past[seq], n = s->first[seq + 1] - s->first[seq];
  const size_t bytes = (size_t)(hi - lo) * 4;
  const int last = ifl_tree(s, seq) ? past : past + n - 1;
  for (int r = (s->cell_from[seq] + 1) * IFL_CELL_ROWS; r <= last; r += IFL_CELL_ROWS) {
    const int32_t id = ifl_cell_of(s, seq, r);
    if (id < 0) continue;
    for (int j = 1; j < a->taps; j++) {
      const float *x = ifl_conv_line(a, seq, r - a->taps + j);
      float *to = ifl_cell_start(&a->cells, id) + (j - 1) * a->cells.row;
      if (x) memcpy(to + lo, x + lo, bytes);
      else memset(to + lo, 0, bytes);
    }
  }
  for (int i = 0; i < n; i++) {
    const int32_t id = ifl_cell_of(s, seq, past + i);
    if (id >= 0) memcpy(ifl_cell_row(&a->cells, id, past + i) + lo, a->x + (s->first[seq] + i) * a->ldx + lo, bytes);
  }
}

static __attribute__((unused)) void ifl_run_conv(const ifl_conv *a) {
  const ifl_step *s = a->cells.step;
  int lo, hi;
  ifl_cells_share(&a->cells, a->cols, &lo, &hi);
  for (int q = 0; q < s->seqs && lo < hi; q++) {
    const int tree = ifl_tree(s, q);
    if (s->first[q + 1] == s->first[q]) continue;
    for (int t = s->first[q]; t < s->first[q + 1]; t++) {
      const float *x[16];
      for (int j = 0; j < a->taps; j++) x[j] = ifl_conv_at(a, q, t, a->taps - 1 - j, tree);
      for (int d = lo; d < hi; d += 16) {
        const int n = hi - d < 16 ? hi - d : 16;
        ifl_v16 y = a->bias ? ifl_load_n(a->bias + d, n) : ifl_set1(0);
        if (!a->w) y = x[0] ? ifl_load_n(x[0] + d, n) : y;
        for (int j = 0; a->w && j < a->taps; j++)
          if (x[j]) y = ifl_fma(ifl_load_n(a->w + j * a->ldw + d, n), ifl_load_n(x[j] + d, n), y);
        if (a->silu) y = y / (1.0f + ifl_exp(-y));
        ifl_store_n(a->out + t * a->ldo + d, y, n);
      }
    }
    ifl_conv_keep(a, q, lo, hi);
  }
}

/* RG-LRU: out = h = exp(log_a)·h + √(1 − exp(2·log_a))·x, and h = x at a sequence's first row. rows: h; there is no start, because a
 * cell with the row before is always at hand. */
typedef struct {
  ifl_cells cells;
  const float *x; int64_t ldx;
  const float *log_a; int64_t lda;
  float *out; int64_t ldo;
  int cols;
} ifl_lru;

/* 1 − exp(2x) for x ≤ 0, without cancellation near 0. */
IFL_INLINE ifl_v16 ifl_lru_rest(ifl_v16 x) {
  const ifl_v16 y = x + x;
  const ifl_v16 small = -y * (1.0f + y * (0.5f + y * (0.16666667f + y * (0.041666668f + y * 0.008333334f))));
  return ifl_select(ifl_less(ifl_set1(-0.25f), y), small, 1.0f - ifl_exp(y));
}

static __attribute__((unused)) void ifl_run_lru(const ifl_lru *a) {
  const ifl_step *s = a->cells.step;
  int lo, hi;
  ifl_cells_share(&a->cells, a->cols, &lo, &hi);
  for (int q = 0; q < s->seqs && lo < hi; q++) {
    const int tree = ifl_tree(s, q), past = s->past[q], first = s->first[q];
    const float *held = past > 0 ? ifl_cell_row(&a->cells, ifl_cell_of(s, q, past - 1), past - 1) : NULL; /* h of the last row of earlier steps */
    for (int t = first; t < s->first[q + 1]; t++) {
      const int parent = tree ? ifl_cells_parent(s, q, t) : t > first ? t - 1 : -1, r = past + t - first;
      const float *before = parent >= 0 ? a->out + parent * a->ldo : held;
      const int32_t id = ifl_cell_of(s, q, r);
      for (int d = lo; d < hi; d += 16) {
        const int n = hi - d < 16 ? hi - d : 16;
        const ifl_v16 x = ifl_load_n(a->x + t * a->ldx + d, n), log = ifl_load_n(a->log_a + t * a->lda + d, n);
        ifl_v16 h = x;
        if (before) h = ifl_fma(ifl_exp(log), ifl_load_n(before + d, n), ifl_sqrt(ifl_lru_rest(log)) * x);
        ifl_store_n(a->out + t * a->ldo + d, h, n);
        if (id >= 0) ifl_store_n(ifl_cell_row(&a->cells, id, r) + d, h, n);
      }
    }
  }
}
