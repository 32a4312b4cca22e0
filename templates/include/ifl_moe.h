/* Mixture of experts: routing of a row, and the matmuls of a step's rows with their experts. */
#pragma once
#include "ifl_kernel.h"
#include "ifl_pack.h"
#include "ifl_vec.h"
#include <math.h>
#include <string.h>

#define IFL_MAX_EXPERTS 1024

typedef enum { IFL_ROUTE_SOFTMAX, IFL_ROUTE_SIGMOID, IFL_ROUTE_SQRTSOFTPLUS, IFL_ROUTE_SOFTMAX_TOPK } ifl_route_score;

/* Indices of the k ≤ n largest of n numbers in descending order; ties go to the lower index. NaN counts as −∞. */
static inline void ifl_greatest(const float *x, int n, int k, int *out) {
  float best[IFL_MAX_EXPERTS];
  int have = 0;
  for (int e = 0; e < n; e++) {
    const float v = x[e] == x[e] ? x[e] : -__builtin_inff();
    if (have == k && v <= best[k - 1]) continue;
    int at = have < k ? have++ : k - 1;
    for (; at > 0 && best[at - 1] < v; at--) best[at] = best[at - 1], out[at] = out[at - 1];
    best[at] = v, out[at] = e;
  }
}

/* Softmax of n ≤ IFL_MAX_EXPERTS numbers in place. */
static inline void ifl_softmax_small(float *x, int n) {
  ifl_v16 top = ifl_set1(-__builtin_inff()), sum = {0};
  for (int i = 0; i < n; i += 16) top = ifl_max(top, ifl_select(ifl_first(n - i), ifl_load_n(x + i, n - i < 16 ? n - i : 16), top));
  const float most = ifl_max_of(top);
  for (int i = 0; i < n; i += 16) {
    const int have = n - i < 16 ? n - i : 16;
    const ifl_v16 e = ifl_select(ifl_first(have), ifl_exp(ifl_load_n(x + i, have) - most), ifl_set1(0));
    ifl_store_n(x + i, e, have);
    sum += e;
  }
  const float total = ifl_sum(sum);
  for (int i = 0; i < n; i++) x[i] /= total;
}

/* Group-limited routing: sets the scores of experts outside the best groups to −∞ (DeepSeek-V2, §2.1.2; top2: V3, §2.1.2). */
static inline void ifl_limit_groups(float *choice, int n, int groups, int top, int top2) {
  float worth[IFL_MAX_EXPERTS];
  int best[IFL_MAX_EXPERTS], pair[2];
  const int size = n / groups;
  for (int g = 0; g < groups; g++) {
    ifl_greatest(choice + g * size, size, top2 ? 2 : 1, pair);
    worth[g] = choice[g * size + pair[0]] + (top2 ? choice[g * size + pair[1]] : 0);
  }
  ifl_greatest(worth, groups, top, best);
  for (int g = 0; g < groups; g++) {
    int kept = 0;
    for (int i = 0; i < top; i++) kept |= best[i] == g;
    for (int e = g * size; !kept && e < (g + 1) * size; e++) choice[e] = -__builtin_inff();
  }
}

/* The op route: the weights of n ≤ IFL_MAX_EXPERTS experts for one row, zero for all but the selected ones: those of `ids`, or if it
 * is NULL those with the greatest scores. */
static __attribute__((unused)) void ifl_row_route(float *out, const float *logits, const float *bias, int n, int k, ifl_route_score score, int norm,
                                                  float scale, int groups, int top_groups, int top2, const float *ids) {
  float x[IFL_MAX_EXPERTS], choice[IFL_MAX_EXPERTS], w[IFL_MAX_EXPERTS];
  int chosen[IFL_MAX_EXPERTS];
  memcpy(x, logits, (size_t)n * 4);
  if (score == IFL_ROUTE_SOFTMAX) ifl_softmax_small(x, n);
  for (int i = 0; score == IFL_ROUTE_SIGMOID && i < n; i += 16) {
    const int have = n - i < 16 ? n - i : 16;
    ifl_store_n(x + i, ifl_sigmoid(ifl_load_n(x + i, have)), have);
  }
  for (int i = 0; score == IFL_ROUTE_SQRTSOFTPLUS && i < n; i += 16) {
    const int have = n - i < 16 ? n - i : 16;
    const ifl_v16 v = ifl_load_n(x + i, have);
    ifl_store_n(x + i, ifl_sqrt(ifl_max(v, ifl_set1(0)) + ifl_log1p(ifl_exp(-ifl_abs(v)))), have);
  }
  for (int e = 0; e < n; e++) choice[e] = x[e] + (bias ? bias[e] : 0);
  if (groups > 0) ifl_limit_groups(choice, n, groups, top_groups, top2);
  if (ids)
    for (int i = 0; i < k; i++) chosen[i] = ids[i] > 0 ? ids[i] < (float)n ? (int)ids[i] : n - 1 : 0;
  else ifl_greatest(choice, n, k, chosen);
  for (int i = 0; i < k; i++) w[i] = x[chosen[i]];
  if (score == IFL_ROUTE_SOFTMAX_TOPK) ifl_softmax_small(w, k);
  if (norm) {
    float sum = 1e-20f;
    for (int i = 0; i < k; i++) sum += w[i];
    for (int i = 0; i < k; i++) w[i] /= sum;
  }
  memset(out, 0, (size_t)n * 4);
  for (int i = 0; i < k; i++) out[chosen[i]] += w[i] * scale; /* a table may name an expert twice */
}

/* The op route with score=sparsemixer: the weights of two experts (SparseMixer, Phi-3.5-MoE). */
static __attribute__((unused)) void ifl_row_sparsemixer(float *out, const float *logits, int n, float jitter, float scale) {
  int chosen[2] = {-1, -1};
  float weight[2];
  for (int i = 0; i < 2; i++) {
    int best = -1;
    for (int e = 0; e < n; e++)
      if (e != chosen[0] && (best < 0 || logits[e] > logits[best])) best = e;
    const float most = logits[best];
    float sum = 0;
    for (int e = 0; e < n; e++) {
      const float size = fabsf(logits[e]) > most ? fabsf(logits[e]) : most;
      if (e != chosen[0] && !((most - logits[e]) / size > 2 * jitter)) sum += expf(logits[e] - most);
    }
    chosen[i] = best, weight[i] = 1 / sum;
  }
  memset(out, 0, (size_t)n * 4);
  for (int i = 0; i < 2; i++) out[chosen[i]] = weight[i] * scale;
}

typedef enum { IFL_SILU, IFL_GELU, IFL_GELU_TANH, IFL_RELU, IFL_RELU2, IFL_SWIGLU_OAI } ifl_expert_act;

/* One matrix of every expert, with its kernels. */
typedef struct {
  const uint8_t *w;      /* of expert 0; NULL: none */
  int64_t stride, panel; /* bytes per expert's matrix and per panel */
  const float *bias;     /* of expert 0, or NULL; readable up to a multiple of 16 */
  int64_t bias_stride;   /* floats */
  int n, k;
  const ifl_impl *impls; /* the first has tiles of one row */
  const uint8_t *choice; /* index of the implementation for 0…IFL_ROWS-1 rows */
} ifl_expert_matrix;

/* The op experts. Rows of x, route and out are 64-byte aligned; out is written up to a multiple of 16 columns. */
typedef struct {
  ifl_pool *pool;
  int tid, threads, rows, experts, top_k;
  const float *x; int64_t ldx;
  const float *route; int64_t ldr;
  float *out; int64_t ldo;
  ifl_act_kind act_in, act_hidden; /* packing of rows for gate and up, and for down */
  int outliers;                    /* per row of x */
  ifl_expert_matrix gate, up, down;
  ifl_expert_act act;
  float limit, alpha;
  int scale_input; /* route multiplies the input of an expert, not its output */
  uint8_t *shared; /* ifl_experts_bytes(…), shared by the pool */
  float *y;        /* 2 · rows · 64 floats, per thread */
  uint8_t *mm;     /* kernel scratch, per thread */
} ifl_experts;

enum {
  IFL_EXPERT_COLS = 64,    /* columns per unit of work: whole blocks of every packing */
  IFL_EXPERT_FEW = 64,     /* maximum pairs that every thread lists for itself, which is faster than a barrier */
  IFL_EXPERT_ROW = 1 << 14 /* maximum bytes of a single packed row that every thread packs for itself */
};

/* Bytes of ifl_experts.shared. A pair is a row and one of its experts. The n rows of an expert are packed in tiles, which
 * need no more memory than n tiles of one row: each part of a tile of mt rows is mt times that of one row, rounded up to
 * 64 bytes once instead of mt times. */
static inline int64_t ifl_experts_bytes(int rows, int experts, int top_k, int d, int f, ifl_act_kind in, ifl_act_kind hidden) {
  const int64_t pairs = (int64_t)rows * top_k;
  return ifl_round64((2 * (int64_t)experts + 2 + pairs) * 4) + pairs * (ifl_tile_bytes(in, d, 1) + ifl_tile_bytes(hidden, f, 1));
}

/* The rows of each expert: expert[i] owns pairs first[i] … first[i+1]-1 with rows row[…]. Experts without rows are
 * omitted; experts and rows are in ascending order. */
typedef struct {
  int used;
  int *expert, *first, *row;
  const uint8_t *in; /* packed rows of all pairs, or the one row of the step */
  uint8_t *hidden;   /* packed hidden rows of all pairs */
  int64_t in_bytes, hidden_bytes; /* of a pair */
} ifl_expert_pairs;

static inline void ifl_expert_list(const ifl_experts *p, ifl_expert_pairs *m) {
  const int64_t pairs = (int64_t)p->rows * p->top_k;
  int n = 0;
  m->used = 0;
  for (int e = 0; e < p->experts; e++) {
    const int before = n;
    for (int t = 0; t < p->rows; t++)
      if (p->route[t * p->ldr + e] != 0 && n < pairs) m->row[n++] = t;
    if (n > before) m->expert[m->used] = e, m->first[m->used++] = before;
  }
  m->first[m->used] = n;
}

static inline void ifl_pack_row(ifl_act_kind kind, int outliers, uint8_t *tile, const float *x, int k, int mt, int m) {
  switch (kind) {
  case IFL_F32: ifl_pack_f32(tile, x, k, mt, m); break;
  case IFL_A8_B16: ifl_pack_a8_b16_outliers(tile, x, k, mt, m, outliers); break;
  case IFL_A8_B32: ifl_pack_a8_b32_outliers(tile, x, k, mt, m, outliers); break;
  case IFL_A8_B64: ifl_pack_a8_b64_outliers(tile, x, k, mt, m, outliers); break;
  case IFL_BF16: ifl_pack_bf16(tile, x, k, mt, m); break;
  }
}

/* Packs n columns x into row m of a tile, from block c0 / block on. Bit-identical to packing the whole row. */
IFL_INLINE void ifl_pack_blocks_(uint8_t *tile, const float *x, int k, int mt, int m, int c0, int n, const int block) {
  const int kp = (k + block - 1) / block * block;
  float *scales = (float *)(tile + ifl_a8_scale_at(kp, mt)), *sums = (float *)(tile + ifl_a8_sum_at(kp, mt, block));
  int32_t *corr = (int32_t *)(tile + ifl_a8_corr_at(kp, mt, block));
  if (c0 == 0 && m == 0) ((ifl_outliers *)(tile + ifl_a8_outliers_at(kp, mt, block)))->each = 0;
  for (int c = 0; c < n; c += block) {
    const int64_t at = (int64_t)((c0 + c) / block) * mt + m;
    int8_t codes[64];
    int32_t sum;
    float room[64];
    const float *whole = ifl_whole_block_(x + c, n - c, block, room);
    const float top = ifl_top_of_(whole, block), scale = top / 127.0f;
    ifl_quantize_(codes, whole, block, top, &sum);
    for (int j = 0; j < block / 4; j++) memcpy(tile + 4 * ((int64_t)((c0 + c) / 4 + j) * mt + m), codes + 4 * j, 4);
    scales[at] = scale;
    sums[at] = scale * (float)sum;
    corr[at] = -128 * sum;
  }
}

static inline void ifl_pack_cols(ifl_act_kind kind, uint8_t *tile, const float *x, int k, int mt, int m, int c0, int n) {
  switch (kind) {
  case IFL_F32:
    for (int i = 0; i < n; i++) ((float *)tile)[(int64_t)(c0 + i) * mt + m] = x[i];
    break;
  case IFL_A8_B16: ifl_pack_blocks_(tile, x, k, mt, m, c0, n, 16); break;
  case IFL_A8_B32: ifl_pack_blocks_(tile, x, k, mt, m, c0, n, 32); break;
  case IFL_A8_B64: ifl_pack_blocks_(tile, x, k, mt, m, c0, n, 64); break;
  case IFL_BF16: ifl_pack_bf16(tile + (int64_t)c0 / 2 * mt * 4, x, n, mt, m); break; /* c0 is even */
  }
}

static inline int ifl_expert_impl(const ifl_expert_matrix *m, int rows) { return m->choice[rows < IFL_ROWS ? rows : IFL_ROWS - 1]; }

/* The implementations for gate and up; both read the same tiles. */
static inline void ifl_expert_impls(const ifl_experts *p, int rows, int *gate, int *up) {
  *gate = ifl_expert_impl(&p->gate, rows);
  *up = p->up.w ? ifl_expert_impl(&p->up, rows) : 0;
  if (p->up.w && p->gate.impls[*gate].tile != p->up.impls[*up].tile) *gate = *up = 0;
}

/* The number of rows of the tile that contains row i of n. */
static inline int ifl_expert_tile(int n, int i, int tm) { return n - i / tm * tm < tm ? n - i / tm * tm : tm; }

/* Packs the rows of all pairs; each thread packs some tiles. */
static inline void ifl_expert_pack(const ifl_experts *p, const ifl_expert_pairs *m, uint8_t *in) {
  int at = 0;
  for (int e = 0; e < m->used; e++) {
    const int n = m->first[e + 1] - m->first[e];
    int gate, up;
    ifl_expert_impls(p, n, &gate, &up);
    const int tm = p->gate.impls[gate].tile;
    for (int i = 0; i < n; i += tm, at++) {
      if (at % p->threads != p->tid) continue;
      const int mt = ifl_expert_tile(n, i, tm);
      uint8_t *tile = in + m->first[e] * m->in_bytes + i / tm * ifl_tile_bytes(p->act_in, p->gate.k, tm);
      for (int r = 0; r < mt; r++) ifl_pack_row(p->act_in, p->outliers, tile, p->x + m->row[m->first[e] + i + r] * p->ldx, p->gate.k, mt, r);
    }
  }
}

static inline ifl_v16 ifl_expert_value(const ifl_experts *p, ifl_v16 g, ifl_v16 u) {
  if (p->limit > 0) g = ifl_min(g, ifl_set1(p->limit)), u = ifl_min(ifl_max(u, ifl_set1(-p->limit)), ifl_set1(p->limit));
  switch (p->act) {
  case IFL_SILU: g = g * ifl_sigmoid(g); break;
  case IFL_GELU: g = 0.5f * g * (1.0f + ifl_erf(g * 0.70710678f)); break;
  case IFL_GELU_TANH: g = 0.5f * g * (1.0f + ifl_tanh(0.79788456f * (g + 0.044715f * g * g * g))); break;
  case IFL_RELU: g = ifl_max(g, ifl_set1(0)); break;
  case IFL_RELU2: g = ifl_max(g, ifl_set1(0)) * ifl_max(g, ifl_set1(0)); break;
  case IFL_SWIGLU_OAI: return (u + 1.0f) * g * ifl_sigmoid(p->alpha * g);
  }
  return p->up.w ? g * u : g;
}

/* Columns n0…n0+cols-1 of one matrix for the packed rows of expert e, with its bias. */
static inline void ifl_expert_product(const ifl_experts *p, const ifl_expert_matrix *m, int impl, int e, int n0, int cols, const uint8_t *act, int rows, float *y) {
  m->impls[impl].run(m->w + e * m->stride + n0 / 16 * m->panel, m->k, cols / 16, act, rows, y, cols, p->mm);
  if (!m->bias) return;
  const float *b = m->bias + e * m->bias_stride + n0;
  for (int t = 0; t < rows; t++)
    for (int j = 0; j < cols; j += 16) ifl_store(y + (int64_t)t * cols + j, ifl_load(y + (int64_t)t * cols + j) + ifl_load(b + j));
}

/* A unit of the first half: 64 hidden columns of the i-th used expert, packed for down. */
static inline void ifl_expert_unit(const ifl_experts *p, const ifl_expert_pairs *m, int i, int unit) {
  const int f = p->gate.n, n0 = unit * IFL_EXPERT_COLS, n = m->first[i + 1] - m->first[i], e = m->expert[i];
  const int have = f - n0 < IFL_EXPERT_COLS ? f - n0 : IFL_EXPERT_COLS, cols = (have + 15) & ~15;
  const uint8_t *in = p->rows == 1 ? m->in : m->in + m->first[i] * m->in_bytes;
  const int tm = p->down.impls[ifl_expert_impl(&p->down, n)].tile;
  float *y = p->y, *u = p->y + (int64_t)n * cols;
  int gate, up;
  ifl_expert_impls(p, n, &gate, &up);
  ifl_expert_product(p, &p->gate, gate, e, n0, cols, in, n, y);
  if (p->up.w) ifl_expert_product(p, &p->up, up, e, n0, cols, in, n, u);
  else u = y;
  for (int r = 0; r < n; r++, y += cols, u += cols) {
    const ifl_v16 by = ifl_set1(p->scale_input ? p->route[m->row[m->first[i] + r] * p->ldr + e] : 1);
    for (int j = 0; j < cols; j += 16) ifl_store(y + j, ifl_expert_value(p, ifl_load(y + j) * by, ifl_load(u + j) * by));
    uint8_t *tile = m->hidden + m->first[i] * m->hidden_bytes + r / tm * ifl_tile_bytes(p->act_hidden, f, tm);
    ifl_pack_cols(p->act_hidden, tile, y, f, ifl_expert_tile(n, r, tm), r % tm, n0, have);
  }
}

/* The first half: act(gate·x) ⊙ up·x of all pairs. Each thread computes a range of units. The cost of a unit is its rows,
 * plus IFL_EXPERT_READ for reading its weights. */
enum { IFL_EXPERT_READ = 8 };
static inline void ifl_expert_first_half(const ifl_experts *p, const ifl_expert_pairs *m) {
  const int64_t units = (p->gate.n + IFL_EXPERT_COLS - 1) / IFL_EXPERT_COLS;
  const int64_t total = units * (m->first[m->used] + (int64_t)m->used * IFL_EXPERT_READ);
  const int64_t lo = total * p->tid / p->threads, hi = total * (p->tid + 1) / p->threads;
  int64_t cost = 0;
  for (int i = 0; i < m->used && cost < hi; i++) {
    const int64_t each = m->first[i + 1] - m->first[i] + IFL_EXPERT_READ;
    for (int unit = 0; unit < units; unit++, cost += each)
      if (cost >= lo && cost < hi) ifl_expert_unit(p, m, i, unit);
  }
}

/* The second half: down of all pairs, times their weights. Each thread computes a range of columns and adds the experts in
 * ascending order. */
static inline void ifl_expert_second_half(const ifl_experts *p, const ifl_expert_pairs *m) {
  const int64_t panels = (p->down.n + 15) / 16;
  const int end = (int)(panels * (p->tid + 1) / p->threads) * 16;
  for (int n0 = (int)(panels * p->tid / p->threads) * 16; n0 < end; n0 += IFL_EXPERT_COLS) {
    const int cols = end - n0 < IFL_EXPERT_COLS ? end - n0 : IFL_EXPERT_COLS;
    for (int t = 0; t < p->rows; t++) memset(p->out + t * p->ldo + n0, 0, (size_t)cols * 4);
    for (int i = 0; i < m->used; i++) {
      const int first = m->first[i], n = m->first[i + 1] - first, e = m->expert[i];
      ifl_expert_product(p, &p->down, ifl_expert_impl(&p->down, n), e, n0, cols, m->hidden + first * m->hidden_bytes, n, p->y);
      for (int r = 0; r < n; r++) {
        const int t = m->row[first + r];
        const ifl_v16 weight = ifl_set1(p->scale_input ? 1 : p->route[t * p->ldr + e]);
        float *out = p->out + t * p->ldo + n0;
        for (int j = 0; j < cols; j += 16) ifl_store(out + j, ifl_fma(ifl_load(p->y + (int64_t)r * cols + j), weight, ifl_load(out + j)));
      }
    }
  }
}

/* Runs the op experts on all threads of the pool. Each output is a sum over its row's experts in ascending order, so it does
 * not depend on the other rows or the number of threads. One token needs one barrier, a few tokens two. */
static __attribute__((unused)) void ifl_run_experts(const ifl_experts *p) {
  const int64_t pairs = (int64_t)p->rows * p->top_k;
  int few[3 * IFL_EXPERT_FEW + 1], *lists = (int *)p->shared;
  _Alignas(64) uint8_t own[IFL_EXPERT_ROW];
  ifl_expert_pairs m = {.in_bytes = ifl_tile_bytes(p->act_in, p->gate.k, 1), .hidden_bytes = ifl_tile_bytes(p->act_hidden, p->gate.n, 1)};
  uint8_t *in = p->shared + ifl_round64((2 * (int64_t)p->experts + 2 + pairs) * 4);
  m.in = in;
  m.hidden = in + pairs * m.in_bytes;
  if (pairs <= IFL_EXPERT_FEW) {
    m.expert = few, m.first = few + IFL_EXPERT_FEW, m.row = few + 2 * IFL_EXPERT_FEW + 1;
    ifl_expert_list(p, &m);
  } else {
    m.expert = lists + 1, m.first = m.expert + p->experts, m.row = m.first + p->experts + 1;
    if (p->tid == 0) {
      ifl_expert_list(p, &m);
      lists[0] = m.used;
    }
    ifl_barrier(p->pool);
    m.used = lists[0];
  }
  if (p->rows == 1 && p->act_in == IFL_F32) {
    m.in = (const uint8_t *)p->x; /* an f32 tile of one row is the row itself */
  } else if (p->rows == 1 && m.in_bytes <= IFL_EXPERT_ROW) {
    ifl_pack_row(p->act_in, p->outliers, own, p->x, p->gate.k, 1, 0);
    m.in = own;
  } else if (p->rows == 1) {
    if (p->tid == 0) ifl_pack_row(p->act_in, p->outliers, in, p->x, p->gate.k, 1, 0);
    ifl_barrier(p->pool);
  } else {
    ifl_expert_pack(p, &m, in);
    ifl_barrier(p->pool);
  }
  ifl_expert_first_half(p, &m);
  ifl_barrier(p->pool);
  ifl_expert_second_half(p, &m);
}
