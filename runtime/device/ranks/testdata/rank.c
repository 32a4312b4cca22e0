/* One rank of a model small enough to know by heart. Each of its stages is one layer: a token's value and its rank make a
 * row of the state, the ranks' sums over the rows of the prefix are added up, and the sum, cut to four digits, is the next
 * stage's value. With cells, these hold the sums too, and each step compares them with those of the pages. weights: salt, rank, first rank of the group, its size, stages behind this one, what goes wrong. */
#include "ifl_comm.h"
#include "ifl_step.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VOCAB = 61, COLS = 64, CELL = 1 + IFL_CELL_ROWS }; /* a cell: the sum before its rows, and the rows */
enum { DIES = 1, HANGS = 2, SICK = 3 }; /* weights[5], at the token 57 */

struct ifl_ctx { ifl_config c; float *x, *part; };

int32_t ifl_abi(void) { return IFL_ABI; }
int64_t ifl_state_bytes(int32_t pages, int32_t cells) { return (int64_t)pages * 64 * 4 + (int64_t)cells * CELL * 4; }
int64_t ifl_arena_bytes(int32_t threads, int32_t tokens, int32_t out_rows, int32_t seqs) { return 64 * ((int64_t)threads + tokens + out_rows + seqs); }

ifl_ctx *ifl_open(const ifl_config *c) {
  if (c->abi != IFL_ABI || !c->comm) return 0;
  ifl_ctx *x = malloc(sizeof *x);
  x->c = *c;
  x->x = malloc((size_t)c->max_tokens * 4);
  x->part = malloc((size_t)c->max_tokens * 4);
  return x;
}

void ifl_close(ifl_ctx *x) {
  free(x->x);
  free(x->part);
  free(x);
}

void ifl_move(ifl_ctx *x, int32_t to_page, int32_t to, int32_t from_page, int32_t from) {
  ((float *)x->c.state)[(int64_t)to_page * 64 + to] = ((float *)x->c.state)[(int64_t)from_page * 64 + from];
}

static float *cell(const ifl_ctx *x, int32_t id) { return (float *)x->c.state + (int64_t)x->c.pages * 64 + (int64_t)id * CELL; }

void ifl_move_in_cells(ifl_ctx *x, int32_t to_cell, int32_t to, int32_t from_cell, int32_t from) { cell(x, to_cell)[1 + to] = cell(x, from_cell)[1 + from]; }
void ifl_copy_cell(ifl_ctx *x, int32_t to, int32_t from) { memcpy(cell(x, to), cell(x, from), CELL * 4); }

static float *row(const ifl_ctx *x, const ifl_step *s, int q, int slot) {
  return (float *)x->c.state + (int64_t)s->page[s->page_at[q] + slot / 64] * 64 + slot % 64;
}

static int tree(const ifl_step *s, int q) { return s->mask && s->mask[(int64_t)s->first[q] * s->mask_words] & 1; }

/* Whether a token sees a row of its sequence. */
static int sees(const ifl_step *s, int t, int i) {
  const int q = s->seq[t], n = i - s->past[q];
  return n < 0 || !tree(s, q) || (s->mask[(int64_t)t * s->mask_words + n / 64] >> (n % 64) & 1);
}

/* Writes the new rows of a sequence into its cells, and checks that its sums are those of the pages. */
static int check_cells(ifl_ctx *x, const ifl_step *s, int q) {
  const int32_t *list = s->cell + s->cell_at[q];
  const int from = s->cell_from[q], past = s->past[q];
  float sum = from > 0 ? *cell(x, list[0]) : 0, want = 0;
  for (int i = 0; i < 16 * from; i++) want += *row(x, s, q, i);
  for (int i = 16 * from; i < past + s->first[q + 1] - s->first[q]; i++) {
    const int32_t id = list[i / 16 - from];
    if (i / 16 - from >= s->cell_at[q + 1] - s->cell_at[q] || id < -1 || id >= x->c.cells || (id < 0 && i < past)) return -3;
    if (sum != want) return -3;
    if (id >= 0 && i % 16 == 0 && (!tree(s, q) || i <= past)) *cell(x, id) = sum;
    if (id >= 0 && i >= past) cell(x, id)[1 + i % 16] = *row(x, s, q, i);
    want += *row(x, s, q, i);
    sum += id < 0 ? *row(x, s, q, i) : cell(x, id)[1 + i % 16];
  }
  return sum == want ? 0 : -3;
}

int32_t ifl_run(ifl_ctx *x, const ifl_step *s) {
  const ifl_comm *comm = x->c.comm;
  const int rank = x->c.weights[1], first = x->c.weights[2], tp_size = x->c.weights[3], behind = x->c.weights[4];
  const int64_t bytes = (int64_t)s->tokens * 4;
  const void *parts[64];
  if (s->abi != IFL_ABI) return -1;
  if (s->tokens > x->c.max_tokens) return -2;
  for (int t = 0; t < s->tokens; t++) {
    if (s->id[t] < 0 || s->id[t] >= VOCAB) return -3;
    if (s->id[t] == 57 && x->c.weights[5] == DIES) _exit(3);
    if (s->id[t] == 57 && x->c.weights[5] == HANGS) sleep(60);
    x->x[t] = (float)s->id[t];
  }
  if (first > 0 && comm->recv(comm->self, rank - tp_size, x->x, bytes)) return -4;
  for (int t = 0; t < s->tokens; t++) *row(x, s, s->seq[t], s->slot[t]) = fmodf(x->x[t] * 31 + (float)(rank * 7 + x->c.weights[0]), 997);
  for (int q = 0; x->c.cells > 0 && q < s->seqs; q++)
    if (check_cells(x, s, q)) return -3;
  for (int t = 0; t < s->tokens; t++) {
    x->part[t] = 0;
    for (int i = 0; i <= s->slot[t]; i++)
      if (sees(s, t, i)) x->part[t] += *row(x, s, s->seq[t], i);
  }
  if (comm->exchange(comm->self, x->part, bytes, parts)) return -4;
  for (int t = 0; t < s->tokens; t++) {
    float sum = 0;
    for (int m = 0; m < tp_size; m++) sum += ((const float *)parts[m])[t];
    x->x[t] = fmodf(sum, 1009);
  }
  if (behind > 0) return comm->send(comm->self, rank + tp_size, x->x, bytes) ? -4 : 0;
  for (int r = 0; r < s->out_rows; r++)
    for (int v = 0; v < COLS; v++) {
      const int sick = s->id[s->out_row[r]] == 57 && x->c.weights[5] == SICK;
      s->out[0][(int64_t)r * COLS + v] = sick ? NAN : fmodf(x->x[s->out_row[r]] * (float)(v + 3), 101);
    }
  return 0;
}
