/* The op pool_rows; ifl_pooling.h of the CPU target says what it computes and what cells hold. */
#pragma once
#include "ifl_cells.cuh"

struct ifl_pooling {
  ifl_cells cells;
  const float *x; /* [T][cols], or with overlap [T][2·cols] */
  int64_t ldx;
  const float *gate; /* the same */
  int64_t ldg;
  const float *bias; /* [every][cols], or with overlap [every][2·cols] */
  int64_t ldbias;
  int cols, every, overlap;
  float *out; /* [T][cols] */
  int64_t ldo;
};

struct ifl_series {
  float top, sum, out;
};
IFL_DEVICE ifl_series ifl_series_none() { return {-1e30f, 0.0f, 0.0f}; }
IFL_DEVICE ifl_series ifl_series_add(const ifl_series &s, float x, float gate) {
  const float top = fmaxf(s.top, gate), shrink = expf(s.top - top), weight = expf(gate - top);
  return {top, fmaf(s.sum, shrink, weight), fmaf(s.out, shrink, weight * x)};
}

/* One thread: a column of a sequence. Grid (columns, sequences). */
IFL_DEVICE void ifl_run_pooling(const ifl_pooling &a) {
  const ifl_step *s = a.cells.step;
  const int seq = blockIdx.y, d = blockIdx.x * blockDim.x + threadIdx.x;
  const int first = s->first[seq], end = s->first[seq + 1], past = s->past[seq], series = a.overlap ? 3 : 1;
  if (d >= a.cols || first == end)
    return;
  const int64_t pitch = a.cells.row / (3 * series);
  const bool tree = ifl_tree(s, seq);
  const int32_t *list = ifl_cells_of(s, seq);
  const float *held = past > 0 ? ifl_cell_row(a.cells, list[(past - 1) / IFL_CELL_ROWS], past - 1) : NULL;
  ifl_series v[3] = {ifl_series_none(), ifl_series_none(), ifl_series_none()};
  for (int t = first; t < end; t++) {
    const int parent = tree ? ifl_cells_parent(s, seq, t) : -1, r = past + t - first, i = s->pos[t] % a.every;
    if (tree || t == first) { /* otherwise v is that of the token before */
      const int p = past + parent - first;
      const float *from = parent >= 0 ? ifl_cell_row(a.cells, list[p / IFL_CELL_ROWS], p) : held;
#pragma unroll
      for (int k = 0; k < 3; k++) {
        v[k] = ifl_series_none();
        if (from && k < series)
          v[k] = {from[3 * k * pitch + d], from[(3 * k + 1) * pitch + d], from[(3 * k + 2) * pitch + d]};
      }
    }
    if (i == 0) {
      v[2] = v[1];
      v[0] = v[1] = ifl_series_none();
    }
    const float *x = a.x + t * a.ldx + d, *gate = a.gate + t * a.ldg + d, *bias = a.bias + i * a.ldbias + d;
    const int own = a.overlap ? a.cols : 0; /* the series of the window itself */
    v[0] = ifl_series_add(v[0], x[own], gate[own] + bias[own]);
    float y = v[0].out / v[0].sum;
    if (a.overlap) {
      v[1] = ifl_series_add(v[1], x[0], gate[0] + bias[0]);
      const float top = fmaxf(v[0].top, v[2].top), f = expf(v[0].top - top), g = expf(v[2].top - top);
      y = fmaf(v[0].out, f, v[2].out * g) / fmaf(v[0].sum, f, v[2].sum * g);
    }
    a.out[t * a.ldo + d] = y;
    const int id = list[r / IFL_CELL_ROWS];
    if (id < 0)
      continue;
    float *to = ifl_cell_row(a.cells, id, r) + d;
#pragma unroll
    for (int k = 0; k < 3; k++)
      if (k < series)
        to[3 * k * pitch] = v[k].top, to[(3 * k + 1) * pitch] = v[k].sum, to[(3 * k + 2) * pitch] = v[k].out;
  }
}
