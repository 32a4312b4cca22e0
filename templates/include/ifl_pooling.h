/* The op pool_rows: windows of rows, each compressed to one by a softmax of gates (DeepSeek-V4, §2.3). */
#pragma once
#include "ifl_cells.h"

/* rows: for each series a maximum, a sum of weights and a weighted sum, as they are after the row; there is no start. Without
 * overlap there is one series. With overlap there are three: of the window itself, of its contribution to the next window, and
 * of the contribution of the window before. */
typedef struct {
  ifl_cells cells;
  const float *x; int64_t ldx;       /* [T][cols], or with overlap [T][2·cols] */
  const float *gate; int64_t ldg;    /* the same */
  const float *bias; int64_t ldbias; /* [every][cols], or with overlap [every][2·cols] */
  float *out; int64_t ldo;           /* [T][cols] */
  int cols, every, overlap;
} ifl_pooling;

#define IFL_POOLING_NONE (-1e30f) /* the maximum of a series without rows */

typedef struct {
  ifl_v16 top, sum, out;
} ifl_series;

IFL_INLINE ifl_series ifl_series_none(void) { return (ifl_series){ifl_set1(IFL_POOLING_NONE), {0}, {0}}; }

IFL_INLINE ifl_series ifl_series_add(ifl_series s, ifl_v16 x, ifl_v16 gate) {
  const ifl_v16 top = ifl_max(s.top, gate), shrink = ifl_exp(s.top - top), weight = ifl_exp(gate - top);
  return (ifl_series){top, ifl_fma(s.sum, shrink, weight), ifl_fma(s.out, shrink, weight * x)};
}

static __attribute__((unused)) void ifl_run_pooling(const ifl_pooling *a) {
  const ifl_step *s = a->cells.step;
  const int series = a->overlap ? 3 : 1;
  const int64_t pitch = a->cells.row / (3 * series);
  int lo, hi;
  ifl_cells_share(&a->cells, a->cols, &lo, &hi);
  for (int q = 0; q < s->seqs && lo < hi; q++) {
    const int tree = ifl_tree(s, q), past = s->past[q], first = s->first[q];
    if (s->first[q + 1] == first) continue;
    const float *held = past > 0 ? ifl_cell_row(&a->cells, ifl_cell_of(s, q, past - 1), past - 1) : NULL;
    for (int d = lo; d < hi; d += 16) {
      const int n = hi - d < 16 ? hi - d : 16;
      ifl_series v[3];
      for (int t = first; t < s->first[q + 1]; t++) {
        const int parent = tree ? ifl_cells_parent(s, q, t) : -1, r = past + t - first, i = s->pos[t] % a->every;
        const float *from = parent >= 0 ? ifl_cell_row(&a->cells, ifl_cell_of(s, q, past + parent - first), past + parent - first) : held;
        for (int k = 0; k < series && (tree || t == first); k++) { /* otherwise v is that of the token before */
          v[k] = ifl_series_none();
          if (from) v[k] = (ifl_series){ifl_load_n(from + 3 * k * pitch + d, n), ifl_load_n(from + (3 * k + 1) * pitch + d, n), ifl_load_n(from + (3 * k + 2) * pitch + d, n)};
        }
        if (i == 0) {
          if (a->overlap) v[2] = v[1], v[1] = ifl_series_none();
          v[0] = ifl_series_none();
        }
        const float *x = a->x + t * a->ldx + d, *gate = a->gate + t * a->ldg + d, *bias = a->bias + i * a->ldbias + d;
        const int own = a->overlap ? a->cols : 0; /* the series of the window itself */
        v[0] = ifl_series_add(v[0], ifl_load_n(x + own, n), ifl_load_n(gate + own, n) + ifl_load_n(bias + own, n));
        ifl_v16 y = v[0].out / v[0].sum;
        if (a->overlap) {
          v[1] = ifl_series_add(v[1], ifl_load_n(x, n), ifl_load_n(gate, n) + ifl_load_n(bias, n));
          const ifl_v16 top = ifl_max(v[0].top, v[2].top), f = ifl_exp(v[0].top - top), g = ifl_exp(v[2].top - top);
          y = ifl_fma(v[0].out, f, v[2].out * g) / ifl_fma(v[0].sum, f, v[2].sum * g);
        }
        ifl_store_n(a->out + t * a->ldo + d, y, n);
        const int32_t id = ifl_cell_of(s, q, r);
        float *to = id >= 0 ? ifl_cell_row(&a->cells, id, r) + d : NULL;
        for (int k = 0; to && k < series; k++, to += 3 * pitch)
          ifl_store_n(to, v[k].top, n), ifl_store_n(to + pitch, v[k].sum, n), ifl_store_n(to + 2 * pitch, v[k].out, n);
      }
    }
  }
}
