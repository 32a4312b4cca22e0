/* Adapters: the products B·A·x that are added to a matmul's output, on the rows of sequences with an adapter.
 *
 * Where a row of x is packed, A·x is computed from the same floats before they are rounded. The epilogue adds B times that.
 * Sums are in a fixed order, so a row's bits depend neither on other rows nor on the threads: A·x in 16 lanes, k in order;
 * B·(A·x) with the ranks in order, then added to the output. Included by ifl_matmul.h. */
#pragma once
#include "ifl_vec.h"

/* A site of a matmul's weight: panels first, first + step, … of its output. */
typedef struct {
  int site, first, step, panels;
} ifl_lora_part;

/* The sequence of row t: of a token, or of an output row. */
static inline int ifl_token_seq(const ifl_step *s, int t) { return s->seq[t]; }
static inline int ifl_out_row_seq(const ifl_step *s, int t) { return s->seq[s->out_row[t]]; }
typedef int (*ifl_seq_of)(const ifl_step *s, int t);

/* The matrices of a sequence's adapter, by site; NULL: it has none. */
static inline const ifl_lora *ifl_lora_sites(const ifl_ctx *c, const ifl_step *s, int seq) {
  return s->adapter[seq] < 0 ? NULL : c->adapter[s->adapter[seq]];
}

/* Whether the adapter of some sequence changes one of these parts. */
static __attribute__((noinline, unused)) int ifl_lora_any(const ifl_ctx *c, const ifl_step *s, const ifl_lora_part *parts, int count) {
  for (int q = 0; q < s->seqs; q++) {
    const ifl_lora *sites = ifl_lora_sites(c, s, q);
    for (int i = 0; sites && i < count; i++)
      if (sites[parts[i].site].rank > 0) return 1;
  }
  return 0;
}

/* Where A·x of row t for a part is kept. */
static inline float *ifl_lora_row(const ifl_ctx *c, int t, int part) { return c->lora + ((int64_t)t * IFL_LORA_PARTS + part) * IFL_LORA_RANK; }

/* Rows of one adapter that are computed together, so that each load of A or B serves several: with 16 registers, one. */
#ifdef IFL_AVX512
enum { IFL_LORA_ROWS = 4 };
#else
enum { IFL_LORA_ROWS = 1 };
#endif

/* out[m][r] = A[r]·x[m] for ranks from…to−1 and all rows; a row has k columns, those of A are padded with zeros to 16. */
IFL_INLINE void ifl_lora_dots_(float *const *out, const float *a, int from, int to, const float *const *x, int k, const int rows) {
  const int64_t pitch = (k + 15) & ~15;
  const int whole = k & ~15;
  for (int r = from; r < to; r += 4) {
    const int n = to - r < 4 ? to - r : 4;
    const float *row = a + r * pitch;
    const int64_t second = n > 1 ? pitch : 0, third = n > 2 ? 2 * pitch : 0, fourth = n > 3 ? 3 * pitch : 0;
    ifl_v16 sum[IFL_LORA_ROWS][4];
#pragma GCC unroll 4
    for (int m = 0; m < rows; m++) sum[m][0] = sum[m][1] = sum[m][2] = sum[m][3] = ifl_set1(0);
    for (int i = 0; i < pitch; i += 16) {
      const ifl_v16 a0 = ifl_load(row + i), a1 = ifl_load(row + second + i), a2 = ifl_load(row + third + i), a3 = ifl_load(row + fourth + i);
#pragma GCC unroll 4
      for (int m = 0; m < rows; m++) {
        const ifl_v16 v = i < whole ? ifl_load(x[m] + i) : ifl_load_n(x[m] + i, k - i);
        sum[m][0] = ifl_fma(a0, v, sum[m][0]), sum[m][1] = ifl_fma(a1, v, sum[m][1]);
        sum[m][2] = ifl_fma(a2, v, sum[m][2]), sum[m][3] = ifl_fma(a3, v, sum[m][3]);
      }
    }
#pragma GCC unroll 4
    for (int m = 0; m < rows; m++) {
      const float sums[4] = {ifl_sum(sum[m][0]), ifl_sum(sum[m][1]), ifl_sum(sum[m][2]), ifl_sum(sum[m][3])};
      memcpy(out[m] + r, sums, (size_t)n * sizeof(float));
    }
  }
}
static __attribute__((noinline, unused)) void ifl_lora_dots(float *const *out, const float *a, int from, int to, const float *const *x, int k, int rows) {
  if (rows == IFL_LORA_ROWS)
    ifl_lora_dots_(out, a, from, to, x, k, IFL_LORA_ROWS);
  else
    for (int m = 0; m < rows; m++) ifl_lora_dots_(out + m, a, from, to, x + m, k, 1);
}

/* Consecutive packed rows of one adapter, whose A·x is not yet computed. */
typedef struct {
  const ifl_lora *sites;
  int first, count;
  const float *x[IFL_LORA_ROWS];
} ifl_lora_waiting;

/* Computes A·x of the waiting rows for every part. Threads that all pack these rows share the ranks. */
static __attribute__((noinline, unused)) void ifl_lora_flush(const ifl_ctx *c, const ifl_packing *p, int tid, ifl_lora_waiting *w, int k, const ifl_lora_part *parts, int count) {
  for (int i = 0; i < count && w->count > 0; i++) {
    const ifl_lora *m = w->sites + parts[i].site;
    const int from = p->pack_private ? m->rank * tid / c->threads : 0, to = p->pack_private ? m->rank * (tid + 1) / c->threads : m->rank;
    float *out[IFL_LORA_ROWS];
    for (int j = 0; j < w->count; j++) out[j] = ifl_lora_row(c, w->first + j, i);
    if (from < to) ifl_lora_dots(out, m->a, from, to, w->x, k, w->count);
  }
  w->count = 0;
}

/* Computes A·x of row t, whose adapter is that of seq, for every part, at the latest in ifl_lora_packed. A row that the next one
 * overwrites is copied. */
static inline __attribute__((unused)) void ifl_lora_pack(const ifl_ctx *c, const ifl_step *s, const ifl_packing *p, int tid, ifl_lora_waiting *w, int seq, int t, const float *x, int copy, int k, const ifl_lora_part *parts, int count) {
  const ifl_lora *sites = ifl_lora_sites(c, s, seq);
  if (w->count == IFL_LORA_ROWS || w->sites != sites || w->first + w->count != t) {
    ifl_lora_flush(c, p, tid, w, k, parts, count);
    w->sites = sites, w->first = t;
  }
  if (!sites) return;
  float *own = c->own[tid].lora + (int64_t)w->count * IFL_PRODUCT_K;
  w->x[w->count++] = copy ? memcpy(own, x, (size_t)k * sizeof(float)) : x;
}

/* Ends packing for adapters: afterwards A·x of this thread's rows is computed, or of all rows if every thread packs them. */
static inline __attribute__((unused)) void ifl_lora_packed(const ifl_ctx *c, const ifl_packing *p, int tid, ifl_lora_waiting *w, int k, const ifl_lora_part *parts, int count) {
  ifl_lora_flush(c, p, tid, w, k, parts, count);
  if (p->pack_private) ifl_barrier(c->pool);
}

/* Adds B·a to `panels` panels of the rows of y, which are `step` panels apart; b is the first one's part of B. */
IFL_INLINE void ifl_lora_add_panels_(float *const *y, int step, const float *b, int panels, const float *const *a, int rank, const int rows) {
  const int64_t each = (int64_t)rank * 16;
  int i = 0, at = 0;
  for (; i + 4 <= panels; i += 4, at += 64 * step, b += 4 * each) {
    ifl_v16 sum[IFL_LORA_ROWS][4];
#pragma GCC unroll 4
    for (int m = 0; m < rows; m++) sum[m][0] = sum[m][1] = sum[m][2] = sum[m][3] = ifl_set1(0);
    for (int r = 0; r < rank; r++) {
      const ifl_v16 b0 = ifl_load(b + r * 16), b1 = ifl_load(b + each + r * 16), b2 = ifl_load(b + 2 * each + r * 16), b3 = ifl_load(b + 3 * each + r * 16);
#pragma GCC unroll 4
      for (int m = 0; m < rows; m++) {
        const ifl_v16 v = ifl_set1(a[m][r]);
        sum[m][0] = ifl_fma(b0, v, sum[m][0]), sum[m][1] = ifl_fma(b1, v, sum[m][1]);
        sum[m][2] = ifl_fma(b2, v, sum[m][2]), sum[m][3] = ifl_fma(b3, v, sum[m][3]);
      }
    }
#pragma GCC unroll 4
    for (int m = 0; m < rows; m++)
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        float *to = y[m] + at + 16 * j * step;
        ifl_store(to, ifl_load(to) + sum[m][j]);
      }
  }
  for (; i < panels; i++, at += 16 * step, b += each)
    for (int m = 0; m < rows; m++) {
      ifl_v16 sum = ifl_set1(0);
      for (int r = 0; r < rank; r++) sum = ifl_fma(ifl_load(b + r * 16), ifl_set1(a[m][r]), sum);
      ifl_store(y[m] + at, ifl_load(y[m] + at) + sum);
    }
}
static __attribute__((noinline, unused)) void ifl_lora_add_panels(float *const *y, int step, const float *b, int panels, const float *const *a, int rank, int rows) {
  if (rows == IFL_LORA_ROWS)
    ifl_lora_add_panels_(y, step, b, panels, a, rank, IFL_LORA_ROWS);
  else
    for (int m = 0; m < rows; m++) ifl_lora_add_panels_(y + m, step, b, panels, a + m, rank, 1);
}

/* Adds the adapters to columns n0…n0+cols−1 of all rows at y. */
static inline __attribute__((unused)) void ifl_lora_add(const ifl_ctx *c, const ifl_step *s, ifl_seq_of seq_of, int rows, float *y, int64_t pitch, int n0, int cols, const ifl_lora_part *parts, int count) {
  for (int t = 0, n; t < rows; t += n) {
    const ifl_lora *sites = ifl_lora_sites(c, s, seq_of(s, t));
    for (n = 1; n < IFL_LORA_ROWS && t + n < rows && ifl_lora_sites(c, s, seq_of(s, t + n)) == sites;) n++;
    for (int i = 0; sites && i < count; i++) {
      const ifl_lora_part *p = parts + i;
      const ifl_lora *m = sites + p->site;
      const int lo = n0 / 16 - p->first, hi = lo + cols / 16; /* panels of the output after the part's first */
      const int from = lo > 0 ? (lo + p->step - 1) / p->step : 0, to = ifl_min_int(hi > 0 ? (hi + p->step - 1) / p->step : 0, p->panels);
      if (m->rank == 0 || from >= to) continue;
      float *at[IFL_LORA_ROWS];
      const float *a[IFL_LORA_ROWS];
      for (int j = 0; j < n; j++) at[j] = y + (t + j) * pitch + (int64_t)(from * p->step - lo) * 16, a[j] = ifl_lora_row(c, t + j, i);
      ifl_lora_add_panels(at, p->step, m->b + (int64_t)from * m->rank * 16, to - from, a, m->rank, n);
    }
  }
}
