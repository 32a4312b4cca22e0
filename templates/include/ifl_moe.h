/* Mixture of experts: routing of a row, and the products of a step's rows with the experts they go to. */
#pragma once
#include "ifl_kernel.h"
#include "ifl_pack.h"
#include "ifl_vec.h"
#include <math.h>
#include <string.h>

#define IFL_MAX_EXPERTS 1024

typedef enum { IFL_ROUTE_SOFTMAX, IFL_ROUTE_SIGMOID, IFL_ROUTE_SOFTMAX_TOPK } ifl_route_score;

/* Indices of the k greatest of n numbers, the greatest first; of equal ones the lower index. */
static inline void ifl_greatest(const float *x, int n, int k, int *out) {
  for (int i = 0; i < k; i++) {
    int best = -1;
    for (int e = 0; e < n; e++) {
      int taken = 0;
      for (int j = 0; j < i && !taken; j++) taken = out[j] == e;
      if (!taken && (best < 0 || x[e] > x[best])) best = e;
    }
    out[i] = best;
  }
}

static inline void ifl_softmax_small(float *x, int n) {
  float top = x[0], sum = 0;
  for (int i = 1; i < n; i++) top = x[i] > top ? x[i] : top;
  for (int i = 0; i < n; i++) sum += x[i] = expf(x[i] - top);
  for (int i = 0; i < n; i++) x[i] /= sum;
}

/* Leaves the choice of the best groups and sets that of the others to 0 (DeepSeek-V2, §2.1.2; top2: V3, §2.1.2). */
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
    for (int e = g * size; !kept && e < (g + 1) * size; e++) choice[e] = 0;
  }
}

/* The weight of each expert for one row, zero for all but the chosen ones: the op route. */
static __attribute__((unused)) void ifl_row_route(float *out, const float *logits, const float *bias, int n, int k, ifl_route_score score, int norm,
                                                  float scale, int groups, int top_groups, int top2) {
  float x[IFL_MAX_EXPERTS], choice[IFL_MAX_EXPERTS], w[IFL_MAX_EXPERTS];
  int chosen[IFL_MAX_EXPERTS];
  memcpy(x, logits, (size_t)n * 4);
  if (score == IFL_ROUTE_SOFTMAX) ifl_softmax_small(x, n);
  if (score == IFL_ROUTE_SIGMOID)
    for (int e = 0; e < n; e++) x[e] = 1 / (1 + expf(-x[e]));
  for (int e = 0; e < n; e++) choice[e] = x[e] + (bias ? bias[e] : 0);
  if (groups > 0) ifl_limit_groups(choice, n, groups, top_groups, top2);
  ifl_greatest(choice, n, k, chosen);
  for (int i = 0; i < k; i++) w[i] = x[chosen[i]];
  if (score == IFL_ROUTE_SOFTMAX_TOPK) ifl_softmax_small(w, k);
  if (norm) {
    float sum = 1e-20f;
    for (int i = 0; i < k; i++) sum += w[i];
    for (int i = 0; i < k; i++) w[i] /= sum;
  }
  memset(out, 0, (size_t)n * 4);
  for (int i = 0; i < k; i++) out[chosen[i]] = w[i] * scale;
}

typedef enum { IFL_SILU, IFL_GELU, IFL_GELU_TANH, IFL_RELU, IFL_SWIGLU_OAI } ifl_expert_act;

/* One matrix of every expert, and how to multiply by it. */
typedef struct {
  const uint8_t *w;      /* of expert 0; NULL: there is none */
  int64_t stride, panel; /* bytes of an expert's matrix, of a panel */
  const float *bias;     /* of expert 0, or NULL */
  int64_t bias_stride;   /* floats */
  int n, k;
  const ifl_mm *mm;
  const int *tile;       /* rows of a tile of each implementation */
  const uint8_t *choice; /* implementation for 0…IFL_ROWS-1 rows */
} ifl_expert_matrix;

typedef struct {
  ifl_team *team;
  int tid, threads, rows, experts, top_k;
  const float *x; int64_t ldx;
  const float *route; int64_t ldr;
  float *out; int64_t ldo;
  ifl_act_kind act_in, act_hidden; /* how rows are packed for gate and up, and for down */
  ifl_expert_matrix gate, up, down;
  ifl_expert_act act;
  float limit, alpha;
  uint8_t *shared; /* ifl_experts_bytes(…), of the team */
  float *y;        /* 2 · rows · 64 floats, per thread */
  uint8_t *mm;     /* kernel scratch, per thread */
} ifl_experts;

enum { IFL_EXPERT_COLS = 64 }; /* columns of a unit of work */

/* Pairs of a row and an expert that a step may have, and the bytes they need. */
static inline int64_t ifl_experts_bytes(int rows, int experts, int top_k, int d, int f, ifl_act_kind in, ifl_act_kind hidden) {
  const int64_t pairs = (int64_t)rows * top_k;
  return ifl_round64((experts + 1) * 4) + ifl_round64(pairs * 4) + pairs * ifl_tile_bytes(in, d, 1) +
         ifl_round64(pairs * ((f + 15) & ~15) * 4) + pairs * ifl_tile_bytes(hidden, f, 1);
}

static inline void ifl_pack_row(ifl_act_kind kind, uint8_t *tile, const float *x, int k, int mt, int m) {
  switch (kind) {
  case IFL_F32: ifl_pack_f32(tile, x, k, mt, m); break;
  case IFL_A8_B32: ifl_pack_a8_b32(tile, x, k, mt, m); break;
  case IFL_A8_B64: ifl_pack_a8_b64(tile, x, k, mt, m); break;
  }
}

static inline int ifl_expert_impl(const ifl_expert_matrix *m, int rows) { return m->choice[rows < IFL_ROWS ? rows : IFL_ROWS - 1]; }

static inline ifl_v16 ifl_expert_hidden(const ifl_experts *p, ifl_v16 g, ifl_v16 u) {
  switch (p->act) {
  case IFL_SILU: g = g * ifl_sigmoid(g); break;
  case IFL_GELU: g = 0.5f * g * (1.0f + ifl_erf(g * 0.70710678f)); break;
  case IFL_GELU_TANH: g = 0.5f * g * (1.0f + ifl_tanh(0.79788456f * (g + 0.044715f * g * g * g))); break;
  case IFL_RELU: g = ifl_max(g, ifl_set1(0)); break;
  case IFL_SWIGLU_OAI: {
    const ifl_v16 l = ifl_set1(p->limit);
    g = ifl_min(g, l);
    u = ifl_min(ifl_max(u, -l), l);
    return (u + 1.0f) * g * ifl_sigmoid(p->alpha * g);
  }
  }
  return p->up.w ? g * u : g;
}

/* Columns n0…n0+cols-1 of one matrix for the packed rows of expert e, with its bias. */
static inline void ifl_expert_product(const ifl_experts *p, const ifl_expert_matrix *m, int e, int n0, int cols, const uint8_t *act, int rows, float *y) {
  m->mm[ifl_expert_impl(m, rows)](m->w + e * m->stride + n0 / 16 * m->panel, m->k, cols / 16, act, rows, y, cols, p->mm);
  if (!m->bias) return;
  const float *b = m->bias + e * m->bias_stride + n0;
  for (int t = 0; t < rows; t++)
    for (int j = 0; j < cols; j += 16) ifl_store(y + (int64_t)t * cols + j, ifl_load(y + (int64_t)t * cols + j) + ifl_load(b + j));
}

/* The op experts, by all threads of the team. Experts are computed one after the other on the rows that go to them, and
 * each output sums its experts in ascending order, so a row's result does not depend on the other rows. */
static __attribute__((unused)) void ifl_run_experts(const ifl_experts *p) {
  const int d = p->down.n, f = p->gate.n, f16 = (f + 15) & ~15, np = (d + 15) & ~15;
  int *first = (int *)p->shared; /* [experts + 1] */
  int *row = (int *)(p->shared + ifl_round64((p->experts + 1) * 4));
  const int64_t pairs = (int64_t)p->rows * p->top_k, in_bytes = ifl_tile_bytes(p->act_in, p->gate.k, 1), hid_bytes = ifl_tile_bytes(p->act_hidden, f, 1);
  uint8_t *in = (uint8_t *)row + ifl_round64(pairs * 4);
  float *hidden = (float *)(in + pairs * in_bytes);
  uint8_t *packed = (uint8_t *)hidden + ifl_round64(pairs * f16 * 4);
  if (p->tid == 0) {
    int n = 0;
    for (int e = 0; e < p->experts; e++) {
      first[e] = n;
      for (int t = 0; t < p->rows; t++)
        if (p->route[t * p->ldr + e] != 0 && n < pairs) row[n++] = t;
    }
    first[p->experts] = n;
  }
  ifl_barrier(p->team);
  for (int e = p->tid; e < p->experts; e += p->threads) {
    const int n = first[e + 1] - first[e], tm = p->gate.tile[ifl_expert_impl(&p->gate, n)];
    for (int i = 0; i < n; i++) {
      const int mt = n - i / tm * tm < tm ? n - i / tm * tm : tm;
      ifl_pack_row(p->act_in, in + first[e] * in_bytes + i / tm * ifl_tile_bytes(p->act_in, p->gate.k, tm), p->x + row[first[e] + i] * p->ldx, p->gate.k, mt, i % tm);
    }
  }
  ifl_barrier(p->team);
  const int units = (f16 + IFL_EXPERT_COLS - 1) / IFL_EXPERT_COLS;
  int at = 0;
  for (int e = 0; e < p->experts; e++) {
    const int n = first[e + 1] - first[e];
    if (n == 0) continue;
    for (int g = 0; g < units; g++, at++) {
      if (at % p->threads != p->tid) continue;
      const int n0 = g * IFL_EXPERT_COLS, cols = f16 - n0 < IFL_EXPERT_COLS ? f16 - n0 : IFL_EXPERT_COLS;
      float *y = p->y, *u = p->y + (int64_t)n * IFL_EXPERT_COLS;
      ifl_expert_product(p, &p->gate, e, n0, cols, in + first[e] * in_bytes, n, y);
      if (p->up.w) ifl_expert_product(p, &p->up, e, n0, cols, in + first[e] * in_bytes, n, u);
      for (int i = 0; i < n; i++)
        for (int j = 0; j < cols; j += 16) {
          const ifl_v16 v = ifl_load(y + (int64_t)i * cols + j);
          ifl_store(hidden + (first[e] + i) * (int64_t)f16 + n0 + j, ifl_expert_hidden(p, v, p->up.w ? ifl_load(u + (int64_t)i * cols + j) : v));
        }
    }
  }
  ifl_barrier(p->team);
  for (int e = p->tid; e < p->experts; e += p->threads) {
    const int n = first[e + 1] - first[e], tm = p->down.tile[ifl_expert_impl(&p->down, n)];
    for (int i = 0; i < n; i++) {
      const int mt = n - i / tm * tm < tm ? n - i / tm * tm : tm;
      ifl_pack_row(p->act_hidden, packed + first[e] * hid_bytes + i / tm * ifl_tile_bytes(p->act_hidden, f, tm), hidden + (first[e] + i) * (int64_t)f16, f, mt, i % tm);
    }
  }
  ifl_barrier(p->team);
  for (int n0 = p->tid * IFL_EXPERT_COLS; n0 < np; n0 += p->threads * IFL_EXPERT_COLS) {
    const int cols = np - n0 < IFL_EXPERT_COLS ? np - n0 : IFL_EXPERT_COLS;
    for (int t = 0; t < p->rows; t++) memset(p->out + t * p->ldo + n0, 0, (size_t)cols * 4);
    for (int e = 0; e < p->experts; e++) {
      const int n = first[e + 1] - first[e];
      if (n == 0) continue;
      ifl_expert_product(p, &p->down, e, n0, cols, packed + first[e] * hid_bytes, n, p->y);
      for (int i = 0; i < n; i++) {
        const int t = row[first[e] + i];
        const ifl_v16 r = ifl_set1(p->route[t * p->ldr + e]);
        float *out = p->out + t * p->ldo + n0;
        for (int j = 0; j < cols; j += 16) ifl_store(out + j, ifl_fma(ifl_load(p->y + (int64_t)i * cols + j), r, ifl_load(out + j)));
      }
    }
  }
}
