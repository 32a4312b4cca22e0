/* Linear attention with a matrix S of [dim][vdim] per head as state (op linear_recurrence):
 *   S = D·S + b·(aᵀ(D·S))ᵀ + k·uᵀ, out = scale·qᵀS + skip·v, D = exp(decay)
 *   delta 0: u = β·v;  IFL_DELTA_RULE: u = β·(v − kᵀ(D·S));  IFL_DELTA_VECTORS: u = β·v, and the term with a and b
 *
 * A row is computed from the matrix S₀ before its cell and the rows j of the cell up to it (the chunkwise form: Yang et al. 2024,
 * "Parallelizing linear transformers with the delta rule", §3), so one token reads S₀ once and writes it only at the end of a cell:
 *   out_i = (q_i·E_i)ᵀS₀ + Σ_{j≤i} ((q_i·E_ij)·k_j) u_j,  E_i = exp(Σ_{m≤i} decay_m),  E_ij = exp(Σ_{j<m≤i} decay_m)
 * Sums run over the rows of S₀ in order, in one chain, then over j in order. A dot product of two rows has 16 lanes, which are
 * added as a tree. S of the next cell: S₀·E in one chain with its 16 rows in order.
 *
 * In a cell, start is [heads][vdim16/16][dim][16]. A row is k [key_heads][dim16], u [heads][vdim16], the decays
 * ([heads16], or [heads][dim16] by channel), and with IFL_DELTA_VECTORS b [heads][dim16] and w = aᵀ(D·S) [heads][vdim16]. */
#pragma once
#include "ifl_cells.h"
#include "ifl_lanes.h"
#include "ifl_math.h"

enum { IFL_DECAY_NONE, IFL_DECAY_FIXED, IFL_DECAY_HEAD, IFL_DECAY_CHANNEL };
enum { IFL_DELTA_NONE, IFL_DELTA_RULE, IFL_DELTA_VECTORS };

typedef struct {
  ifl_cells cells;
  const float *q, *k, *v; int64_t ldq, ldk, ldv;   /* [T][key_heads·dim], the same, [T][heads·vdim] */
  const float *decay; int64_t lddecay;             /* [T][heads] or [T][heads·dim]; logarithms */
  const float *beta; int64_t ldbeta;               /* [T][heads], or NULL: 1 */
  const float *erase, *write; int64_t lderase, ldwrite; /* a and b: [T][heads·dim] */
  const float *slopes; float slope_scale;          /* [heads], with IFL_DECAY_FIXED */
  const float *skip;                               /* [heads], or NULL */
  float *out; int64_t ldo;                         /* [T][heads·vdim] */
  int heads, key_heads, dim, vdim, decays, delta;
  float scale;
  float *scratch; /* of this thread: ifl_recurrence_floats */
} ifl_recurrence;

enum { IFL_CR = IFL_CELL_ROWS };

/* Offsets in a row of a cell, in floats. */
static inline int64_t ifl_recurrence_u(const ifl_recurrence *a) { return (int64_t)a->key_heads * ifl_round16(a->dim); }
static inline int64_t ifl_recurrence_decay(const ifl_recurrence *a) { return ifl_recurrence_u(a) + (int64_t)a->heads * ifl_round16(a->vdim); }
static inline int64_t ifl_recurrence_b(const ifl_recurrence *a) {
  return ifl_recurrence_decay(a) + (a->decays == IFL_DECAY_CHANNEL ? (int64_t)a->heads * ifl_round16(a->dim) : a->decays == IFL_DECAY_HEAD ? ifl_round16(a->heads) : 0);
}
static inline int64_t ifl_recurrence_w(const ifl_recurrence *a) { return ifl_recurrence_b(a) + (int64_t)a->heads * ifl_round16(a->dim); }

/* Floats of scratch per thread. */
static inline int64_t ifl_recurrence_floats(int dim, int vdim) {
  const int64_t d = ifl_round16(dim), v = ifl_round16(vdim);
  return 2 * d * v + IFL_CR * (7 * d + 4 * v) + 4 * d + 6 * IFL_CR * IFL_CR;
}

/* The work on some column tiles of one head of one sequence. */
typedef struct {
  const ifl_recurrence *a;
  int seq, head, tile, tiles; /* tiles tile … tile+tiles−1 of 16 columns */
  /* the rows of the current cell, in the sequence's order: pointers at this head and tile */
  const float *k[IFL_CR], *g[IFL_CR], *b[IFL_CR];
  float *u[IFL_CR], *w[IFL_CR];
  int token[IFL_CR]; /* −1: of an earlier step */
  /* scratch */
  float *state, *branch;                  /* S of the tiles, [tiles][dim][16]; branch: along a path of a tree */
  float *rows_k, *rows_g, *rows_b, *rows_u, *rows_w; /* [16][…]: the inputs of this step's rows, padded; u and w of cells that are not kept */
  float *qd, *rd, *erase;                 /* [16][dim16]: q and a (or k) times E_i; a, padded */
  float *outq, *outr;                     /* [16][16·tiles]: qd·S₀ and rd·S₀ */
  float *sum, *e;                         /* [dim16] */
  float *coef, *coef_b;                   /* [16][dim16]: factors of u and w in the next S */
  float *qk, *qb, *rk, *rb;               /* [16][16]: coefficients of u and w in out, and in rd·S */
  float *dots_q, *dots_r;                 /* [16][16]: q·k and k·k of the rows that end with token dots_of, for key head dots_head */
  int dots_of, dots_head;
} ifl_rc;

static inline float *ifl_rc_take(float **p, int64_t n) {
  float *at = *p;
  *p += (n + 15) & ~(int64_t)15;
  return at;
}

static inline void ifl_rc_open(ifl_rc *x, const ifl_recurrence *a) {
  const int64_t d = ifl_round16(a->dim), v = ifl_round16(a->vdim);
  float *p = a->scratch;
  x->a = a;
  x->state = ifl_rc_take(&p, d * v), x->branch = ifl_rc_take(&p, d * v);
  x->rows_k = ifl_rc_take(&p, IFL_CR * d), x->rows_g = ifl_rc_take(&p, IFL_CR * d), x->rows_b = ifl_rc_take(&p, IFL_CR * d);
  x->qd = ifl_rc_take(&p, IFL_CR * d), x->rd = ifl_rc_take(&p, IFL_CR * d), x->erase = ifl_rc_take(&p, 2 * d);
  x->rows_u = ifl_rc_take(&p, IFL_CR * v), x->rows_w = ifl_rc_take(&p, IFL_CR * v);
  x->outq = ifl_rc_take(&p, IFL_CR * v), x->outr = ifl_rc_take(&p, IFL_CR * v);
  x->sum = ifl_rc_take(&p, d), x->e = ifl_rc_take(&p, d);
  x->coef = ifl_rc_take(&p, IFL_CR * d), x->coef_b = ifl_rc_take(&p, IFL_CR * d);
  x->qk = ifl_rc_take(&p, 256), x->qb = ifl_rc_take(&p, 256), x->rk = ifl_rc_take(&p, 256), x->rb = ifl_rc_take(&p, 256);
  x->dots_q = ifl_rc_take(&p, 256), x->dots_r = ifl_rc_take(&p, 256);
  x->dots_of = x->dots_head = -1;
}

/* Copies n floats, and zeros up to a multiple of 16. */
static inline void ifl_rc_pad(float *to, const float *from, int n) {
  for (int d = 0; d < n; d += 16) ifl_store_a(to + d, ifl_load_n(from + d, n - d < 16 ? n - d : 16));
}

static inline float ifl_rc_dot(const float *a, const float *b, int dim) {
  ifl_v16 sum = {0};
  for (int d = 0; d < dim; d += 16) sum = ifl_fma(ifl_load_a(a + d), ifl_load_a(b + d), sum);
  return ifl_sum(sum);
}

/* Row i of the cell is in a cell in memory. */
static inline void ifl_rc_from_cell(ifl_rc *x, int i, float *row) {
  const ifl_recurrence *a = x->a;
  const int64_t d = ifl_round16(a->dim), v = ifl_round16(a->vdim), at = x->head * v + 16 * x->tile;
  x->token[i] = -1;
  x->k[i] = row + x->head / (a->heads / a->key_heads) * d;
  x->u[i] = row + ifl_recurrence_u(a) + at;
  x->g[i] = row + ifl_recurrence_decay(a) + x->head * (a->decays == IFL_DECAY_CHANNEL ? d : 1);
  x->b[i] = row + ifl_recurrence_b(a) + x->head * d;
  x->w[i] = row + ifl_recurrence_w(a) + at;
}

/* Row i of the cell is token t of this step; row: its place in a cell, or NULL. */
static inline void ifl_rc_from_token(ifl_rc *x, int i, int t, float *row) {
  const ifl_recurrence *a = x->a;
  const int64_t d = ifl_round16(a->dim);
  const int h = x->head, group = a->heads / a->key_heads;
  if (row) ifl_rc_from_cell(x, i, row);
  else x->u[i] = x->rows_u + i * 16 * x->tiles, x->w[i] = x->rows_w + i * 16 * x->tiles;
  x->token[i] = t;
  float *k = x->rows_k + i * d, *g = x->rows_g + i * d, *b = x->rows_b + i * d;
  ifl_rc_pad(k, a->k + t * a->ldk + (int64_t)(h / group) * a->dim, a->dim);
  if (row && x->tile == 0 && h % group == 0) memcpy(row + h / group * d, k, (size_t)d * 4);
  x->k[i] = k, x->g[i] = g, x->b[i] = b;
  if (a->decays == IFL_DECAY_CHANNEL) {
    ifl_rc_pad(g, a->decay + t * a->lddecay + (int64_t)h * a->dim, a->dim);
    if (row && x->tile == 0) memcpy(row + ifl_recurrence_decay(a) + h * d, g, (size_t)d * 4);
  } else if (a->decays == IFL_DECAY_HEAD) {
    *g = a->decay[t * a->lddecay + h];
    if (row && x->tile == 0) row[ifl_recurrence_decay(a) + h] = *g;
  }
  if (a->delta == IFL_DELTA_VECTORS) {
    ifl_rc_pad(b, a->write + t * a->ldwrite + (int64_t)h * a->dim, a->dim);
    if (row && x->tile == 0) memcpy(row + ifl_recurrence_b(a) + h * d, b, (size_t)d * 4);
  }
}

/* factor[j] = E_ij for j < i, and *all = E_i, with one decay per head; the decays are added from row i down. */
static inline void ifl_rc_factors(const ifl_rc *x, int i, float *factor, float *all) {
  const ifl_recurrence *a = x->a;
  const float fixed = a->decays == IFL_DECAY_FIXED ? a->slopes[x->head] * a->slope_scale : 0;
  _Alignas(64) float log[17] = {0};
  float sum = 0;
  for (int j = i; j >= 0; j--) {
    log[j + 1] = sum;
    sum += a->decays == IFL_DECAY_FIXED ? fixed : *x->g[j];
  }
  log[0] = sum;
  ifl_store_a(log, ifl_exp(ifl_load_a(log)));
  *all = log[0];
  for (int j = 0; j < i; j++) factor[j] = log[j + 1];
}

/* The coefficients of row i: qd, rd, and those of the rows up to it. known: x->dots_q and dots_r hold its dot products. */
static inline void ifl_rc_row(ifl_rc *x, int i, const float *q, const float *r, int known) {
  const ifl_recurrence *a = x->a;
  const int dim = ifl_round16(a->dim), vectors = a->delta == IFL_DELTA_VECTORS;
  float *qd = x->qd + (int64_t)i * dim, *rd = x->rd + (int64_t)i * dim;
  float *qk = x->qk + 16 * i, *qb = x->qb + 16 * i, *rk = x->rk + 16 * i, *rb = x->rb + 16 * i;
  qk[i] = ifl_rc_dot(q, x->k[i], dim);
  if (vectors) qb[i] = ifl_rc_dot(q, x->b[i], dim);
  if (a->decays == IFL_DECAY_CHANNEL) {
    for (int d = 0; d < dim; d += 16) ifl_store_a(x->sum + d, ifl_set1(0));
    for (int j = i - 1; j >= -1; j--) { /* E of row j + 1 … i, by channel */
      ifl_v16 sums[4] = {{0}, {0}, {0}, {0}};
      for (int d = 0; d < dim; d += 16) {
        const ifl_v16 log = ifl_load_a(x->sum + d) + ifl_load_a(x->g[j + 1] + d), e = ifl_exp(log);
        const ifl_v16 eq = e * ifl_load_a(q + d), er = r ? e * ifl_load_a(r + d) : e;
        ifl_store_a(x->sum + d, log);
        if (j < 0) {
          ifl_store_a(qd + d, eq);
          ifl_store_a(rd + d, er);
          continue;
        }
        sums[0] = ifl_fma(eq, ifl_load_a(x->k[j] + d), sums[0]);
        if (r) sums[1] = ifl_fma(er, ifl_load_a(x->k[j] + d), sums[1]);
        if (vectors) sums[2] = ifl_fma(eq, ifl_load_a(x->b[j] + d), sums[2]), sums[3] = ifl_fma(er, ifl_load_a(x->b[j] + d), sums[3]);
      }
      if (j < 0) continue;
      qk[j] = ifl_sum(sums[0]), rk[j] = ifl_sum(sums[1]);
      if (vectors) qb[j] = ifl_sum(sums[2]), rb[j] = ifl_sum(sums[3]);
    }
    return;
  }
  float factor[IFL_CR], all = 1;
  if (a->decays != IFL_DECAY_NONE) ifl_rc_factors(x, i, factor, &all);
  float *dq = x->dots_q + 16 * i, *dr = x->dots_r + 16 * i;
  for (int j = 0; j < i; j++) {
    const float f = a->decays == IFL_DECAY_NONE ? 1 : factor[j];
    if (!known) dq[j] = ifl_rc_dot(q, x->k[j], dim);
    if (r && !(known && a->delta == IFL_DELTA_RULE)) dr[j] = ifl_rc_dot(r, x->k[j], dim);
    qk[j] = dq[j] * f;
    if (r) rk[j] = dr[j] * f;
    if (vectors) qb[j] = ifl_rc_dot(q, x->b[j], dim) * f, rb[j] = ifl_rc_dot(r, x->b[j], dim) * f;
  }
  for (int d = 0; d < dim; d += 16) {
    ifl_store_a(qd + d, ifl_load_a(q + d) * all);
    if (r) ifl_store_a(rd + d, ifl_load_a(r + d) * all);
  }
}

/* y[r][16·t + i] = Σ_k x[r][k]·s[t][k][i], for constant numbers of rows and tiles. With one or two rows, memory is the limit, and
 * the matrix `ahead` floats further is fetched into the L2 cache: the next head's, as this one's is computed. */
#define IFL_RC_PARTS (16 / IFL_LANES)
IFL_INLINE void ifl_rc_read_(const int nr, const int nt, const float *const *x, int dim, const float *s, float *const *y, int64_t ahead) {
  ifl_lanes acc[16];
#pragma GCC unroll 16
  for (int i = 0; i < nr * nt * IFL_RC_PARTS; i++) acc[i] = ifl_lanes_set1(0);
  for (int k = 0; k < dim; k++, s += 16) {
#pragma GCC unroll 8
    for (int t = 0; t < nt; t++) {
#pragma GCC unroll 4
      for (int p = 0; p < IFL_RC_PARTS; p++) {
        const float *at = s + (int64_t)t * dim * 16 + p * IFL_LANES;
        if (nr <= 2 && p == 0) __builtin_prefetch(at + ahead, 0, 2);
        const ifl_lanes line = ifl_lanes_load(at);
#pragma GCC unroll 8
        for (int r = 0; r < nr; r++) {
          const int i = (r * nt + t) * IFL_RC_PARTS + p;
          acc[i] = ifl_lanes_fma(line, ifl_lanes_set1(x[r][k]), acc[i]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < nr; r++)
#pragma GCC unroll 16
    for (int t = 0; t < nt * IFL_RC_PARTS; t++) ifl_lanes_store(y[r] + t * IFL_LANES, acc[r * nt * IFL_RC_PARTS + t]);
}

/* The same for any numbers, of the matrix of all tiles. The accumulators fill the registers: 16 on AVX-512, 4 vectors of 16 on the others. */
static __attribute__((noinline)) void ifl_rc_read(const float *const *x, int rows, int dim, const float *s, int tiles, float *const *y) {
  for (int r = 0, n; r < rows; r += n) {
    const int left = rows - r;
#if IFL_LANES == 16
    n = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
#else
    n = left >= 4 ? 4 : left >= 2 ? 2 : 1;
#endif
    for (int t = 0, m; t < tiles; t += m) {
      const int rest = tiles - t;
      const float *at = s + (int64_t)t * dim * 16;
      float *to[8];
      for (int i = 0; i < n; i++) to[i] = y[r + i] + 16 * t;
#define IFL_RC_CASE_(nr, nt) if (n == (nr) && rest >= (nt)) { ifl_rc_read_(nr, nt, x + r, dim, at, to, (int64_t)tiles * dim * 16); m = (nt); continue; }
#if IFL_LANES == 16
      IFL_RC_CASE_(8, 2)
      IFL_RC_CASE_(8, 1)
      IFL_RC_CASE_(4, 4)
      IFL_RC_CASE_(2, 8)
      IFL_RC_CASE_(2, 4)
#endif
      IFL_RC_CASE_(4, 1)
      IFL_RC_CASE_(2, 2)
      IFL_RC_CASE_(2, 1)
      IFL_RC_CASE_(1, 4)
      IFL_RC_CASE_(1, 1)
      m = 1; /* never */
#undef IFL_RC_CASE_
    }
  }
}

/* y = y + Σ_j (f[j]·u_j + g[j]·w_j) over rows j < n in order, for n16 vectors; the second term only with IFL_DELTA_VECTORS. */
IFL_INLINE void ifl_rc_add_(const int n16, const ifl_rc *x, float *y, const float *f, const float *g, int n, int at, int vectors) {
  ifl_v16 acc[4];
#pragma GCC unroll 4
  for (int i = 0; i < n16; i++) acc[i] = ifl_load_a(y + 16 * i);
  for (int j = 0; j < n; j++) {
#pragma GCC unroll 4
    for (int i = 0; i < n16; i++) acc[i] = ifl_fma(ifl_set1(f[j]), ifl_load_a(x->u[j] + at + 16 * i), acc[i]);
    if (!vectors) continue;
#pragma GCC unroll 4
    for (int i = 0; i < n16; i++) acc[i] = ifl_fma(ifl_set1(g[j]), ifl_load_a(x->w[j] + at + 16 * i), acc[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < n16; i++) ifl_store_a(y + 16 * i, acc[i]);
}

static inline void ifl_rc_add(const ifl_rc *x, float *y, const float *f, const float *g, int n) {
  const int vectors = x->a->delta == IFL_DELTA_VECTORS;
  int t = 0;
  for (; t + 4 <= x->tiles; t += 4) ifl_rc_add_(4, x, y + 16 * t, f, g, n, 16 * t, vectors);
  for (; t < x->tiles; t++) ifl_rc_add_(1, x, y + 16 * t, f, g, n, 16 * t, vectors);
}

/* u, w and out of row i, from qd·S₀ and rd·S₀. */
static inline void ifl_rc_finish(const ifl_rc *x, int i, float *y, float *p) {
  const ifl_recurrence *a = x->a;
  const int cols = 16 * x->tiles, t = x->token[i];
  if (a->delta != IFL_DELTA_NONE) {
    ifl_rc_add(x, p, x->rk + 16 * i, x->rb + 16 * i, i);
    if (a->delta == IFL_DELTA_VECTORS) memcpy(x->w[i], p, (size_t)cols * 4);
  }
  const float *v = a->v + t * a->ldv + (int64_t)x->head * a->vdim + 16 * x->tile;
  const int width = a->vdim - 16 * x->tile;
  const float beta = a->beta ? a->beta[t * a->ldbeta + x->head] : 1;
  for (int d = 0; d < cols; d += 16) {
    ifl_v16 u = ifl_load_n(v + d, width - d < 16 ? width - d : 16);
    if (a->delta == IFL_DELTA_RULE) u = u - ifl_load_a(p + d);
    ifl_store_a(x->u[i] + d, u * beta);
  }
  ifl_rc_add(x, y, x->qk + 16 * i, x->qb + 16 * i, i + 1);
  float *out = a->out + t * a->ldo + (int64_t)x->head * a->vdim + 16 * x->tile;
  for (int d = 0; d < cols; d += 16) {
    const int n = width - d < 16 ? width - d : 16;
    ifl_v16 o = ifl_load_a(y + d);
    if (a->skip) o = ifl_fma(ifl_set1(a->skip[x->head]), ifl_load_n(v + d, n), o);
    ifl_store_n(out + d, o, n);
  }
}

/* Computes rows lo … hi−1 of the cell, all of this step. S₀ is s, or zero if that is NULL. */
static void ifl_rc_rows(ifl_rc *x, int lo, int hi, const float *s) {
  const ifl_recurrence *a = x->a;
  const int64_t d = ifl_round16(a->dim), cols = 16 * x->tiles;
  const int reads = a->delta != IFL_DELTA_NONE, group = a->heads / a->key_heads;
  const float *in[2 * IFL_CR];
  float *out[2 * IFL_CR];
  const int known = x->dots_of == x->token[hi - 1] && x->dots_head == x->head / group;
  int n = 0;
  for (int i = lo; i < hi; i++) {
    const int t = x->token[i];
    float *q = x->erase + d;
    ifl_rc_pad(q, a->q + t * a->ldq + (int64_t)(x->head / group) * a->dim, a->dim);
    for (int c = 0; c < d; c += 16) ifl_store_a(q + c, ifl_load_a(q + c) * a->scale);
    if (a->delta == IFL_DELTA_VECTORS) ifl_rc_pad(x->erase, a->erase + t * a->lderase + (int64_t)x->head * a->dim, a->dim);
    ifl_rc_row(x, i, q, a->delta == IFL_DELTA_VECTORS ? x->erase : reads ? x->k[i] : NULL, known);
    in[n] = x->qd + i * d, out[n++] = x->outq + i * cols;
    if (reads) in[n] = x->rd + i * d, out[n++] = x->outr + i * cols;
  }
  x->dots_of = x->token[hi - 1], x->dots_head = x->head / group;
  if (s) ifl_rc_read(in, n, a->dim, s, x->tiles, out);
  else
    for (int i = 0; i < n; i++) memset(out[i], 0, (size_t)cols * 4);
  for (int i = lo; i < hi; i++) ifl_rc_finish(x, i, x->outq + i * cols, x->outr + i * cols);
}

/* Fetches a line of both matrices of ifl_rc_write, 8 KB ahead of its use. */
enum { IFL_RC_AHEAD = 2048 };
IFL_INLINE void ifl_rc_fetch_line(const float *s, const float *to, int64_t at) {
  if (s) __builtin_prefetch(s + at, 0, 2);
  __builtin_prefetch(to + at, 1, 2);
}

/* Fetches what the next head reads of the first n rows of its cell into the L2 cache. (gcc 12 drops calls of a function that only
 * prefetches, unless it is inlined at once.) */
IFL_INLINE void ifl_rc_fetch_rows(const ifl_rc *x, int n) {
  const ifl_recurrence *a = x->a;
  const int d16 = ifl_round16(a->dim), cols = 16 * x->tiles, last = (x->head + 1) % (a->heads / a->key_heads) == 0;
  for (int i = 0; i < n; i++) {
    for (int d = 0; last && d < d16; d += 16) __builtin_prefetch(x->k[i] + d16 + d, 0, 2);
    for (int d = 0; d < cols; d += 16) __builtin_prefetch(x->u[i] + cols + d, 0, 2);
  }
}

/* S of the next cell from the 16 rows of this one: to = s·E + Σ_j coef[j]·u_j. to may be s. */
static __attribute__((noinline)) void ifl_rc_write(const ifl_rc *x, const float *s, float *to) {
  const int dim = x->a->dim, d16 = ifl_round16(dim), vectors = x->a->delta == IFL_DELTA_VECTORS;
  for (int t = 0; t < x->tiles; t++) {
    for (int p = 0; p < 16; p += IFL_LANES) {
      ifl_lanes u[IFL_CR];
      for (int j = 0; j < IFL_CR; j++) u[j] = ifl_lanes_load(x->u[j] + 16 * t + p);
      const int64_t base = (int64_t)t * dim * 16 + p;
      int k = 0;
#define IFL_RC_LINES_(n)                                                                                     \
  for (; k + (n) <= dim; k += (n)) {                                                                         \
    ifl_lanes acc[n];                                                                                        \
    for (int i = 0; i < (n); i++) acc[i] = s ? ifl_lanes_load(s + base + (k + i) * 16) * x->e[k + i] : ifl_lanes_set1(0); \
    _Pragma("GCC unroll 16") for (int j = 0; j < IFL_CR; j++)                                                \
      _Pragma("GCC unroll 4") for (int i = 0; i < (n); i++)                                                  \
        acc[i] = ifl_lanes_fma(u[j], ifl_lanes_set1(x->coef[j * d16 + k + i]), acc[i]);                      \
    for (int i = 0; i < (n); i++) ifl_lanes_store(to + base + (k + i) * 16, acc[i]);                         \
    for (int i = 0; i < (n) && p == 0; i++) ifl_rc_fetch_line(s, to, base + (k + i) * 16 + IFL_RC_AHEAD);         \
  }
      IFL_RC_LINES_(4)
      IFL_RC_LINES_(1)
#undef IFL_RC_LINES_
      for (k = 0; vectors && k < dim; k++) {
        ifl_lanes acc = ifl_lanes_load(to + base + k * 16);
        for (int j = 0; j < IFL_CR; j++) acc = ifl_lanes_fma(ifl_lanes_load(x->w[j] + 16 * t + p), ifl_lanes_set1(x->coef_b[j * d16 + k]), acc);
        ifl_lanes_store(to + base + k * 16, acc);
      }
    }
  }
}

static void ifl_rc_advance(ifl_rc *x, const float *s, float *to) {
  const ifl_recurrence *a = x->a;
  const int vectors = a->delta == IFL_DELTA_VECTORS, d16 = ifl_round16(a->dim);
  float factor[IFL_CR], all = 1;
  for (int j = 0; j < IFL_CR; j++) factor[j] = 1;
  if (a->decays == IFL_DECAY_FIXED || a->decays == IFL_DECAY_HEAD) ifl_rc_factors(x, IFL_CR - 1, factor, &all);
  factor[IFL_CR - 1] = 1;
  for (int d = 0; d < a->dim; d += 16) {
    ifl_v16 sum = ifl_set1(0), e = ifl_set1(1);
    for (int j = IFL_CR - 1; j >= 0; j--) {
      const ifl_v16 f = e * factor[j];
      ifl_store_a(x->coef + j * d16 + d, ifl_load_a(x->k[j] + d) * f);
      if (vectors) ifl_store_a(x->coef_b + j * d16 + d, ifl_load_a(x->b[j] + d) * f);
      if (a->decays == IFL_DECAY_CHANNEL) sum += ifl_load_a(x->g[j] + d), e = ifl_exp(sum);
    }
    ifl_store_a(x->e + d, e * all);
  }
  ifl_rc_write(x, s, to);
}

/* Computes the nodes of a tree whose root follows `have` rows of the current cell; s is S before them. */
static void ifl_rc_tree(ifl_rc *x, int have, const float *s) {
  const ifl_recurrence *a = x->a;
  const ifl_step *step = a->cells.step;
  const int first = step->first[x->seq], past = step->past[x->seq];
  const ifl_rc line = *x; /* the rows of earlier steps */
  for (int t = first; t < step->first[x->seq + 1]; t++) {
    const uint64_t *words = step->mask + (int64_t)t * step->mask_words;
    const float *now = s;
    int n = have;
    memcpy(x->k, line.k, sizeof x->k), memcpy(x->g, line.g, sizeof x->g), memcpy(x->b, line.b, sizeof x->b);
    memcpy(x->u, line.u, sizeof x->u), memcpy(x->w, line.w, sizeof x->w);
    for (int i = first; i <= t; i++) {
      if (i < t && !(words[(i - first) / 64] >> ((i - first) % 64) & 1)) continue;
      if (n == IFL_CR) {
        ifl_rc_advance(x, now, x->branch);
        now = x->branch, n = 0;
      }
      const int r = past + i - first;
      ifl_rc_from_token(x, n++, i, ifl_cell_row(&a->cells, ifl_cell_of(step, x->seq, r), r));
    }
    ifl_rc_rows(x, n - 1, n, now);
  }
}

/* The matrix before a cell, from this unit's first tile on. */
static inline float *ifl_rc_start(const ifl_rc *x, int32_t id) {
  const ifl_recurrence *a = x->a;
  return ifl_cell_start(&a->cells, id) + ((int64_t)x->head * (ifl_round16(a->vdim) / 16) + x->tile) * a->dim * 16;
}

static void ifl_rc_unit(ifl_rc *x) {
  const ifl_recurrence *a = x->a;
  const ifl_step *s = a->cells.step;
  const int past = s->past[x->seq], first = s->first[x->seq], tree = ifl_tree(s, x->seq);
  const int end = tree ? past : past + s->first[x->seq + 1] - first, last = tree ? past / IFL_CR : (end - 1) / IFL_CR;
  const int32_t *cell = s->cell + s->cell_at[x->seq];
  int c = s->cell_from[x->seq];
  const float *now = c ? ifl_rc_start(x, *cell) : NULL;
  for (;; c++, cell++) {
    const int lo = c * IFL_CR, rows = end - lo < IFL_CR ? end - lo : IFL_CR;
    int have = past - lo < 0 ? 0 : past - lo < IFL_CR ? past - lo : IFL_CR;
    for (int i = 0; i < rows; i++) {
      float *row = *cell < 0 ? NULL : ifl_cell_row(&a->cells, *cell, i);
      if (i < have) ifl_rc_from_cell(x, i, row);
      else ifl_rc_from_token(x, i, first + lo + i - past, row);
    }
    if (have < rows) {
      ifl_rc_fetch_rows(x, have);
      ifl_rc_rows(x, have, rows, now);
    }
    if (c == last) {
      if (tree) ifl_rc_tree(x, have, now);
      return;
    }
    float *to = cell[1] < 0 ? x->state : ifl_rc_start(x, cell[1]);
    ifl_rc_advance(x, now, to);
    now = to;
  }
}

/* Divides heads, and if there are few, their columns among the threads: a unit belongs to the thread with the middle of its work. */
static __attribute__((unused)) void ifl_run_recurrence(const ifl_recurrence *a) {
  const ifl_step *s = a->cells.step;
  const int tiles = ifl_round16(a->vdim) / 16;
  int64_t total = 0, units = 0, done = 0;
  for (int q = 0; q < s->seqs; q++) {
    const int n = s->first[q + 1] - s->first[q];
    if (n > 0) total += n + 1, units += a->heads;
  }
  int parts = 1;
  while (parts < tiles && units * parts < 4 * a->cells.threads && a->cells.threads > 1) parts *= 2;
  const int each = (tiles + parts - 1) / parts, count = (tiles + each - 1) / each;
  total *= 2 * (int64_t)a->heads * count;
  ifl_rc x;
  ifl_rc_open(&x, a);
  for (int q = 0; q < s->seqs; q++) {
    const int n = s->first[q + 1] - s->first[q];
    for (int u = 0; n > 0 && u < a->heads * count; u++, done += n + 1) {
      if ((2 * done + n + 1) * a->cells.threads / total != a->cells.tid) continue;
      x.seq = q, x.head = u / count, x.tile = u % count * each;
      x.tiles = tiles - x.tile < each ? tiles - x.tile : each;
      ifl_rc_unit(&x);
    }
  }
}
