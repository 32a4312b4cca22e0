/* Attention over a paged KV cache, split over the context (Flash-Decoding): the parameters of all attention kernels, and the
 * f32 kernel. In it, a thread block computes GROUP query heads of one KV head of one token over some chunks of 64 rows. With
 * several splits, the block that finishes last merges the parts in the order of the rows. Scores are stored times log₂e. */
#pragma once
#include "ifl_kv.cuh"

#define IFL_ATTN_THREADS 128
#define IFL_LOG2E 1.44269504088896341f

struct ifl_attention {
  const ifl_step *step;
  const float *q;
  int64_t ldq;
  float *out;
  int64_t ldo;
  const uint8_t *state;
  int64_t page_bytes;
  float scale, softcap; /* softcap 0: none */
  int window; /* 0: none; > 0: a row is visible if position > own − window or, if not causal, if |position − own| ≤ window; < 0: if in own's chunk of −window */
  int causal;
  const float *alibi, *sinks; /* [heads], or NULL */
  const float *rel;           /* relative bias by bucket and head, or NULL (T5) */
  int64_t ldrel;
  const float *rel_keys; /* keys of relative positions [heads·DIM][buckets], or NULL */
  int64_t ldkeys;
  const float *rel_queries; /* queries of relative positions [buckets][heads·DIM], or NULL */
  int64_t ldqueries;
  const int16_t *rel_bucket; /* [2·rel_max + 1] */
  int rel_max;
  int global; /* with a window: the first positions, which are visible to all */
  const float *selected; /* [tokens][lds]: the positions of the only visible rows, ascending, the rest +∞; or NULL */
  int64_t lds;
  int top, every; /* every > 1: only rows at positions p where it divides p + 1 are visible */
  int lse; /* further columns of out: the logarithm of each head's sum of exp(score) */
  uint8_t *scratch; /* parts [blocks of heads][tokens][splits] of GROUP · (2 + VDIM) floats; preceded by counters that are 0 */
};

/* KV cache rows of a sequence after this step. */
IFL_DEVICE int ifl_attn_seq_rows(const ifl_step *s, int seq) {
  int n = s->past[seq];
  if (s->first[seq + 1] > s->first[seq] && s->slot[s->first[seq + 1] - 1] >= n)
    n = s->slot[s->first[seq + 1] - 1] + 1;
  return n;
}

/* The positions first…end−1 are in a token's window; `rows` is the sequence's number of rows. */
IFL_DEVICE int ifl_attn_own(const ifl_step *s, int t) { return ifl_tree(s, s->seq[t]) ? s->pos[t] : s->slot[t]; }
IFL_DEVICE int ifl_attn_first_row(const ifl_attention &a, int t) {
  const int own = ifl_attn_own(a.step, t), first = own - a.window + (a.causal ? 1 : 0);
  if (a.window < 0)
    return own - own % -a.window;
  return a.window > 0 && first > 0 ? first : 0;
}
IFL_DEVICE int ifl_attn_end_row(const ifl_attention &a, int t, int rows) {
  const int own = ifl_attn_own(a.step, t);
  if (a.causal)
    return own + 1;
  return a.window > 0 && a.window < rows - own ? own + a.window + 1 : rows;
}

/* The inputs of a token's visibility test. */
struct ifl_attn_view {
  int seq, own, lo, end, past, rows;
  bool tree;
};
IFL_DEVICE ifl_attn_view ifl_attn_view_of(const ifl_attention &a, int t) {
  ifl_attn_view v;
  v.seq = a.step->seq[t];
  v.tree = ifl_tree(a.step, v.seq);
  v.own = ifl_attn_own(a.step, t);
  v.rows = ifl_attn_seq_rows(a.step, v.seq);
  v.past = a.step->past[v.seq];
  v.lo = ifl_attn_first_row(a, t);
  v.end = ifl_attn_end_row(a, t, v.rows);
  return v;
}

/* Reports whether a position is among the selected ones of token t, and `every` leaves it. */
IFL_DEVICE bool ifl_attn_selected(const ifl_attention &a, int t, int pos) {
  if (a.every > 1 && (pos + 1) % a.every != 0)
    return false;
  if (!a.selected)
    return true;
  const float *at = a.selected + t * a.lds, want = (float)pos;
  int lo = 0, hi = a.top;
  while (lo < hi) {
    const int mid = (lo + hi) / 2;
    if (at[mid] < want)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < a.top && at[lo] == want;
}

/* Reports whether token t sees a KV cache row, and the row's position. In a tree, the mask decides for rows of this step. */
IFL_DEVICE bool ifl_attn_sees(const ifl_attention &a, const ifl_attn_view &v, int t, int row, int *pos) {
  const ifl_step *s = a.step;
  *pos = row;
  if (!v.tree || row < v.past)
    return ((row >= v.lo && row < v.end) || row < a.global) && row < v.rows && ifl_attn_selected(a, t, row);
  const uint64_t *words = s->mask + (int64_t)t * s->mask_words;
  for (int u = s->first[v.seq]; u < s->first[v.seq + 1]; u++) {
    const int i = u - s->first[v.seq];
    if (s->slot[u] != row || i >= s->mask_words * 64)
      continue;
    *pos = s->pos[u];
    return (words[i / 64] >> (i % 64) & 1) && *pos >= v.lo && *pos < v.end && ifl_attn_selected(a, t, *pos);
  }
  return false;
}

/* The table row of a position. */
IFL_DEVICE int64_t ifl_attn_bucket(const ifl_attention &a, int pos, int own) {
  int d = pos - own;
  d = d < -a.rel_max ? -a.rel_max : d > a.rel_max ? a.rel_max : d;
  return a.rel_bucket[d + a.rel_max];
}

IFL_DEVICE float ifl_attn_bias(const ifl_attention &a, int head, int pos, int own) {
  float b = 0;
  if (a.alibi)
    b -= a.alibi[head] * fabsf((float)(pos - own));
  if (a.rel)
    b += a.rel[ifl_attn_bucket(a, pos, own) * a.ldrel + head];
  return b;
}

/* The products of a query and of a key with the table rows of their distance, in f32. */
template <class K, int DIM>
IFL_DEVICE float ifl_attn_content(const ifl_attention &a, int head, int pos, int own, const float *q, const typename K::element *key,
                                  const uint16_t *scales) {
  const int at = ifl_attn_bucket(a, pos, own);
  float c = 0, p = 0;
  for (int b = 0; b < DIM; b += 32) {
    float part = 0;
    for (int d = b; d < b + 32 && d < DIM; d++) {
      if (a.rel_keys)
        c = fmaf(q[d], a.rel_keys[(int64_t)(head * DIM + d) * a.ldkeys + at], c);
      if (a.rel_queries)
        part = fmaf(a.rel_queries[at * a.ldqueries + head * DIM + d], K::key(key, d), part);
    }
    p += K::scaled ? part * ifl_half_bits(scales[b / 32 * 16]) : part;
  }
  return c + p;
}

/* The layout of a block's shared memory, in floats. */
template <int GROUP, int DIM, int VDIM> struct ifl_attn_shared {
  static constexpr int Q = 0, P = Q + GROUP * DIM, O = P + GROUP * 64, M = O + GROUP * VDIM, L = M + GROUP, F = L + GROUP,
                       FLOATS = F + GROUP + 4;
};

/* Scores of one chunk: one thread per row; the halves of the block compute alternate heads. */
template <class K, int GROUP, int KV_HEADS, int DIM, int VDIM>
IFL_DEVICE void ifl_attn_scores(const ifl_attention &a, const ifl_attn_view &v, int t, int head, int kv, int chunk,
                                const uint8_t *page, const float *q, float *p) {
  const int i = threadIdx.x & 63, half = threadIdx.x >> 6, row = chunk * 64 + i;
  const typename K::element *key = reinterpret_cast<const typename K::element *>(page) + K::key_at(i, kv, DIM);
  const uint16_t *scales =
      reinterpret_cast<const uint16_t *>(page + K::scales_at(KV_HEADS, DIM, VDIM)) + ifl_kv_key_scale_at(i, kv, DIM);
  int pos;
  const bool sees = ifl_attn_sees(a, v, t, row, &pos);
  for (int g = half; g < GROUP; g += IFL_ATTN_THREADS / 64) {
    float s = -INFINITY;
    if (sees) {
      float dot = 0;
      for (int b = 0; b < DIM; b += 32) {
        float part = 0;
        for (int d = b; d < b + 32 && d < DIM; d++)
          part = fmaf(q[g * DIM + d], K::key(key, d), part);
        dot += K::scaled ? part * ifl_half_bits(scales[b / 32 * 16]) : part;
      }
      if (a.rel_keys || a.rel_queries)
        dot += ifl_attn_content<K, DIM>(a, head + g, pos, v.own, q + g * DIM, key, scales);
      s = dot * a.scale;
      if (a.softcap > 0)
        s = a.softcap * tanhf(s / a.softcap);
      s = (s + ifl_attn_bias(a, head + g, pos, v.own)) * IFL_LOG2E;
    }
    p[g * 64 + i] = s;
  }
}

/* Replaces a chunk's scores with probabilities and computes the factor that rescales earlier sums; one warp per head. */
template <int GROUP> IFL_DEVICE void ifl_attn_softmax(float *p, float *m, float *l, float *shrink) {
  const int lane = threadIdx.x & 31;
  for (int g = threadIdx.x >> 5; g < GROUP; g += IFL_ATTN_THREADS / 32) {
    float *s = p + g * 64;
    const float old = m[g], top = fmaxf(old, ifl_warp_max(fmaxf(s[lane], s[lane + 32])));
    const float none = -INFINITY, x = s[lane], y = s[lane + 32];
    const float ex = x == none ? 0.0f : exp2f(x - top), ey = y == none ? 0.0f : exp2f(y - top), sum = ifl_warp_sum(ex + ey);
    s[lane] = ex;
    s[lane + 32] = ey;
    __syncwarp();
    if (lane == 0) {
      shrink[g] = old == none ? 0.0f : exp2f(old - top);
      l[g] = l[g] * shrink[g] + sum;
      m[g] = top;
    }
  }
}

/* Adds a chunk's weighted values; one thread per value column. */
template <class K, int GROUP, int KV_HEADS, int DIM, int VDIM>
IFL_DEVICE void ifl_attn_values(const uint8_t *page, int kv, int rows, const float *p, const float *shrink, float *o) {
  const typename K::element *value =
      reinterpret_cast<const typename K::element *>(page) + K::value_at(0, kv, KV_HEADS, DIM, VDIM);
  const uint16_t *scales = reinterpret_cast<const uint16_t *>(page + K::scales_at(KV_HEADS, DIM, VDIM)) +
                           ifl_kv_value_scale_at(0, kv, KV_HEADS, DIM, VDIM);
  for (int c = threadIdx.x; c < VDIM; c += IFL_ATTN_THREADS) {
    float sum[GROUP];
#pragma unroll
    for (int g = 0; g < GROUP; g++)
      sum[g] = o[g * VDIM + c] * shrink[g];
    for (int i = 0; i < rows; i++) {
      float x = K::value(value + (int64_t)i * K::value_step(VDIM), c);
      if (K::scaled)
        x *= ifl_half_bits(scales[c / 32 * 64 + i]);
#pragma unroll
      for (int g = 0; g < GROUP; g++)
        sum[g] = fmaf(p[g * 64 + i], x, sum[g]);
    }
#pragma unroll
    for (int g = 0; g < GROUP; g++)
      o[g * VDIM + c] = sum[g];
  }
}

/* The normalization factor of a head: 1 / sum of the probabilities, including a sink's logit, which has no value; 0 if no
 * row is visible. */
IFL_DEVICE float ifl_attn_factor(const ifl_attention &a, int head, float m, float l) {
  if (m == -INFINITY)
    return 0;
  if (!a.sinks)
    return 1.0f / l;
  const float sink = a.sinks[head] * IFL_LOG2E, top = fmaxf(m, sink);
  return exp2f(m - top) / fmaf(l, exp2f(m - top), exp2f(sink - top));
}

/* Writes the logarithm of a head's sum of exp(score); `at` is the first column of these. */
IFL_DEVICE void ifl_attn_write_lse(const ifl_attention &a, int t, int64_t at, int head, float m, float l) {
  a.out[t * a.ldo + at + head] = m == -INFINITY ? m : m / IFL_LOG2E + logf(l);
}

/* Called after a block has stored its part. Reports whether it is the last block of counter i, and then resets the counter. */
IFL_DEVICE bool ifl_attn_last(const ifl_attention &a, int i, int *last) {
  return ifl_last_block(reinterpret_cast<unsigned *>(a.scratch) - 1 - i, gridDim.z, last);
}

/* Normalizes and writes a block's heads, from `first` on. */
template <int GROUP, int VDIM>
IFL_DEVICE void ifl_attn_finish(const ifl_attention &a, int t, int first, const float *m, const float *l, const float *o) {
  for (int i = threadIdx.x; i < GROUP * VDIM; i += IFL_ATTN_THREADS) {
    const int g = i / VDIM, head = first + g;
    const float f = ifl_attn_factor(a, head, m[g], l[g]);
    a.out[t * a.ldo + (int64_t)head * VDIM + i % VDIM] = f == 0 ? 0.0f : o[i] * f;
    if (a.lse && i % VDIM == 0)
      ifl_attn_write_lse(a, t, (int64_t)gridDim.x * GROUP * VDIM, head, m[g], l[g]);
  }
}

/* Stores this split's part. The last block of a token and of its heads merges all parts. */
template <int GROUP, int VDIM>
IFL_DEVICE bool ifl_attn_merge(const ifl_attention &a, int t, float *m, float *l, float *o, int *last) {
  constexpr int PART = GROUP * (2 + VDIM);
  const int splits = gridDim.z, split = blockIdx.z;
  float *parts = reinterpret_cast<float *>(a.scratch) + ((int64_t)blockIdx.x * a.step->tokens + t) * splits * PART;
  float *mine = parts + (int64_t)split * PART;
  for (int i = threadIdx.x; i < GROUP; i += IFL_ATTN_THREADS)
    mine[i] = m[i], mine[GROUP + i] = l[i];
  for (int i = threadIdx.x; i < GROUP * VDIM; i += IFL_ATTN_THREADS)
    mine[2 * GROUP + i] = o[i];
  if (!ifl_attn_last(a, (t * gridDim.x + blockIdx.x) * GROUP, last))
    return false;
  for (int i = threadIdx.x; i < GROUP * VDIM; i += IFL_ATTN_THREADS) {
    const int g = i / VDIM;
    float top = -INFINITY, sum = 0, out = 0;
    for (int s = 0; s < splits; s++)
      top = fmaxf(top, __ldcg(parts + (int64_t)s * PART + g));
    for (int s = 0; s < splits; s++) {
      const float ms = __ldcg(parts + (int64_t)s * PART + g), f = ms == -INFINITY ? 0.0f : exp2f(ms - top);
      sum = fmaf(__ldcg(parts + (int64_t)s * PART + GROUP + g), f, sum);
      out = fmaf(__ldcg(parts + (int64_t)s * PART + 2 * GROUP + i), f, out);
    }
    o[i] = out;
    if (i % VDIM == 0)
      m[g] = top, l[g] = sum;
  }
  __syncthreads();
  return true;
}

/* Loads a block's queries, and rotates them if the keys are. */
template <class K, int GROUP, int DIM> IFL_DEVICE void ifl_attn_queries(const float *from, float *q) {
  if constexpr (K::packed) {
    const int lane = threadIdx.x & 31;
    for (int g = threadIdx.x >> 5; g < GROUP; g += IFL_ATTN_THREADS / 32) {
      float x[DIM / 32];
#pragma unroll
      for (int j = 0; j < DIM / 32; j++)
        x[j] = from[g * DIM + 32 * j + lane];
      ifl_kv_rotate<DIM>(x);
#pragma unroll
      for (int j = 0; j < DIM / 32; j++)
        q[g * DIM + 32 * j + lane] = x[j];
    }
  } else {
    for (int i = threadIdx.x; i < GROUP * DIM; i += IFL_ATTN_THREADS)
      q[i] = from[i];
  }
}

/* One block: grid (query heads / GROUP, tokens, splits). */
template <class K, int GROUP, int KV_HEADS, int DIM, int VDIM> IFL_DEVICE void ifl_attend(const ifl_attention &a, float *sm) {
  typedef ifl_attn_shared<GROUP, DIM, VDIM> S;
  const int head = blockIdx.x * GROUP, kv = blockIdx.x / (gridDim.x / KV_HEADS), t = blockIdx.y;
  float *q = sm + S::Q, *p = sm + S::P, *o = sm + S::O, *m = sm + S::M, *l = sm + S::L, *shrink = sm + S::F;
  ifl_attn_queries<K, GROUP, DIM>(a.q + t * a.ldq + (int64_t)head * DIM, q);
  for (int i = threadIdx.x; i < GROUP * VDIM; i += IFL_ATTN_THREADS)
    o[i] = 0;
  for (int i = threadIdx.x; i < GROUP; i += IFL_ATTN_THREADS)
    m[i] = -INFINITY, l[i] = 0;
  const ifl_attn_view v = ifl_attn_view_of(a, t);
  const int end = v.tree ? v.rows : v.end, lo = a.global > 0 ? 0 : v.lo / 64, hi = (end + 63) / 64, n = ifl_max_int(hi - lo, 0);
  const int from = lo + (int)((int64_t)n * blockIdx.z / gridDim.z), to = lo + (int)((int64_t)n * (blockIdx.z + 1) / gridDim.z);
  __syncthreads();
  for (int chunk = from; chunk < to; chunk++) {
    const uint8_t *page = a.state + ifl_kv_page(a.step, v.seq, chunk * 64) * a.page_bytes;
    ifl_attn_scores<K, GROUP, KV_HEADS, DIM, VDIM>(a, v, t, head, kv, chunk, page, q, p);
    __syncthreads();
    ifl_attn_softmax<GROUP>(p, m, l, shrink);
    __syncthreads();
    ifl_attn_values<K, GROUP, KV_HEADS, DIM, VDIM>(page, kv, ifl_min_int(64, v.rows - chunk * 64), p, shrink, o);
    __syncthreads();
  }
  if (gridDim.z > 1 && !ifl_attn_merge<GROUP, VDIM>(a, t, m, l, o, reinterpret_cast<int *>(sm + S::F + GROUP)))
    return;
  ifl_attn_finish<GROUP, VDIM>(a, t, head, m, l, o);
}
