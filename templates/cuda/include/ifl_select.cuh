/* The op select_rows, by a block of threads; ifl_select.h of the CPU target says what it computes. A thread scores a row. */
#pragma once
#include "ifl_kv.cuh"

/* An integer that orders like x; −0 equals +0, and NaN is below all numbers. */
IFL_DEVICE uint32_t ifl_select_key(float x) {
  const uint32_t bits = __float_as_uint(x + 0.0f);
  return x != x ? 0 : bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}

template <class G> IFL_DEVICE int ifl_select_count(const G &g, const uint32_t *key, int n, uint32_t least) {
  int count = 0;
  for (int i = g.lane; i < n; i += g.lanes)
    count += key[i] >= least;
  return (int)ifl_sum_of(g, (float)count);
}

/* Reduces n candidates to the k with the greatest keys; ties go to the first. Keeps their order. part: [32], shared. */
template <class G> IFL_DEVICE int ifl_select_keep(const G &g, uint32_t *key, float *at, int n, int k, int *part) {
  if (n <= k)
    return n;
  uint32_t limit = 0; /* the kth key */
  for (int bit = 31; bit >= 0; bit--) {
    const uint32_t next = limit | 1u << bit;
    if (ifl_select_count(g, key, n, next) >= k)
      limit = next;
  }
  const int equal = k - (limit == 0xffffffffu ? 0 : ifl_select_count(g, key, n, limit + 1));
  const int warp = g.lane / 32, warps = g.lanes / 32;
  const unsigned below = (1u << (g.lane & 31)) - 1;
  int more = 0, same = 0; /* candidates above the limit, and at it, so far */
  for (int from = 0; from < n; from += g.lanes) {
    const int i = from + g.lane;
    const uint32_t x = i < n ? key[i] : 0;
    const float a = i < n ? at[i] : 0.0f;
    const unsigned over = __ballot_sync(0xffffffffu, i < n && x > limit), tied = __ballot_sync(0xffffffffu, i < n && x == limit);
    if ((g.lane & 31) == 0)
      part[2 * warp] = __popc(over), part[2 * warp + 1] = __popc(tied);
    g.sync();
    int m = more + __popc(over & below), e = same + __popc(tied & below);
    for (int w = 0; w < warps; w++) {
      m += w < warp ? part[2 * w] : 0, e += w < warp ? part[2 * w + 1] : 0;
      more += part[2 * w], same += part[2 * w + 1];
    }
    if (i < n && (x > limit || (x == limit && e < equal))) {
      const int to = m + ifl_min_int(e, equal);
      key[to] = x, at[to] = a;
    }
    g.sync();
  }
  return k;
}

/* The row of position p as token t sees it: in a tree, an ancestor may be in another row. */
IFL_DEVICE int ifl_select_slot(const ifl_step *s, int seq, int t, int p) {
  const int first = s->first[seq];
  if (!ifl_tree(s, seq) || p < s->pos[first])
    return p;
  const uint64_t *words = s->mask + (int64_t)t * s->mask_words;
  for (int i = 0; i <= t - first; i++)
    if (s->pos[first + i] == p && words[i / 64] >> (i % 64) & 1)
      return s->slot[first + i];
  return p;
}

template <class K> IFL_DEVICE float ifl_select_score(const uint8_t *page, int row, const float *q, const float *w, int heads, int dim) {
  const typename K::element *key = reinterpret_cast<const typename K::element *>(page) + ifl_kv_key_at(row, 0, dim);
  float sum = 0;
  for (int h = 0; h < heads; h++) {
    float dot = 0;
    for (int i = 0; i < dim; i++)
      dot = fmaf(K::get(key[(int64_t)i * 16]), q[h * dim + i], dot);
    sum = fmaf(fmaxf(dot, 0.0f), w[h], sum);
  }
  return sum;
}

/* The selection of token t. scratch: 2·room + 64 floats, room ≥ top + the threads of the group. */
template <class K, class G>
IFL_DEVICE void ifl_row_select_(const G &g, float *out, const float *q, const float *w, int heads, int dim, int top, int every,
                                const uint8_t *state, int64_t page_bytes, const ifl_step *s, int t, float *scratch, int room) {
  uint32_t *key = reinterpret_cast<uint32_t *>(scratch);
  float *at = scratch + room;
  int *part = reinterpret_cast<int *>(at + room);
  const int seq = s->seq[t], own = ifl_tree(s, seq) ? s->pos[t] : s->slot[t], visible = (own + 1) / every;
  int n = ifl_min_int(visible, top);
  if (visible <= top) {
    for (int i = g.lane; i < n; i += g.lanes)
      out[i] = (float)((i + 1) * every - 1);
  } else {
    n = 0;
    for (int from = 0; from < visible; from += g.lanes) {
      const int i = from + g.lane, p = (i + 1) * every - 1;
      if (i < visible) {
        const int slot = ifl_select_slot(s, seq, t, p);
        const uint8_t *page = state + ifl_kv_page(s, seq, slot) * page_bytes;
        key[n + g.lane] = ifl_select_key(ifl_select_score<K>(page, slot % IFL_PAGE_ROWS, q, w, heads, dim));
        at[n + g.lane] = (float)p;
      }
      g.sync();
      n += ifl_min_int(visible - from, g.lanes);
      if (n + g.lanes > room || from + g.lanes >= visible)
        n = ifl_select_keep(g, key, at, n, top, part);
    }
    for (int i = g.lane; i < n; i += g.lanes)
      out[i] = at[i];
  }
  for (int i = n + g.lane; i < top; i += g.lanes)
    out[i] = INFINITY;
  g.sync();
}

#define ifl_row_select_f32(...) ifl_row_select_<ifl_kv_f32>(g, __VA_ARGS__)
#define ifl_row_select_f16(...) ifl_row_select_<ifl_kv_f16>(g, __VA_ARGS__)
#define ifl_row_select_bf16(...) ifl_row_select_<ifl_kv_bf16>(g, __VA_ARGS__)
