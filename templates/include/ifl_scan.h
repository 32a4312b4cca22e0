/* The selective scan of Mamba (op selective_scan), with `states` numbers h per channel as state:
 *   h[n] = exp(dt·a[n])·h[n] + (dt·x)·b[n], out = Σ_n c[n]·h[n], n ascending
 *
 * Keeping h for each row of a cell would take as much as 16 states. A row instead is what the scan of it needs again: dt and dt·x
 * [channels16 each] and b [states16]. So that the usual next token need not repeat the rows before it, a cell also holds h after its
 * last row, and the number of rows up to there: start is, for each 16 channels, h before the cell [states][16], h after its last
 * row [states][16], and that number [16]. The number is −1 after a draft tree, whose rows are not in one line. */
#pragma once
#include "ifl_cells.h"
#include "ifl_math.h"

typedef struct {
  ifl_cells cells;
  const float *x, *dt, *b, *c; int64_t ldx, lddt, ldb, ldc; /* [T][channels], the same, [T][states], the same */
  const float *a;                                           /* [channels16/16][states][16] */
  float *out; int64_t ldo;                                  /* [T][channels] */
  int channels, states;
  float *scratch; /* of this thread: ifl_scan_floats */
} ifl_scan;

static inline int64_t ifl_scan_floats(int states) { return 32 * (int64_t)states; }

/* 16 channels of a sequence: d … d+n−1. */
typedef struct {
  const ifl_scan *a;
  int seq, d, n;
  float *h; /* [states][16] */
} ifl_scan_unit;

static inline int64_t ifl_scan_wide(const ifl_scan *a) { return ifl_round16(a->channels); }
static inline float *ifl_scan_before(const ifl_scan_unit *u, int32_t id) { return ifl_cell_start(&u->a->cells, id) + u->d / 16 * (32 * (int64_t)u->a->states + 16); }
static inline float *ifl_scan_after(const ifl_scan_unit *u, int32_t id) { return ifl_scan_before(u, id) + 16 * (int64_t)u->a->states; }
static inline int32_t *ifl_scan_count(const ifl_scan_unit *u, int32_t id) { return (int32_t *)(void *)(ifl_scan_after(u, id) + 16 * (int64_t)u->a->states); }
static inline int32_t ifl_scan_cell(const ifl_scan_unit *u, int r) { return ifl_cell_of(u->a->cells.step, u->seq, r); }
static inline void ifl_scan_copy(const ifl_scan_unit *u, float *to, const float *from) { memcpy(to, from, (size_t)u->a->states * 64); }

IFL_INLINE void ifl_scan_step(const ifl_scan_unit *u, ifl_v16 dt, ifl_v16 dtx, const float *b) {
  const float *a = u->a->a + (int64_t)u->d * u->a->states;
  for (int n = 0; n < u->a->states; n++)
    ifl_store_a(u->h + 16 * n, ifl_fma(ifl_exp(dt * ifl_load_a(a + 16 * n)), ifl_load_a(u->h + 16 * n), dtx * b[n]));
}

/* h is that before row r; if r begins a cell that is kept, it is its start. */
static void ifl_scan_begin(const ifl_scan_unit *u, int r) {
  const int32_t id = r > 0 && r % IFL_CELL_ROWS == 0 ? ifl_scan_cell(u, r) : -1;
  if (id >= 0) ifl_scan_copy(u, ifl_scan_before(u, id), u->h);
}

/* Sets h to that after the rows of earlier steps. */
static void ifl_scan_resume(const ifl_scan_unit *u) {
  const ifl_scan *a = u->a;
  const ifl_step *s = a->cells.step;
  const int past = s->past[u->seq], first = s->cell_from[u->seq] * IFL_CELL_ROWS;
  const int32_t last = past > 0 ? ifl_scan_cell(u, past - 1) : -1;
  if (last >= 0 && *ifl_scan_count(u, last) == past) {
    ifl_scan_copy(u, u->h, ifl_scan_after(u, last));
    return;
  }
  if (first > 0) ifl_scan_copy(u, u->h, ifl_scan_before(u, ifl_scan_cell(u, first)));
  else memset(u->h, 0, (size_t)a->states * 64);
  for (int r = first; r < past; r++) {
    if (r > first) ifl_scan_begin(u, r);
    const float *row = ifl_cell_row(&a->cells, ifl_scan_cell(u, r), r);
    ifl_scan_step(u, ifl_load_a(row + u->d), ifl_load_a(row + ifl_scan_wide(a) + u->d), row + 2 * ifl_scan_wide(a));
  }
}

/* The scan of token t. With out, its output; r: also keeps its row, if its cell is kept. */
static inline void ifl_scan_token(const ifl_scan_unit *u, int t, int out, int r) {
  const ifl_scan *a = u->a;
  const ifl_v16 dt = ifl_load_n(a->dt + t * a->lddt + u->d, u->n), dtx = dt * ifl_load_n(a->x + t * a->ldx + u->d, u->n);
  const float *b = a->b + t * a->ldb, *c = a->c + t * a->ldc;
  ifl_scan_step(u, dt, dtx, b);
  if (!out) return;
  ifl_v16 y = {0};
  for (int n = 0; n < a->states; n++) y = ifl_fma(ifl_set1(c[n]), ifl_load_a(u->h + 16 * n), y);
  ifl_store_n(a->out + t * a->ldo + u->d, y, u->n);
  const int32_t id = ifl_scan_cell(u, r);
  if (id < 0) return;
  float *row = ifl_cell_row(&a->cells, id, r);
  ifl_store_a(row + u->d, dt);
  ifl_store_a(row + ifl_scan_wide(a) + u->d, dtx);
  if (u->d == 0) memcpy(row + 2 * ifl_scan_wide(a), b, (size_t)a->states * 4);
}

static void ifl_scan_tree(const ifl_scan_unit *u) {
  const ifl_step *s = u->a->cells.step;
  const int first = s->first[u->seq], past = s->past[u->seq], n = s->first[u->seq + 1] - first;
  const ifl_scan_unit path = {u->a, u->seq, u->d, u->n, u->h + 16 * (int64_t)u->a->states};
  for (int t = first; t < first + n; t++) {
    const uint64_t *words = s->mask + (int64_t)t * s->mask_words;
    ifl_scan_copy(u, path.h, u->h);
    for (int i = first; i < t; i++)
      if (words[(i - first) / 64] >> ((i - first) % 64) & 1) ifl_scan_token(&path, i, 0, 0);
    ifl_scan_token(&path, t, 1, past + t - first);
  }
  for (int r = past; r < past + n; r++) *ifl_scan_count(u, ifl_scan_cell(u, r)) = -1;
}

static __attribute__((unused)) void ifl_run_scan(const ifl_scan *a) {
  const ifl_step *s = a->cells.step;
  int lo, hi;
  ifl_cells_share(&a->cells, a->channels, &lo, &hi);
  for (int q = 0; q < s->seqs; q++) {
    const int first = s->first[q], past = s->past[q], end = past + s->first[q + 1] - first;
    for (int d = lo; d < hi && end > past; d += 16) {
      const ifl_scan_unit u = {a, q, d, hi - d < 16 ? hi - d : 16, a->scratch};
      ifl_scan_resume(&u);
      ifl_scan_begin(&u, past);
      if (ifl_tree(s, q)) {
        ifl_scan_tree(&u);
        continue;
      }
      for (int r = past; r < end; r++) {
        if (r > past) ifl_scan_begin(&u, r);
        ifl_scan_token(&u, first + r - past, 1, r);
        const int32_t id = r + 1 == end || r % IFL_CELL_ROWS == IFL_CELL_ROWS - 1 ? ifl_scan_cell(&u, r) : -1;
        if (id < 0) continue;
        ifl_scan_copy(&u, ifl_scan_after(&u, id), u.h);
        *ifl_scan_count(&u, id) = r + 1;
      }
    }
  }
}
