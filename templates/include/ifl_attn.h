/* Attention over a paged KV cache: the parts that do not depend on the element type of the cache.
 *
 * Order of summation (class "attn64"): the rows of a sequence are divided into chunks of 64, one page each. For each query
 * row, a chunk yields the maximum m of its visible scores s (times log₂e), l = Σ 2^(s−m) and o = Σ 2^(s−m)·v. The sums have
 * a fixed order, and masked rows add exactly zero. ifl_attn_merge merges the chunks in ascending order and skips chunks
 * without visible rows. So a token's result depends only on its own visible rows: not on the batch, prefill chunks, the
 * number of threads or the division of work. (Online softmax: Milakov & Gimelshein, arXiv 1805.02867; split over the
 * context: Flash-Decoding.)
 *
 * The same holds for the tokens of a speculation tree. Their rows follow the sequence's other rows in the order of the
 * step, but sums are ordered by position: ifl_attn_gather copies a token's ancestors to the places that they would have in
 * plain decoding. */
#pragma once
#include "ifl_kernel.h"
#include "ifl_kv.h"
#include "ifl_vec.h"

#define IFL_ATTN_BLOCK 48 /* maximum query rows (token × query head of one KV head) per unit of work */
#define IFL_ATTN_SPLIT 12 /* maximum query rows of a unit that may be divided among threads by chunks */
#ifndef IFL_ATTN_LONG
#define IFL_ATTN_LONG 1024 /* number of KV cache rows from which all heads of a token are one unit */
#endif
#define IFL_LOG2E 1.44269504088896341f

/* One thread's part of the scratch, in floats: the accumulators of a block of rows, one tile of outputs, a chunk's rows of one KV
 * head for trees, and the partial results of `chunks` chunks. An accumulator is m and l of all rows, then vdim16 outputs per row.
 * With q4_b32t2, the rows for trees take a quarter of their place and unpacked codes another; the rotated queries need 48·dim more. */
static inline int64_t ifl_attn_state_floats(int rows, int vdim) { return (int64_t)rows * ifl_round16(vdim) + 2 * ifl_round16(rows); }
static inline int64_t ifl_attn_chunk_floats(int dim, int vdim) {
  return (int64_t)IFL_PAGE_ROWS * (ifl_round16(dim) + ifl_round16(vdim)) + IFL_ATTN_BLOCK * ifl_round16(dim);
}
static inline int64_t ifl_attn_fixed_floats(int dim, int vdim) {
  return ifl_attn_state_floats(IFL_ATTN_BLOCK, vdim) + 8 * (int64_t)ifl_round16(vdim) + ifl_attn_chunk_floats(dim, vdim);
}

/* Bytes of scratch of one ifl_attention call. With fewer pages than a sequence has, attention works, but does not divide
 * a sequence's chunks among threads. */
static inline int64_t ifl_attention_scratch(int threads, int max_tokens, int heads, int dim, int vdim, int max_pages_per_seq) {
  (void)max_tokens;
  const int64_t split = ifl_attn_state_floats(IFL_ATTN_SPLIT, vdim), pages = max_pages_per_seq;
  int64_t parts = threads > 1 ? pages * split : 0;
  if (threads > 1 && heads <= IFL_ATTN_BLOCK) { /* the rows of a unit with all heads, for the chunks of one thread */
    const int64_t whole = ifl_attn_state_floats(heads, vdim) * ((pages + threads - 1) / threads + 1);
    parts = whole > parts ? whole : parts;
  }
  return threads * ifl_round64(4 * (ifl_attn_fixed_floats(dim, vdim) + parts));
}

/* Accumulators of some query rows; m = −∞ if a row has seen nothing yet. */
typedef struct {
  float *m, *l, *o; /* [rows], [rows], [rows][vdim16] */
} ifl_attn_state;

static inline ifl_attn_state ifl_attn_state_at(float *p, int rows) {
  return (ifl_attn_state){p, p + ifl_round16(rows), p + 2 * ifl_round16(rows)};
}

static inline void ifl_attn_clear(ifl_attn_state s, int rows, int vdim) {
  for (int r = 0; r < rows; r++) s.m[r] = -__builtin_inff();
  memset(s.l, 0, (size_t)rows * 4);
  memset(s.o, 0, (size_t)rows * ifl_round16(vdim) * 4);
}

/* A unit of work: `rows` query rows of one KV head of one sequence over the chunks lo…hi−1 that any of them sees. Row r
 * of a sequence and a KV head is query head r % group of token r / group. If `whole`, the unit is all heads of a sequence's
 * only token, and row r is head r. Then a page is read sequentially, which is much faster from memory than head by head. */
typedef struct {
  int seq, kv, row, rows, seq_rows, lo, hi, whole;
} ifl_attn_unit;

/* Query heads per token of a unit. */
static inline int ifl_attn_group(const ifl_attention *a, const ifl_attn_unit *u) { return u->whole ? a->heads : a->heads / a->kv_heads; }

/* The cost of a unit is chunks × (rows + 2); the 2 is the cost of reading a chunk. */
static inline int64_t ifl_attn_chunk_cost(const ifl_attention *a, const ifl_attn_unit *u) { return u->rows + (u->whole ? 2 * a->kv_heads : 2); }
static inline int64_t ifl_attn_cost(const ifl_attention *a, const ifl_attn_unit *u) { return (u->hi - u->lo) * ifl_attn_chunk_cost(a, u); }

/* KV cache rows of a sequence after this step. */
static inline int ifl_attn_seq_rows(const ifl_step *s, int seq) {
  int n = s->past[seq];
  if (s->first[seq + 1] > s->first[seq] && s->slot[s->first[seq + 1] - 1] >= n) n = s->slot[s->first[seq + 1] - 1] + 1;
  return n;
}

/* A token's position; outside trees it equals the KV cache row that the token writes. */
static inline int ifl_attn_own(const ifl_step *s, int t) { return s->mask ? s->pos[t] : s->slot[t]; }

/* The positions first…end−1 are in a token's window; `rows` is the sequence's number of rows. */
static inline int ifl_attn_first_row(const ifl_attention *a, int t) {
  const int own = ifl_attn_own(a->step, t), first = own - a->window + (a->causal ? 1 : 0);
  if (a->window < 0) return own - own % -a->window;
  return a->window > 0 && first > 0 ? first : 0;
}
static inline int ifl_attn_end_row(const ifl_attention *a, int t, int rows) {
  const int own = ifl_attn_own(a->step, t);
  if (a->causal) return own + 1;
  return a->window > 0 && a->window < rows - own ? own + a->window + 1 : rows;
}

static inline void ifl_attn_bounds(const ifl_attention *a, ifl_attn_unit *u) {
  const ifl_step *s = a->step;
  int group = ifl_attn_group(a, u);
  int t0 = s->first[u->seq] + u->row / group, t1 = s->first[u->seq] + (u->row + u->rows - 1) / group;
  int rows = ifl_attn_seq_rows(s, u->seq), end = ifl_attn_end_row(a, t1, rows), first = ifl_attn_first_row(a, t0);
  for (int t = t0; ifl_tree(s, u->seq) && t <= t1; t++) { /* positions are in any order */
    const int e = ifl_attn_end_row(a, t, rows), f = ifl_attn_first_row(a, t);
    end = e > end ? e : end;
    first = f < first ? f : first;
  }
  if (a->global > 0) first = 0;
  u->lo = first / IFL_PAGE_ROWS;
  u->hi = (end + IFL_PAGE_ROWS - 1) / IFL_PAGE_ROWS;
  if (u->lo >= u->hi) u->lo = u->hi - 1; /* at least one chunk, so that every row is written */
}

static inline int ifl_attn_whole(const ifl_attention *a, int seq) {
  return a->step->first[seq + 1] - a->step->first[seq] == 1 && a->kv_heads > 1 && !a->rel_keys && !a->rel_queries && a->heads <= IFL_ATTN_BLOCK &&
         ifl_attn_seq_rows(a->step, seq) >= IFL_ATTN_LONG && !ifl_tree(a->step, seq);
}

/* Advances to the next unit of at most `block` rows; start with u->seq = -1. Returns 0 at the end. */
static inline int ifl_attn_next(const ifl_attention *a, int block, ifl_attn_unit *u) {
  const ifl_step *s = a->step;
  if (u->seq >= 0) u->row += u->rows;
  if (u->seq < 0 || (u->row >= u->seq_rows && (u->whole || ++u->kv >= a->kv_heads))) {
    do {
      if (++u->seq >= s->seqs) return 0;
    } while (s->first[u->seq + 1] <= s->first[u->seq]);
    u->kv = 0;
    u->whole = ifl_attn_whole(a, u->seq);
    u->seq_rows = (s->first[u->seq + 1] - s->first[u->seq]) * ifl_attn_group(a, u);
    u->row = 0;
  }
  if (u->row >= u->seq_rows) u->row = 0;
  u->rows = u->whole || u->seq_rows - u->row < block ? u->seq_rows - u->row : block;
  ifl_attn_bounds(a, u);
  return 1;
}

/* Rows and floats of a partial result of a unit that several threads may share. */
static inline int ifl_attn_part_rows(const ifl_attn_unit *u) { return u->whole ? u->rows : IFL_ATTN_SPLIT; }
static inline int64_t ifl_attn_part_floats(const ifl_attention *a, const ifl_attn_unit *u) {
  return ifl_attn_state_floats(ifl_attn_part_rows(u), a->vdim);
}

/* The division of a step's work, computed alike on every thread; each has `spare` floats for partial results. Thread i owns the
 * interval of costs from total·i/threads to total·(i+1)/threads: with `split`, the chunks that start in it, else the units
 * that have their middle in it. */
typedef struct {
  int block, split;
  int64_t total;
} ifl_attn_plan;

static inline ifl_attn_plan ifl_attn_make_plan(const ifl_attention *a, int64_t spare) {
  ifl_attn_plan p = {.block = IFL_ATTN_BLOCK};
  int group = a->heads / a->kv_heads;
  for (; a->threads > 1 && p.block > IFL_ATTN_SPLIT; p.block /= 2) {
    int64_t units = 0;
    for (int s = 0; s < a->step->seqs; s++)
      units += ifl_attn_whole(a, s) ? 1 : ((int64_t)(a->step->first[s + 1] - a->step->first[s]) * group + p.block - 1) / p.block * a->kv_heads;
    if (units >= 8 * a->threads) break;
  }
  int64_t most = 0, room = 0;
  for (ifl_attn_unit u = {.seq = -1}; ifl_attn_next(a, p.block, &u);) {
    int64_t c = ifl_attn_cost(a, &u);
    p.total += c;
    if (c > most) most = c;
  }
  for (ifl_attn_unit u = {.seq = -1}; p.block <= IFL_ATTN_SPLIT && ifl_attn_next(a, p.block, &u);) { /* the partial results that a thread may have to store */
    const int64_t mine = p.total / a->threads / ifl_attn_chunk_cost(a, &u) + 1, n = u.hi - u.lo < mine ? u.hi - u.lo : mine;
    const int64_t floats = n * ifl_attn_part_floats(a, &u);
    if (floats > room) room = floats;
  }
  p.split = a->threads > 1 && p.block <= IFL_ATTN_SPLIT && room <= spare && most * 8 * a->threads > p.total;
  return p;
}

/* The chunks of a unit that thread tid owns, relative to u->lo; before is the cost of all previous units. */
static inline void ifl_attn_share(const ifl_attention *a, const ifl_attn_plan *p, const ifl_attn_unit *u, int64_t before, int tid, int *from, int *to) {
  int64_t lo = p->total * tid / a->threads - before, hi = p->total * (tid + 1) / a->threads - before;
  int64_t w = ifl_attn_chunk_cost(a, u), n = u->hi - u->lo;
  if (!p->split) {
    int64_t mid = n * w / 2;
    *from = 0;
    *to = mid >= lo && mid < hi ? (int)n : 0;
    return;
  }
  lo = lo <= 0 ? 0 : (lo + w - 1) / w;
  hi = hi <= 0 ? 0 : (hi + w - 1) / w;
  *from = (int)(lo < n ? lo : n);
  *to = (int)(hi < n ? hi : n);
}

/* Mask of bits lo…hi−1. */
static inline uint64_t ifl_attn_bits(int lo, int hi) {
  lo = lo < 0 ? 0 : lo;
  hi = hi > 64 ? 64 : hi;
  if (lo >= hi) return 0;
  return (~(uint64_t)0 >> (64 - (hi - lo))) << lo;
}

/* Mask of the chunk's rows that are among the selected ones of token t. */
static inline uint64_t ifl_attn_selected(const ifl_attention *a, int t, int chunk) {
  const float *at = a->selected + t * a->lds, base = (float)(chunk * IFL_PAGE_ROWS), end = base + IFL_PAGE_ROWS;
  int lo = 0, hi = a->top;
  while (lo < hi) { /* the first at or behind the chunk's first row */
    const int mid = (lo + hi) / 2;
    if (at[mid] < base) lo = mid + 1;
    else hi = mid;
  }
  uint64_t bits = 0;
  for (; lo < a->top && at[lo] < end; lo++) bits |= (uint64_t)1 << (int)(at[lo] - base);
  return bits;
}

/* Mask of the chunk's rows that `every` leaves. */
static inline uint64_t ifl_attn_every(int every, int chunk) {
  uint64_t bits = 0;
  for (int i = every - 1 - chunk * IFL_PAGE_ROWS % every; i < IFL_PAGE_ROWS; i += every) bits |= (uint64_t)1 << i;
  return bits;
}

/* The rows of one KV head in one chunk as a token of a tree sees them, in the layout of a page with one head. `slot` is the
 * KV cache row copied to each place. */
typedef struct {
  uint8_t *page;
  int elem_bytes; /* 0: q8_b32t2, −1: q4_b32t2 */
  int32_t slot[IFL_PAGE_ROWS];
} ifl_attn_rows;

/* Copies the chunk from the KV cache in the order of its rows. */
static inline void ifl_attn_rows_open(const ifl_attention *a, const ifl_attn_unit *u, int chunk, ifl_attn_rows *x) {
  const uint8_t *page = a->state + a->page_bytes * ifl_kv_page(a->step, u->seq, chunk * IFL_PAGE_ROWS);
  const int bytes = x->elem_bytes ? x->elem_bytes : 1, packed = x->elem_bytes < 0;
  const int64_t k = (int64_t)IFL_PAGE_ROWS * (packed ? a->dim / 32 * 20 : ifl_round16(a->dim) * bytes);
  const int64_t v = (int64_t)IFL_PAGE_ROWS * (packed ? a->vdim / 2 : ifl_round16(a->vdim) * bytes);
  memcpy(x->page, page + u->kv * k, (size_t)k);
  memcpy(x->page + k, page + a->kv_heads * k + u->kv * v, (size_t)v);
  for (int i = 0; i < IFL_PAGE_ROWS; i++) x->slot[i] = chunk * IFL_PAGE_ROWS + i;
  if (x->elem_bytes > 0) return;
  const uint16_t *from = (const uint16_t *)(const void *)(page + a->kv_heads * (k + v));
  uint16_t *to = (uint16_t *)(void *)(x->page + k + v);
  memcpy(to, from + ifl_kv_key_scales_at(u->kv, a->dim), (size_t)(2 * IFL_PAGE_ROWS * ifl_kv_blocks(a->dim)));
  memcpy(to + ifl_kv_value_scales_at(0, 1, a->dim, a->vdim), from + ifl_kv_value_scales_at(u->kv, a->kv_heads, a->dim, a->vdim),
         (size_t)(2 * IFL_PAGE_ROWS * ifl_kv_blocks(a->vdim)));
}

/* Copies token t and its ancestors to the places of their positions in the chunk. */
static inline void ifl_attn_gather(const ifl_attention *a, const ifl_attn_unit *u, int chunk, int t, ifl_attn_rows *x) {
  const ifl_step *s = a->step;
  const int first = s->first[u->seq];
  const uint64_t *words = s->mask + (int64_t)t * s->mask_words;
  for (int w = 0; w <= (t - first) / 64; w++) {
    for (uint64_t bits = words[w]; bits; bits &= bits - 1) {
      const int i = first + 64 * w + __builtin_ctzll(bits), at = s->pos[i] - chunk * IFL_PAGE_ROWS;
      if (at < 0 || at >= IFL_PAGE_ROWS || x->slot[at] == s->slot[i]) continue;
      x->slot[at] = s->slot[i];
      ifl_kv_copy_head(x->page, at, 0, 1, a->state + a->page_bytes * ifl_kv_page(s, u->seq, s->slot[i]), s->slot[i] % IFL_PAGE_ROWS,
                       u->kv, a->kv_heads, a->dim, a->vdim, x->elem_bytes);
    }
  }
}

/* The positions of a chunk's rows. */
static inline void ifl_attn_positions(int chunk, float *pos) {
  for (int i = 0; i < IFL_PAGE_ROWS; i++) pos[i] = (float)(chunk * IFL_PAGE_ROWS + i);
}

/* 2^y for y ≤ 0: exactly 1 at 0, exactly 0 below −126 and at −∞ (a masked row); NaN for NaN.
 * 2^y = 2^⌊y⌋·P(y − ⌊y⌋), P the relative minimax polynomial on [0, 1] with P(0) = 1; relative error ≤ 1.5·10⁻⁷. */
#ifdef IFL_AVX2
IFL_INLINE __m256 ifl_attn_exp2_8_(__m256 y) {
#define SET(c) _mm256_set1_ps(c)
  const __m256 dead = _mm256_cmp_ps(y, SET(-126.0f), _CMP_LT_OQ);
  y = _mm256_andnot_ps(dead, y);
  const __m256 n = _mm256_round_ps(y, 0x09), r = _mm256_sub_ps(y, n);
  __m256 p = _mm256_fmadd_ps(SET(1.86713005e-3f), r, SET(9.01703071e-3f));
  p = _mm256_fmadd_ps(p, r, SET(5.57999127e-2f));
  p = _mm256_fmadd_ps(p, r, SET(2.40164444e-1f));
  p = _mm256_fmadd_ps(p, r, SET(6.93151295e-1f));
  p = _mm256_fmadd_ps(p, r, SET(1.0f));
  return _mm256_andnot_ps(dead, ifl_scale2_8_(p, n));
#undef SET
}
#endif

IFL_INLINE ifl_v16 ifl_attn_exp2(ifl_v16 y) {
#ifdef IFL_AVX2
  return ifl_both_(ifl_attn_exp2_8_(ifl_low_(y)), ifl_attn_exp2_8_(ifl_high_(y)));
#else
#ifdef IFL_AVX512
  const ifl_v16 r = y - ifl_floor(y); /* _mm512_reduce_ps also rounds down */
#else
  const ifl_v16i dead = ifl_less(y, ifl_set1(-126.0f));
  y = ifl_select(dead, ifl_set1(0.0f), y);
#ifdef IFL_NEON
  const ifl_v16 n = ifl_floor(y), r = y - n;
#else
  const ifl_v16 n = ifl_nearest(y - 0.5f), r = y - n; /* 1 for odd n */
#endif
#endif
  ifl_v16 p = ifl_fma(ifl_set1(1.86713005e-3f), r, ifl_set1(9.01703071e-3f));
  p = ifl_fma(p, r, ifl_set1(5.57999127e-2f));
  p = ifl_fma(p, r, ifl_set1(2.40164444e-1f));
  p = ifl_fma(p, r, ifl_set1(6.93151295e-1f));
  p = ifl_fma(p, r, ifl_set1(1.0f));
#ifdef IFL_AVX512
  return (ifl_v16)_mm512_maskz_scalef_ps(_mm512_cmp_ps_mask((__m512)y, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ), (__m512)p, (__m512)y);
#else
  return ifl_select(dead, ifl_set1(0.0f), ifl_scale2_(p, n));
#endif
#endif
}

/* Merges n ≤ 16 rows of a later chunk (maxima m[16], sums l[16], outputs o[n][v16]) into the accumulators of rows r…: both
 * sides are rescaled to the maximum M = max(m, m') and added. */
static inline void ifl_attn_merge(const ifl_attn_state *to, int r, int n, const float *m, const float *l, const float *o, int v16) {
  _Alignas(64) float old_scale[16], new_scale[16];
  const ifl_v16 none = ifl_set1(-__builtin_inff()), zero = {0};
  ifl_v16 mt = ifl_load_n(to->m + r, n), mc = ifl_load(m), top = ifl_max(mt, mc);
  ifl_v16 fa = ifl_select(ifl_equal(mt, none), zero, ifl_attn_exp2(mt - top)), fb = ifl_select(ifl_equal(mc, none), zero, ifl_attn_exp2(mc - top));
  ifl_store_n(to->l + r, ifl_fma(ifl_load(l), fb, ifl_load_n(to->l + r, n) * fa), n);
  ifl_store_n(to->m + r, top, n);
  ifl_store_a(old_scale, fa);
  ifl_store_a(new_scale, fb);
  for (int i = 0; i < n; i++, o += v16) {
    if (m[i] == -__builtin_inff()) continue; /* the row sees nothing in this chunk */
    float *out = to->o + (int64_t)(r + i) * v16;
    const ifl_v16 a = ifl_set1(old_scale[i]), b = ifl_set1(new_scale[i]);
    for (int j = 0; j < v16; j += 16) ifl_store(out + j, ifl_fma(ifl_load(o + j), b, ifl_load(out + j) * a));
  }
}

/* Writes accumulator d, divided by its sum, to the row's place in the output. A row that sees nothing is zero. */
static inline void ifl_attn_finish(const ifl_attention *a, const ifl_attn_unit *u, const ifl_attn_state *s, int d) {
  int group = ifl_attn_group(a, u), row = u->row + d, v16 = ifl_round16(a->vdim);
  int t = a->step->first[u->seq] + row / group, head = u->kv * group + row % group;
  float *out = a->out + t * a->ldo + (int64_t)head * a->vdim;
  float f = 1.0f / s->l[d], m = s->m[d];
  if (a->lse) a->out[t * a->ldo + (int64_t)a->heads * a->vdim + head] = m == -__builtin_inff() ? m : m / IFL_LOG2E + ifl_log(ifl_set1(s->l[d]))[0];
  if (m == -__builtin_inff()) {
    memset(out, 0, (size_t)a->vdim * 4);
    return;
  }
  if (a->calib) a->calib[m < -128 ? 0 : m >= 127 ? IFL_SCORES - 1 : (int)(m + 128)]++;
  if (a->sinks) { /* an additional logit without a value */
    float sink = a->sinks[head] * IFL_LOG2E, top = m > sink ? m : sink;
    ifl_v16 fm = ifl_attn_exp2(ifl_set1(m - top)), fs = ifl_attn_exp2(ifl_set1(sink - top));
    f = fm[0] / ifl_fma1(s->l[d], fm[0], fs[0]);
  }
  const float *o = s->o + (int64_t)d * v16;
  int i = 0;
  for (; i + 16 <= a->vdim; i += 16) ifl_store(out + i, ifl_load(o + i) * f);
  if (i < a->vdim) ifl_store_n(out + i, ifl_load(o + i) * f, a->vdim - i);
}
