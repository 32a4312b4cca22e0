/* The functions of the step ABI (ifl_step.h). The generated file includes this at its end, after the tables that describe its
 * model: ifl_graphs, ifl_buffers, ifl_states, ifl_fixed_states, ifl_lookups, ifl_acts and ifl_mixtures, each unless it is empty. */
#pragma once
#include "ifl_tables.h"

/* Assigns addresses in the arena, or none if base is NULL. Returns the arena's size in bytes. */
static int64_t ifl_layout(ifl_ctx *c, uint8_t *base, int threads, int tokens, int out_rows, int seqs) {
  int64_t at = 0;
#define IFL_TAKE(field, type, bytes) do { if (base) (field) = (type)(base + at); at += ifl_round64(bytes); } while (0)
#define IFL_COUNT(list) (sizeof(list) / sizeof *(list))
  const int rows = ifl_max_int(tokens, out_rows);
  (void)rows, (void)tokens, (void)seqs;
#ifdef IFL_BUFFERS
  const int count[] = {tokens, out_rows, seqs};
  for (int i = 0; i < IFL_BUFFERS; i++) IFL_TAKE(c->buffer[i], float *, (int64_t)ifl_buffers[i].cols * count[ifl_buffers[i].rows] * 4);
#endif
#ifdef IFL_PACKED
  int64_t act = 64;
  for (size_t i = 0; i < IFL_COUNT(ifl_acts); i++) {
    const int64_t n = ifl_tile_bytes(ifl_acts[i].kind, ifl_acts[i].k, 1);
    act = n > act ? n : act;
  }
  IFL_TAKE(c->act, uint8_t *, act * rows);
#endif
#ifdef IFL_SPARSE_K
  IFL_TAKE(c->sparse, float *, ((int64_t)rows + 15) / 16 * 16 * IFL_SPARSE_K * 4);
#endif
#ifdef IFL_LORA_PARTS
  IFL_TAKE(c->lora, float *, (int64_t)rows * IFL_LORA_PARTS * IFL_LORA_RANK * 4);
#endif
#ifdef IFL_ATTENTION
  const int64_t attention = ifl_attention_scratch(threads, tokens, IFL_ATTENTION);
  if (base) c->attention_bytes = attention;
  IFL_TAKE(c->attention, uint8_t *, attention);
#endif
#ifdef IFL_EXPERTS
  int64_t experts = 0;
  for (size_t i = 0; i < IFL_COUNT(ifl_mixtures); i++) {
    const ifl_mixture *m = ifl_mixtures + i;
    const int64_t n = ifl_experts_bytes(rows, m->experts, m->top_k, m->cols, m->hidden, m->act_in, m->act_hidden);
    experts = n > experts ? n : experts;
  }
  IFL_TAKE(c->experts, uint8_t *, experts);
#endif
#ifdef IFL_CELL_SCRATCH
  const int64_t floats[] = {IFL_CELL_SCRATCH};
  int64_t cells = 0;
  for (size_t i = 0; i < IFL_COUNT(floats); i++) cells = floats[i] > cells ? floats[i] : cells;
#endif
#ifdef IFL_CROSS
  IFL_TAKE(c->zeros, int32_t *, (int64_t)tokens * 4);
#endif
  IFL_TAKE(c->own, struct ifl_own *, threads * (int64_t)sizeof(struct ifl_own));
  for (int i = 0; i < threads; i++) {
#ifdef IFL_PACKED
    IFL_TAKE(c->own[i].act, uint8_t *, act * IFL_PRIVATE_ROWS);
#endif
#ifdef IFL_SPARSE_K
    IFL_TAKE(c->own[i].sparse, float *, (int64_t)IFL_PRIVATE_ROWS * IFL_SPARSE_K * 4);
#endif
#ifdef IFL_PRODUCT_K
    const int64_t y = (int64_t)rows * IFL_GROUP > IFL_CALL ? (int64_t)rows * IFL_GROUP : IFL_CALL;
    IFL_TAKE(c->own[i].y, float *, (y + 16) * 4);
    IFL_TAKE(c->own[i].mm, uint8_t *, (int64_t)IFL_PRODUCT_K * IFL_MM_SCRATCH_PER_K + 4096);
#endif
#ifdef IFL_LORA_PARTS
    IFL_TAKE(c->own[i].lora, float *, (int64_t)IFL_LORA_ROWS * IFL_PRODUCT_K * 4);
#endif
#ifdef IFL_CELL_SCRATCH
    IFL_TAKE(c->own[i].cells, float *, cells * 4);
#endif
#ifdef IFL_ROW
    IFL_TAKE(c->own[i].row, float *, (int64_t)IFL_SCRATCH_ROWS * IFL_ROW * 4);
#endif
  }
#undef IFL_TAKE
  return at;
}

static void ifl_thread(void *arg, int tid, int threads) {
  ifl_ctx *c = arg;
  (void)threads;
#ifdef IFL_PACKED
  c->own[tid].claimed = 0;
#endif
  ifl_graphs[c->step->entry](c, c->step, tid);
  if (c->marks) ifl_note(c, tid, IFL_DONE, 0);
}

/* Checks that the pages of sequence q are valid and hold `rows` rows. */
static inline __attribute__((unused)) int ifl_check_pages(const ifl_ctx *c, const int32_t *at, const int32_t *page, int q, int64_t rows) {
  if (at[q] < 0 || at[q + 1] < at[q] || (rows + 63) / 64 > at[q + 1] - at[q]) return 0;
  for (int i = at[q]; i < at[q + 1]; i++)
    if (page[i] < 0 || page[i] >= c->pages) return 0;
  return 1;
}

/* Checks that an adapter is loaded; −1 is none. */
static int ifl_check_adapter(const ifl_ctx *c, int32_t n) {
#ifdef IFL_LORA_PARTS
  return n == -1 || (n >= 0 && n < IFL_ADAPTERS && c->adapter[n]);
#else
  return (void)c, n >= -1 && n < IFL_ADAPTERS; /* of another rank */
#endif
}

#ifdef IFL_CELLS
/* Checks that the cells of sequence q are valid and hold rows up to `last`, and that those with rows of earlier steps or of a tree
 * are kept. */
static int ifl_check_cells(const ifl_ctx *c, const ifl_step *s, int q, int32_t last) {
  if (!s->cell_at || s->cell_at[q] < 0 || s->cell_at[q + 1] < s->cell_at[q] || s->cell_from[q] < 0 || s->cell_from[q] > last / IFL_CELL_ROWS) return 0;
  if (s->cell_from[q] > 0 && s->cell_from[q] * (int64_t)IFL_CELL_ROWS >= s->past[q]) return 0;
  if (last / IFL_CELL_ROWS - s->cell_from[q] >= s->cell_at[q + 1] - s->cell_at[q]) return 0;
  const int tree = ifl_tree(s, q);
  for (int i = s->cell_at[q]; i < s->cell_at[q + 1]; i++) {
    const int64_t row = (int64_t)IFL_CELL_ROWS * (s->cell_from[q] + i - s->cell_at[q]);
    if (s->cell[i] < -1 || s->cell[i] >= c->cells || (s->cell[i] < 0 && (tree || row < s->past[q]))) return 0;
  }
  return 1;
}
#endif

/* Checks every field of a step that could make a region read or write out of bounds. (*model).check of runtime/device/cuda must
 * accept exactly the same steps. */
static int32_t ifl_check(const ifl_ctx *c, const ifl_step *s) {
  if (s->abi != IFL_ABI || s->entry < 0 || s->entry >= (int)IFL_COUNT(ifl_graphs)) return -1;
  if (s->tokens < 0 || s->tokens > c->max_tokens || s->out_rows < 0 || s->out_rows > c->max_out_rows) return -2;
  if (s->seqs < 0 || s->seqs > c->max_seqs || s->mask_words < 0) return -2;
  for (int q = 0; q < s->seqs; q++) {
    if (s->first[q] < 0 || s->first[q + 1] < s->first[q] || s->past[q] < 0) return -3;
    if (s->adapter && !ifl_check_adapter(c, s->adapter[q])) return -3;
#ifdef IFL_STATES
    if (!ifl_check_pages(c, s->page_at, s->page, q, s->past[q])) return -3;
#endif
#ifdef IFL_CROSS
    if (s->entry == IFL_CROSS && (!s->xrows || s->xrows[q] < 1 || !ifl_check_pages(c, s->xpage_at, s->xpage, q, s->xrows[q]))) return -3;
#endif
  }
  for (int t = 0; t < s->tokens; t++) {
    const int q = s->seq[t];
    if (s->id[t] < 0 || s->pos[t] < 0 || s->slot[t] < 0) return -3;
    if (q < 0 || q >= s->seqs || t < s->first[q] || t >= s->first[q + 1]) return -3;
#ifdef IFL_STATES
    const int32_t last = s->mask && s->pos[t] > s->slot[t] ? s->pos[t] : s->slot[t]; /* in a tree, a token sees rows up to its position */
    if (last / 64 >= s->page_at[q + 1] - s->page_at[q]) return -3;
#endif
#ifdef IFL_CELLS
    if (!(IFL_CELLS >> s->entry & 1)) continue; /* the graph has no cells */
    if (s->slot[t] != (int64_t)s->past[q] + t - s->first[q]) return -3; /* no row is left out, or before the first cell */
    if (t + 1 == s->first[q + 1] && !ifl_check_cells(c, s, q, s->slot[t])) return -3;
#endif
  }
#ifdef IFL_LOOKUPS
  for (size_t i = 0; i < IFL_COUNT(ifl_lookups); i++) {
    const int32_t *list = *(const int32_t *const *)(const void *)((const char *)s + ifl_lookups[i].field);
    if (s->entry != ifl_lookups[i].entry) continue;
    for (int t = 0; t < s->tokens; t++)
      if (!list || list[t] < 0 || list[t] >= ifl_lookups[i].below) return -3;
  }
#endif
  for (int r = 0; r < s->out_rows; r++)
    if (s->out_row[r] < 0 || s->out_row[r] >= s->tokens) return -3;
  return 0;
}

int32_t ifl_abi(void) { return IFL_ABI; }

/* Bytes of the pages, and of the cells after them. */
static int64_t ifl_pages_bytes(int32_t pages) {
  int64_t n = 0;
#ifdef IFL_STATES
  for (size_t i = 0; i < IFL_COUNT(ifl_states); i++) n += ifl_states[i].page * ifl_states[i].elements;
#endif
  return ifl_round64(n * pages);
}
static int64_t ifl_cells_bytes(int32_t cells) {
  int64_t n = 0;
#ifdef IFL_CELLS
  for (size_t i = 0; i < IFL_COUNT(ifl_fixed_states); i++) n += ifl_cell_bytes(ifl_fixed_states + i) * ifl_fixed_states[i].elements;
#endif
  return n * cells;
}

int64_t ifl_state_bytes(int32_t pages, int32_t cells) { return ifl_pages_bytes(pages) + ifl_cells_bytes(cells); }

int64_t ifl_arena_bytes(int32_t threads, int32_t max_tokens, int32_t max_out_rows, int32_t max_seqs) {
  return ifl_round64(sizeof(ifl_ctx)) + ifl_layout(NULL, NULL, threads, max_tokens, max_out_rows, max_seqs);
}

ifl_ctx *ifl_open(const ifl_config *f) {
  if (f->abi != IFL_ABI || f->threads < 1) return NULL;
#ifdef IFL_RANKS
  if (!f->comm) return NULL;
#endif
  ifl_ctx *c = (ifl_ctx *)f->arena;
  memset(c, 0, sizeof *c);
  ifl_layout(c, f->arena + ifl_round64(sizeof *c), f->threads, f->max_tokens, f->max_out_rows, f->max_seqs);
  c->threads = f->threads;
  c->pages = f->pages;
  c->cells = f->cells;
  c->max_tokens = f->max_tokens;
  c->max_out_rows = f->max_out_rows;
  c->max_seqs = f->max_seqs;
  c->weights = f->weights;
  c->dispatch = f->dispatch;
  c->state = f->state;
#ifdef IFL_CELLS
  c->cell = f->state + ifl_pages_bytes(f->pages);
#endif
#ifdef IFL_RANKS
  c->comm = f->comm;
#endif
#ifdef IFL_CROSS
  memset(c->zeros, 0, (size_t)f->max_tokens * 4);
#endif
  c->pool = ifl_pool_open(f->threads, f->cpus);
  if (c->pool) ifl_pool_adapt(c->pool);
  return c->pool ? c : NULL;
}

int32_t ifl_run(ifl_ctx *c, const ifl_step *step) {
  const int32_t bad = ifl_check(c, step);
  if (bad) return bad;
  if (step->tokens == 0) return 0;
  c->step = step;
  c->threads = ifl_pool_active(c->pool); /* results are bit-identical for any number of threads */
#ifdef IFL_PACKED
  atomic_store_explicit(&c->claimed, 0, memory_order_relaxed);
#endif
  ifl_pool_run(c->pool, ifl_thread, c);
#ifdef IFL_RANKS
  if (c->failed) return -4;
#endif
  return 0;
}

#ifndef IFL_CALIB_SUMS
#define IFL_CALIB_SUMS 0
#define IFL_CALIB_HESSIANS 0
#define IFL_CALIB_ROW 0
#define IFL_CALIB_NONE
#endif

int64_t ifl_calib_sums(void) { return IFL_CALIB_SUMS; }

int64_t ifl_calib_row_len(void) { return IFL_CALIB_ROW; }

int64_t ifl_calib_hessians(void) { return IFL_CALIB_HESSIANS; }

void ifl_calib_start(ifl_ctx *c, double *sums, float *rows, float *hessians) {
#ifdef IFL_CALIB_NONE
  (void)c, (void)sums, (void)rows, (void)hessians;
#else
  c->calib = sums, c->calib_rows = rows, c->hessians = hessians;
#endif
}

void ifl_trace(ifl_ctx *c, ifl_mark *marks, int64_t capacity) {
  c->marks = capacity > 1 ? marks : NULL;
  c->marks_room = capacity;
}

void ifl_set_adapter(ifl_ctx *c, int32_t number, const ifl_lora *sites) {
#ifdef IFL_LORA_PARTS
  c->adapter[number] = sites;
#else
  (void)c, (void)number, (void)sites;
#endif
}

void ifl_move(ifl_ctx *c, int32_t to_page, int32_t to, int32_t from_page, int32_t from) {
#ifdef IFL_STATES
  uint8_t *base = c->state;
  for (size_t i = 0; i < IFL_COUNT(ifl_states); i++) {
    const ifl_state *x = ifl_states + i;
    for (int e = 0; e < x->elements; e++, base += x->page * c->pages)
      ifl_kv_move(base + to_page * x->page, to, base + from_page * x->page, from, x->kv_heads, x->dim, x->vdim, x->elem_bytes);
  }
#else
  (void)c, (void)to_page, (void)to, (void)from_page, (void)from;
#endif
}

#ifdef IFL_CELLS
/* Copies row `from` of a cell, or all of the cell, to row `to` of another, for every fixed-size state. */
static void ifl_copy_in_cells(ifl_ctx *c, int32_t to_cell, int to, int32_t from_cell, int from, int whole) {
  uint8_t *base = c->cell;
  for (size_t i = 0; i < IFL_COUNT(ifl_fixed_states); i++) {
    const ifl_fixed *x = ifl_fixed_states + i;
    const int64_t bytes = ifl_cell_bytes(x);
    for (int e = 0; e < x->elements; e++, base += bytes * c->cells) {
      uint8_t *t = base + to_cell * bytes;
      const uint8_t *f = base + from_cell * bytes;
      if (whole) memcpy(t, f, (size_t)bytes);
      else memmove(t + 4 * (x->start + to * x->row), f + 4 * (x->start + from * x->row), (size_t)x->row * 4);
    }
  }
}
#endif

void ifl_move_in_cells(ifl_ctx *c, int32_t to_cell, int32_t to, int32_t from_cell, int32_t from) {
#ifdef IFL_CELLS
  ifl_copy_in_cells(c, to_cell, to, from_cell, from, 0);
#else
  (void)c, (void)to_cell, (void)to, (void)from_cell, (void)from;
#endif
}

void ifl_copy_cell(ifl_ctx *c, int32_t to, int32_t from) {
#ifdef IFL_CELLS
  ifl_copy_in_cells(c, to, 0, from, 0, 1);
#else
  (void)c, (void)to, (void)from;
#endif
}

void ifl_close(ifl_ctx *c) { ifl_pool_close(c->pool); }
