/* Models small enough to know by heart, one a graph. Graph 0 is a decoder: its logits are a hash of the whole prefix, read back through the pages, so
 * any mistake in ids, positions, slots, page tables, output rows or chunking changes them. Graph 1 is an encoder: every
 * row it gives depends on all rows of the sequence. Graph 2 is a decoder whose logits depend on the source's rows too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ifl_step.h"

enum { VOCAB = 61, COLS = 64, HIDDEN = 16, CONTEXT = 512, EOS = 2, NAN_ID = 60, STOP_ID = 7 };

struct ifl_ctx { ifl_config c; const ifl_lora *adapters[IFL_ADAPTERS]; };

#define EXPORT __attribute__((visibility("default")))

static uint64_t mix(uint64_t x) {
  x ^= x >> 33; x *= 0xff51afd7ed558ccdULL; x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53ULL; x ^= x >> 33;
  return x;
}

EXPORT int32_t ifl_abi(void) { return IFL_ABI; }
EXPORT int64_t ifl_state_bytes(int32_t pages, int32_t cells) { return (int64_t)pages * 64 * 8 + 0 * (int64_t)cells; }
EXPORT int64_t ifl_arena_bytes(int32_t threads, int32_t tokens, int32_t out_rows, int32_t seqs) {
  return 64 * ((int64_t)threads + tokens + out_rows + seqs);
}

EXPORT ifl_ctx *ifl_open(const ifl_config *c) {
  if (c->abi != IFL_ABI || c->weights_bytes < 1 || ((uintptr_t)c->weights | (uintptr_t)c->state | (uintptr_t)c->arena) % 64) return 0;
  for (int64_t i = 0; i < ifl_state_bytes(c->pages, 0); i += 64)
    if (c->state[i]) return 0;
  ifl_ctx *x = calloc(1, sizeof *x);
  x->c = *c;
  return x;
}
EXPORT void ifl_close(ifl_ctx *x) { free(x); }
EXPORT void ifl_set_adapter(ifl_ctx *x, int32_t number, const ifl_lora *sites) { x->adapters[number] = sites; }
EXPORT void ifl_move(ifl_ctx *x, int32_t to_page, int32_t to, int32_t from_page, int32_t from) {
  ((uint64_t *)x->c.state)[(int64_t)to_page * 64 + to] = ((uint64_t *)x->c.state)[(int64_t)from_page * 64 + from];
}
/* It has no fixed-size states. */
EXPORT void ifl_move_in_cells(ifl_ctx *x, int32_t to_cell, int32_t to, int32_t from_cell, int32_t from) { (void)x, (void)to_cell, (void)to, (void)from_cell, (void)from; }
EXPORT void ifl_copy_cell(ifl_ctx *x, int32_t to, int32_t from) { (void)x, (void)to, (void)from; }

/* Whether the tokens of a sequence are a tree, and how many of them a token sees beside itself. */
static int tree(const ifl_step *s, int q) { return s->mask && s->mask[(int64_t)s->first[q] * s->mask_words] & 1; }
static int sees(const ifl_step *s, int t, int i) { return s->mask[(int64_t)t * s->mask_words + i / 64] >> (i % 64) & 1; }
static int ancestors(const ifl_step *s, int t) {
  int n = -1;
  for (int i = 0; i <= t - s->first[s->seq[t]]; i++) n += sees(s, t, i);
  return n;
}

static int check(const ifl_ctx *x, const ifl_step *s) {
  if (s->abi != IFL_ABI) return -1;
  if (s->tokens < 1 || s->tokens > x->c.max_tokens || s->out_rows > x->c.max_out_rows || s->seqs > x->c.max_seqs) return -2;
  if (s->first[0] != 0 || s->first[s->seqs] != s->tokens || s->entry < 0 || s->entry > 2) return -3;
  for (int q = 0; q < s->seqs; q++) {
    if (s->adapter && (s->adapter[q] < -1 || s->adapter[q] >= IFL_ADAPTERS || (s->adapter[q] >= 0 && !x->adapters[s->adapter[q]]))) return -3;
    int n = s->first[q + 1] - s->first[q], rows = s->past[q] + n, pages = s->page_at[q + 1] - s->page_at[q];
    if (n < 1 || rows > CONTEXT || pages * 64 < rows) return -3;
    for (int p = s->page_at[q]; p < s->page_at[q + 1]; p++)
      if (s->page[p] < 0 || s->page[p] >= x->c.pages) return -3;
    for (int t = s->first[q]; t < s->first[q + 1]; t++) {
      int at = s->past[q] + t - s->first[q];
      if (s->seq[t] != q || s->slot[t] != at || s->id[t] < 0 || s->id[t] >= VOCAB) return -3;
      if (s->pos[t] != (tree(s, q) ? s->past[q] + ancestors(s, t) : at)) return -3;
    }
  }
  for (int r = 0; r < s->out_rows; r++)
    if (s->out_row[r] < 0 || s->out_row[r] >= s->tokens) return -3;
  return 0;
}

static uint64_t *row_in(const ifl_ctx *x, const int32_t *page_at, const int32_t *page, int q, int slot) {
  return (uint64_t *)x->c.state + (int64_t)page[page_at[q] + slot / 64] * 64 + slot % 64;
}

/* Hash of the first n rows of a sequence. */
static uint64_t hash(const ifl_ctx *x, const int32_t *page_at, const int32_t *page, int q, int n) {
  uint64_t sum = 0;
  for (int i = 0; i < n; i++) sum = sum * 31 + *row_in(x, page_at, page, q, i);
  return sum;
}

/* Hash of what token t of a decoder's step sees, its own row among them. */
static uint64_t seen(const ifl_ctx *x, const ifl_step *s, int t) {
  const int q = s->seq[t];
  if (!tree(s, q)) return hash(x, s->page_at, s->page, q, s->slot[t] + 1);
  uint64_t sum = hash(x, s->page_at, s->page, q, s->past[q]);
  for (int i = 0; i <= t - s->first[q]; i++)
    if (sees(s, t, i)) sum = sum * 31 + *row_in(x, s->page_at, s->page, q, s->past[q] + i);
  return sum;
}

/* The id that token t computes: its own, shifted by the product of the first numbers of its adapter's matrices. */
static uint64_t input(const ifl_ctx *x, const ifl_step *s, int t) {
  const int n = s->adapter ? s->adapter[s->seq[t]] : -1, first = STOP_ID + 1, count = NAN_ID - first;
  if (n < 0 || s->id[t] < first || s->id[t] >= first + count) return (uint64_t)s->id[t];
  const ifl_lora *w = x->adapters[n];
  return (uint64_t)(first + (s->id[t] - first + (w->rank ? (int)(w->a[0] * w->b[0]) : 0)) % count);
}

static float unit(uint64_t v) { return (float)(mix(v) >> 40) / 16777216.0f; }

/* Graph 1: outputs hidden [T][HIDDEN], logits [R][COLS], classes [R][HIDDEN]. Sequences come whole. */
static int encode(ifl_ctx *x, const ifl_step *s) {
  if (!s->types) return -3;
  for (int q = 0; q < s->seqs; q++)
    if (s->past[q]) return -3;
  for (int t = 0; t < s->tokens; t++)
    *row_in(x, s->page_at, s->page, s->seq[t], s->slot[t]) =
        mix(input(x, s, t) * 1000003u + (uint64_t)s->pos[t] + ((uint64_t)s->types[t] << 20) + ((uint64_t)x->c.weights[0] << 40));
  for (int t = 0; t < s->tokens; t++) {
    const int q = s->seq[t];
    float *h = s->out[0] + (int64_t)t * HIDDEN;
    for (int i = 0; i < HIDDEN; i++) h[i] = -1;
    h[0] = (float)s->id[t]; h[1] = (float)s->pos[t]; h[2] = (float)s->types[t];
    h[3] = unit(hash(x, s->page_at, s->page, q, s->first[q + 1] - s->first[q]));
  }
  for (int r = 0; s->out[1] && r < s->out_rows; r++) {
    const int t = s->out_row[r], q = s->seq[t];
    const uint64_t sum = hash(x, s->page_at, s->page, q, s->first[q + 1] - s->first[q]) + (uint64_t)s->slot[t];
    for (int v = 0; v < COLS; v++) s->out[1][(int64_t)r * COLS + v] = v < VOCAB ? unit(sum + (uint64_t)v) * 8 : 1e9f;
    for (int v = 0; v < HIDDEN; v++) s->out[2][(int64_t)r * HIDDEN + v] = v < 3 ? unit(sum * 7 + (uint64_t)v) : 1e9f;
  }
  return 0;
}

EXPORT int32_t ifl_run(ifl_ctx *x, const ifl_step *s) {
  int bad = check(x, s);
  if (bad) return bad;
  if (s->entry == 1) return encode(x, s);
  if (s->entry == 2)
    for (int q = 0; q < s->seqs; q++)
      if (s->xrows[q] < 1 || (s->xpage_at[q + 1] - s->xpage_at[q]) * 64 < s->xrows[q]) return -3;
  for (int t = 0; t < s->tokens; t++) {
    *row_in(x, s->page_at, s->page, s->seq[t], s->slot[t]) = mix(input(x, s, t) * 1000003u + (uint64_t)s->pos[t] + ((uint64_t)x->c.weights[0] << 40));
    if (s->entry == 2) continue;
    float *h = s->out[1] + (int64_t)t * HIDDEN;
    for (int i = 0; i < HIDDEN; i++) h[i] = -1;
    h[0] = (float)s->id[t]; h[1] = (float)s->pos[t]; h[2] = (float)s->tokens; h[3] = x->c.dispatch[s->tokens < 512 ? s->tokens : 512];
  }
  for (int r = 0; r < s->out_rows; r++) {
    int t = s->out_row[r], q = s->seq[t];
    uint64_t sum = seen(x, s, t);
    if (s->entry == 2) sum += mix(hash(x, s->xpage_at, s->xpage, q, s->xrows[q]));
    float *o = s->out[0] + (int64_t)r * COLS;
    for (int v = 0; v < COLS; v++) o[v] = v < VOCAB ? unit(sum + (uint64_t)v) * 8.0f : 1e9f;
    if (s->id[t] == STOP_ID) o[EOS] = 1e6f;
    else if (s->entry == 0) o[EOS] = -1e6f;
    o[NAN_ID] = -1e6f; /* never chosen greedily */
    if (s->id[t] == NAN_ID) o[0] = NAN;
  }
  return 0;
}
