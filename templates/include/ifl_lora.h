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

/* out[r] = A[r]·x for ranks from…to−1; x has k columns, rows of A are padded with zeros to 16. */
static __attribute__((noinline, unused)) void ifl_lora_dots(float *out, const float *a, int from, int to, const float *x, int k) {
  const int64_t pitch = (k + 15) & ~15;
  const int whole = k & ~15;
  const ifl_v16 end = k > whole ? ifl_load_n(x + whole, k - whole) : ifl_set1(0);
  for (int r = from; r < to; r += 4) {
    const int n = to - r < 4 ? to - r : 4;
    const float *row = a + r * pitch;
    const int64_t second = n > 1 ? pitch : 0, third = n > 2 ? 2 * pitch : 0, fourth = n > 3 ? 3 * pitch : 0;
    ifl_v16 s0 = ifl_set1(0), s1 = s0, s2 = s0, s3 = s0;
    for (int i = 0; i < pitch; i += 16) {
      const ifl_v16 v = i < whole ? ifl_load(x + i) : end;
      s0 = ifl_fma(ifl_load(row + i), v, s0), s1 = ifl_fma(ifl_load(row + second + i), v, s1);
      s2 = ifl_fma(ifl_load(row + third + i), v, s2), s3 = ifl_fma(ifl_load(row + fourth + i), v, s3);
    }
    const float sums[4] = {ifl_sum(s0), ifl_sum(s1), ifl_sum(s2), ifl_sum(s3)};
    memcpy(out + r, sums, (size_t)n * sizeof(float));
  }
}

/* Computes A·x of row t, whose adapter is that of seq, for every part. Threads that all pack the row share the ranks; then
 * ifl_lora_packed waits for them. */
static inline __attribute__((unused)) void ifl_lora_pack(const ifl_ctx *c, const ifl_step *s, const ifl_packing *p, int tid, int seq, int t, const float *x, int k, const ifl_lora_part *parts, int count) {
  const ifl_lora *sites = ifl_lora_sites(c, s, seq);
  if (!sites) return;
  for (int i = 0; i < count; i++) {
    const ifl_lora *m = sites + parts[i].site;
    const int from = p->pack_private ? m->rank * tid / c->threads : 0, to = p->pack_private ? m->rank * (tid + 1) / c->threads : m->rank;
    if (from < to) ifl_lora_dots(ifl_lora_row(c, t, i), m->a, from, to, x, k);
  }
}

static inline __attribute__((unused)) void ifl_lora_packed(const ifl_ctx *c, const ifl_packing *p) {
  if (p->pack_private) ifl_barrier(c->pool);
}

/* Adds B·a to `panels` panels of y, which are `step` panels apart; b is the first one's part of B. */
static __attribute__((noinline, unused)) void ifl_lora_add_panels(float *y, int step, const float *b, int panels, const float *a, int rank) {
  const int64_t each = (int64_t)rank * 16;
  int i = 0;
  for (; i + 4 <= panels; i += 4, y += 64 * step, b += 4 * each) {
    ifl_v16 s0 = ifl_set1(0), s1 = s0, s2 = s0, s3 = s0;
    for (int r = 0; r < rank; r++) {
      const ifl_v16 v = ifl_set1(a[r]);
      const float *at = b + r * 16;
      s0 = ifl_fma(ifl_load(at), v, s0), s1 = ifl_fma(ifl_load(at + each), v, s1);
      s2 = ifl_fma(ifl_load(at + 2 * each), v, s2), s3 = ifl_fma(ifl_load(at + 3 * each), v, s3);
    }
    ifl_store(y, ifl_load(y) + s0), ifl_store(y + 16 * step, ifl_load(y + 16 * step) + s1);
    ifl_store(y + 32 * step, ifl_load(y + 32 * step) + s2), ifl_store(y + 48 * step, ifl_load(y + 48 * step) + s3);
  }
  for (; i < panels; i++, y += 16 * step, b += each) {
    ifl_v16 sum = ifl_set1(0);
    for (int r = 0; r < rank; r++) sum = ifl_fma(ifl_load(b + r * 16), ifl_set1(a[r]), sum);
    ifl_store(y, ifl_load(y) + sum);
  }
}

/* Adds the adapters to columns n0…n0+cols−1 of all rows at y. */
static inline __attribute__((unused)) void ifl_lora_add(const ifl_ctx *c, const ifl_step *s, ifl_seq_of seq_of, int rows, float *y, int64_t pitch, int n0, int cols, const ifl_lora_part *parts, int count) {
  for (int t = 0; t < rows; t++, y += pitch) {
    const ifl_lora *sites = ifl_lora_sites(c, s, seq_of(s, t));
    if (!sites) continue;
    for (int i = 0; i < count; i++) {
      const ifl_lora_part *p = parts + i;
      const ifl_lora *m = sites + p->site;
      const int lo = n0 / 16 - p->first, hi = lo + cols / 16; /* panels of the output after the part's first */
      const int from = lo > 0 ? (lo + p->step - 1) / p->step : 0, to = ifl_min_int(hi > 0 ? (hi + p->step - 1) / p->step : 0, p->panels);
      if (m->rank == 0 || from >= to) continue;
      ifl_lora_add_panels(y + (int64_t)(from * p->step - lo) * 16, p->step, m->b + (int64_t)from * m->rank * 16, to - from, ifl_lora_row(c, t, i), m->rank);
    }
  }
}
