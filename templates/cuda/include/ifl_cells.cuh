/* Fixed-size states in cells, as on the CPU (ifl_cells.h): cells have the same contents in the same order, and this header has
 * what the ops on them share, short convolutions, token shift and RG-LRU. A grid depends on the numbers of tokens and sequences
 * alone, so one CUDA graph serves every position. No block reads what another one writes in the same launch: rows of this step
 * are read from the op's arguments, and the start of a cell only if the step does not write it. Every sum has one order,
 * whatever the batch and the chunks of a prompt are. */
#pragma once
#include "ifl_device.cuh"

/* One element of a state: cell i begins at base + i·(start + 16·row), in floats. */
struct ifl_cells {
  const ifl_step *step;
  float *base;
  int64_t start, row;
};

/* The ids of a sequence's cells: entry i for rows 16·i … 16·i+15; −1: the cell is not kept. */
IFL_DEVICE const int32_t *ifl_cells_of(const ifl_step *s, int seq) { return s->cell + (s->cell_at[seq] - s->cell_from[seq]); }
IFL_DEVICE int ifl_cell_of(const ifl_step *s, int seq, int r) { return ifl_cells_of(s, seq)[r / IFL_CELL_ROWS]; }
IFL_DEVICE float *ifl_cell_start(const ifl_cells &c, int id) { return c.base + id * (c.start + IFL_CELL_ROWS * c.row); }
IFL_DEVICE float *ifl_cell_row(const ifl_cells &c, int id, int r) {
  return ifl_cell_start(c, id) + c.start + r % IFL_CELL_ROWS * c.row;
}

/* Reports whether token t of a tree sees the sequence's i-th token of the step. */
IFL_DEVICE bool ifl_cells_sees(const ifl_step *s, int t, int i) {
  return s->mask[(int64_t)t * s->mask_words + i / 64] >> (i % 64) & 1;
}

/* The token before token t of a tree, on its path; −1: the sequence's last row of an earlier step. */
IFL_DEVICE int ifl_cells_parent(const ifl_step *s, int seq, int t) {
  const int first = s->first[seq];
  for (int i = t - 1; i >= first; i--)
    if (ifl_cells_sees(s, t, i - first))
      return i;
  return -1;
}

/* Short convolution: out[t] = Σ_j w[j]·x[t − taps + 1 + j] + bias, j ascending. start: the taps − 1 rows before the cell's,
 * [taps − 1][pitch]; rows: x. Token shift: taps is 2, w is NULL, and out[t] = x[t − 1]. */
struct ifl_conv {
  ifl_cells cells;
  const float *x; /* [T][cols] */
  int64_t ldx;
  const float *w; /* [taps][cols] */
  int64_t ldw;
  const float *bias; /* [cols], or NULL */
  int cols, taps, silu; /* silu: out is silu of the above */
  float *out; /* [T][cols] */
  int64_t ldo;
};

/* x of row r of a sequence without a tree; NULL: it is zero. */
IFL_DEVICE const float *ifl_conv_line(const ifl_conv &a, int seq, int r) {
  const ifl_step *s = a.cells.step;
  const int first = s->cell_from[seq] * IFL_CELL_ROWS, past = s->past[seq];
  if (r < 0)
    return NULL;
  if (r >= past)
    return a.x + (s->first[seq] + r - past) * a.ldx;
  if (r >= first)
    return ifl_cell_row(a.cells, ifl_cell_of(s, seq, r), r);
  return ifl_cell_start(a.cells, ifl_cell_of(s, seq, first)) + (r - first + a.taps - 1) * a.cells.row;
}

/* x of the row `back` rows before that of token t. */
IFL_DEVICE const float *ifl_conv_at(const ifl_conv &a, int seq, int t, int back, bool tree) {
  const ifl_step *s = a.cells.step;
  if (!tree)
    return ifl_conv_line(a, seq, s->past[seq] + t - s->first[seq] - back);
  for (; back > 0 && t >= 0; back--)
    t = ifl_cells_parent(s, seq, t);
  return t >= 0 ? a.x + t * a.ldx : ifl_conv_line(a, seq, s->past[seq] - 1 - back);
}

/* Writes column d of the rows before the cell of row r, if it is kept. */
template <int TAPS> IFL_DEVICE void ifl_conv_start(const ifl_conv &a, int seq, int r, int d) {
  const int id = ifl_cell_of(a.cells.step, seq, r);
  if (id < 0)
    return;
  float *to = ifl_cell_start(a.cells, id) + d;
#pragma unroll
  for (int j = 1; j < TAPS; j++) {
    const float *x = ifl_conv_line(a, seq, r - TAPS + j);
    to[(j - 1) * a.cells.row] = x ? x[d] : 0.0f;
  }
}

/* One thread: a column of a token. Grid (columns, tokens). The first token of a sequence also writes the starts of the cells up
 * to its row, because the rows before them may come from a tree; another one that of its own cell, if its row is the first. */
template <int TAPS> IFL_DEVICE void ifl_run_conv(const ifl_conv &a) {
  const ifl_step *s = a.cells.step;
  const int t = blockIdx.y, seq = s->seq[t], d = blockIdx.x * blockDim.x + threadIdx.x;
  if (d >= a.cols)
    return;
  const bool tree = ifl_tree(s, seq);
  float x[TAPS];
#pragma unroll
  for (int j = 0; j < TAPS; j++) {
    const float *row = ifl_conv_at(a, seq, t, TAPS - 1 - j, tree);
    x[j] = row ? row[d] : 0.0f;
  }
  float y = x[0];
  if (a.w) {
    y = a.bias ? a.bias[d] : 0.0f;
#pragma unroll
    for (int j = 0; j < TAPS; j++)
      y = fmaf(a.w[j * a.ldw + d], x[j], y);
  }
  a.out[t * a.ldo + d] = a.silu ? y / (1.0f + ifl_exp(-y)) : y;
  const int i = t - s->first[seq], past = s->past[seq], id = ifl_cell_of(s, seq, past + i);
  if (id >= 0)
    ifl_cell_row(a.cells, id, past + i)[d] = x[TAPS - 1];
  if (i > 0) {
    if (!tree && (past + i) % IFL_CELL_ROWS == 0)
      ifl_conv_start<TAPS>(a, seq, past + i, d);
    return;
  }
  for (int r = (s->cell_from[seq] + 1) * IFL_CELL_ROWS; r <= past; r += IFL_CELL_ROWS)
    ifl_conv_start<TAPS>(a, seq, r, d);
}

/* RG-LRU: out = h = exp(log_a)·h + √(1 − exp(2·log_a))·x, and h = x at a sequence's first row. rows: h; there is no start. */
struct ifl_lru {
  ifl_cells cells;
  const float *x;
  int64_t ldx;
  const float *log_a;
  int64_t lda;
  int cols;
  float *out;
  int64_t ldo;
};

IFL_DEVICE float ifl_lru_next(float before, float x, float log) {
  return fmaf(expf(log), before, sqrtf(-expm1f(log + log)) * x);
}

/* Stores h of row r in cell `id`, if it is kept. */
IFL_DEVICE void ifl_lru_keep(const ifl_lru &a, int id, int r, int d, float h) {
  if (id >= 0)
    ifl_cell_row(a.cells, id, r)[d] = h;
}

/* One thread: a column of a sequence. Grid (columns, sequences). */
IFL_DEVICE void ifl_run_lru(const ifl_lru &a) {
  const ifl_step *s = a.cells.step;
  const int seq = blockIdx.y, d = blockIdx.x * blockDim.x + threadIdx.x;
  const int first = s->first[seq], end = s->first[seq + 1], past = s->past[seq];
  if (d >= a.cols || first == end)
    return;
  const int32_t *list = ifl_cells_of(s, seq);
  float h = past > 0 ? ifl_cell_row(a.cells, list[(past - 1) / IFL_CELL_ROWS], past - 1)[d] : 0.0f;
  if (ifl_tree(s, seq)) {
    for (int t = first; t < end; t++) {
      const int parent = ifl_cells_parent(s, seq, t);
      const float x = a.x[t * a.ldx + d], before = parent >= 0 ? a.out[parent * a.ldo + d] : h;
      const float y = parent < 0 && past == 0 ? x : ifl_lru_next(before, x, a.log_a[t * a.lda + d]);
      a.out[t * a.ldo + d] = y;
      ifl_lru_keep(a, list[(past + t - first) / IFL_CELL_ROWS], past + t - first, d, y);
    }
    return;
  }
  constexpr int AHEAD = 8; /* tokens whose inputs are in flight together */
  for (int from = first; from < end; from += AHEAD) {
    float x[AHEAD], log[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
      const int t = ifl_min_int(from + i, end - 1);
      x[i] = a.x[t * a.ldx + d], log[i] = a.log_a[t * a.lda + d];
    }
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
      const int t = from + i, r = past + t - first;
      if (t >= end)
        break;
      h = r == 0 ? x[i] : ifl_lru_next(h, x[i], log[i]);
      a.out[t * a.ldo + d] = h;
      ifl_lru_keep(a, list[r / IFL_CELL_ROWS], r, d, h);
    }
  }
}
