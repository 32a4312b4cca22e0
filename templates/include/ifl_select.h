/* The op select_rows: the rows of an indexer's state that a token attends to (DeepSeek-V3.2, §2.1).
 *
 * Rows are scored in chunks of 64, one page each, in the order of their positions. Candidates are kept in this order with
 * their scores as integers of the same order. Whenever the buffer is full, it is reduced to the top candidates, so memory
 * does not grow with the context. A score depends only on the token and the row: a sum over the channels in order for each
 * head, then over the heads in order. */
#pragma once
#include "ifl_kernel.h"
#include "ifl_kv.h"
#include "ifl_vec.h"

/* An integer that orders like x; −0 equals +0, and NaN is below all numbers. */
static inline uint32_t ifl_select_key(float x) {
  uint32_t bits;
  x += 0.0f;
  memcpy(&bits, &x, 4);
  return x != x ? 0 : bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}

/* Reduces n candidates to the k with the greatest keys; ties go to the first. Keeps their order, and returns their number. */
static inline int ifl_select_keep(uint32_t *key, float *at, int n, int k) {
  if (n <= k) return n;
  uint32_t limit = 0; /* the kth key */
  for (int bit = 31; bit >= 0; bit--) {
    const uint32_t next = limit | 1u << bit;
    int count = 0;
    for (int i = 0; i < n; i++) count += key[i] >= next;
    if (count >= k) limit = next;
  }
  int equal = k, to = 0;
  for (int i = 0; i < n; i++) equal -= key[i] > limit;
  for (int i = 0; i < n && to < k; i++) {
    if (key[i] < limit || (key[i] == limit && --equal < 0)) continue;
    key[to] = key[i], at[to++] = at[i];
  }
  return to;
}

/* ifl_select_scores_TYPE computes the scores of a page's 64 rows: Σ w[h]·max(0, q[h]·k). */
#define IFL_SELECT_(type, elem, LOAD)                                                                                                  \
  static inline void ifl_select_scores_##type(float *out, const uint8_t *page, const float *q, const float *w, int heads, int dim) {  \
    const ifl_v16 zero = {0};                                                                                                          \
    for (int v = 0; v < IFL_PAGE_ROWS / 16; v++) {                                                                                     \
      const elem *keys = (const elem *)(const void *)page + (int64_t)v * ifl_round16(dim) * 16;                                        \
      ifl_v16 sum = zero;                                                                                                              \
      int h = 0;                                                                                                                       \
      for (; h + 4 <= heads; h += 4) {                                                                                                 \
        const float *a = q + (int64_t)h * dim, *b = a + dim, *c = b + dim, *d = c + dim;                                               \
        ifl_v16 sa = zero, sb = zero, sc = zero, sd = zero;                                                                            \
        for (int i = 0; i < dim; i++) {                                                                                                \
          const ifl_v16 k = LOAD(keys + (int64_t)i * 16);                                                                              \
          sa = ifl_fma(k, ifl_set1(a[i]), sa), sb = ifl_fma(k, ifl_set1(b[i]), sb);                                                    \
          sc = ifl_fma(k, ifl_set1(c[i]), sc), sd = ifl_fma(k, ifl_set1(d[i]), sd);                                                    \
        }                                                                                                                              \
        sum = ifl_fma(ifl_max(sa, zero), ifl_set1(w[h]), sum), sum = ifl_fma(ifl_max(sb, zero), ifl_set1(w[h + 1]), sum);              \
        sum = ifl_fma(ifl_max(sc, zero), ifl_set1(w[h + 2]), sum), sum = ifl_fma(ifl_max(sd, zero), ifl_set1(w[h + 3]), sum);          \
      }                                                                                                                                \
      for (; h < heads; h++) {                                                                                                         \
        ifl_v16 s = zero;                                                                                                              \
        for (int i = 0; i < dim; i++) s = ifl_fma(LOAD(keys + (int64_t)i * 16), ifl_set1(q[(int64_t)h * dim + i]), s);                 \
        sum = ifl_fma(ifl_max(s, zero), ifl_set1(w[h]), sum);                                                                          \
      }                                                                                                                                \
      ifl_store(out + 16 * v, sum);                                                                                                    \
    }                                                                                                                                  \
  }                                                                                                                                    \
  static inline __attribute__((unused)) void ifl_row_select_##type(float *out, const float *q, const float *w, int heads, int dim,     \
                                                                   int top, int every, const uint8_t *state, int64_t page_bytes,       \
                                                                   const ifl_step *s, int t, float *scratch, int room) {               \
    ifl_row_select_(out, q, w, heads, dim, top, every, state, page_bytes, s, t, scratch, room, ifl_select_scores_##type);              \
  }

typedef void (*ifl_select_scores)(float *out, const uint8_t *page, const float *q, const float *w, int heads, int dim);

/* The scores of the rows at positions base…base+63 as token t sees them. In a tree, the token's ancestors are in other rows. */
static inline void ifl_select_page(float *out, int base, const float *q, const float *w, int heads, int dim, const uint8_t *state, int64_t page_bytes,
                                   const ifl_step *s, int t, ifl_select_scores scores) {
  const int seq = s->seq[t], first = s->first[seq];
  scores(out, state + page_bytes * ifl_kv_page(s, seq, base), q, w, heads, dim);
  if (!ifl_tree(s, seq)) return;
  const uint64_t *words = s->mask + (int64_t)t * s->mask_words;
  for (int i = 0; i <= t - first; i++) {
    const int at = s->pos[first + i] - base, slot = s->slot[first + i];
    float other[IFL_PAGE_ROWS];
    if (!(words[i / 64] >> (i % 64) & 1) || at < 0 || at >= IFL_PAGE_ROWS || slot == base + at) continue;
    scores(other, state + page_bytes * ifl_kv_page(s, seq, slot), q, w, heads, dim);
    out[at] = other[slot % IFL_PAGE_ROWS];
  }
}

/* The selection of token t. scratch: 2·room floats, room ≥ top + 64. */
static inline void ifl_row_select_(float *out, const float *q, const float *w, int heads, int dim, int top, int every, const uint8_t *state,
                                   int64_t page_bytes, const ifl_step *s, int t, float *scratch, int room, ifl_select_scores scores) {
  uint32_t *key = (uint32_t *)(void *)scratch;
  float *at = scratch + room, score[IFL_PAGE_ROWS];
  const int own = ifl_tree(s, s->seq[t]) ? s->pos[t] : s->slot[t], visible = (own + 1) / every;
  int n = 0;
  if (visible <= top) {
    for (; n < visible; n++) out[n] = (float)((n + 1) * every - 1);
  } else {
    for (int base = 0, p = every - 1; base <= own; base += IFL_PAGE_ROWS) {
      if (p >= base + IFL_PAGE_ROWS) continue; /* no row of this page is visible */
      ifl_select_page(score, base, q, w, heads, dim, state, page_bytes, s, t, scores);
      for (; p <= own && p < base + IFL_PAGE_ROWS; p += every) key[n] = ifl_select_key(score[p - base]), at[n++] = (float)p;
      if (n + IFL_PAGE_ROWS > room) n = ifl_select_keep(key, at, n, top);
    }
    n = ifl_select_keep(key, at, n, top);
    memcpy(out, at, (size_t)n * 4);
  }
  for (; n < top; n++) out[n] = __builtin_inff();
}

#define IFL_SELECT_F32_(p) ifl_load(p)
IFL_SELECT_(f32, float, IFL_SELECT_F32_)
IFL_SELECT_(f16, uint16_t, ifl_load_f16)
IFL_SELECT_(bf16, uint16_t, ifl_load_bf16)
