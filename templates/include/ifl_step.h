/* The step ABI: the interface between the engine and a compiled model on every target.
 *
 * A step is ragged: T tokens of any mix of sequences (decode tokens, prefill chunks, speculation trees). The tokens of
 * one sequence are contiguous and in ascending position. The KV cache is paged: a sequence owns a list of page ids.
 *
 * Fixed-size states (of linear attention, scans and short convolutions) are kept in cells. A cell belongs to 16 rows of a
 * sequence, 16·i … 16·i+15. It holds the states before the first of them, and what each of these rows contributes to the
 * states after it. So a rejected row is simply written again, and a token's result depends only on its sequence. */
#pragma once
#include <stdint.h>

#define IFL_ABI 7
#define IFL_MAX_OUT 8
#define IFL_TOP 64 /* most logits of a row in top */
#define IFL_CELL_ROWS 16 /* rows of a sequence in a cell */
#define IFL_ADAPTERS 256 /* adapters that are loaded at a time */
#define IFL_LORA_RANK 256 /* most rank of an adapter */
#define IFL_ROWS 513 /* entries of a dispatch table: 0…511 rows, and one for more */

/* The argmax of some logits; ties go to the lowest index. at is IFL_NONE initially, and IFL_UNSURE if a logit is not
 * finite. */
typedef struct ifl_best {
  float value;
  int32_t at;
} ifl_best;
enum { IFL_NONE = -1, IFL_UNSURE = -2 };

/* An adapter's matrices at a site, to which it adds B·A·x. Both are 64-byte aligned. */
typedef struct ifl_lora {
  int32_t rank;   /* 0: the adapter does not change this site */
  const float *a; /* [rank][K], K padded to a multiple of 16 with zeros */
  const float *b; /* [N/16][rank][16], N rounded up; with the adapter's scale */
} ifl_lora;

typedef struct ifl_step {
  int32_t abi;   /* IFL_ABI */
  int32_t entry; /* index of the graph in the module */
  int32_t tokens, out_rows, seqs;
  int32_t mask_words; /* words per token in mask; 0: no tree */
  const int32_t *id;    /* [T] token ids */
  const int32_t *pos;   /* [T] positions, for rope and masks */
  const int32_t *seq;   /* [T] sequence of each token, 0…S-1 */
  const int32_t *slot;  /* [T] the KV cache row that each token writes (= pos outside speculation trees) */
  const int32_t *types; /* [T] token types, or NULL */
  const int32_t *out_row; /* [R] token index of each output row */
  const int32_t *first; /* [S+1] first token of each sequence in this step */
  const int32_t *past;  /* [S] KV cache rows written before this step */
  const int32_t *page_at; /* [S+1] index of each sequence's first page in page */
  const int32_t *page;    /* page ids; rows 64·i … 64·i+63 of a sequence are in its i-th page */
  /* [T][mask_words], or NULL. A sequence whose first token in the step sees itself is a tree: bit i of a token's words
   * is set if it sees the sequence's i-th token of the step: its ancestors and itself, at consecutive
   * positions from that of the first token on. Every other sequence is causal. */
  const uint64_t *mask;
  const int32_t *adapter; /* [S] number of each sequence's adapter, or −1; NULL: no sequence has one */
  float *out[IFL_MAX_OUT]; /* one array per yield of the graph, row-major */
  const int32_t *xpage_at; /* [S+1] index of the first page of each sequence's source in xpage; NULL: no sources */
  const int32_t *xpage;    /* page ids of the sources */
  const int32_t *xrows;    /* [S] rows of each sequence's source */
  /* The cells of a sequence's rows, from those of its cell_from-th 16 rows to those of its last row in this step. Where the
   * list starts, the states before its first row must be known: cell_from is 0, or row 16·cell_from was written by an
   * earlier step, and not only as a node of a tree that began before it. The tokens of a sequence write the rows from past
   * on. A cell without rows of earlier steps, of a sequence without a tree, may be −1: it is not kept. */
  const int32_t *cell_at;   /* [S+1] index of each sequence's first cell in cell; NULL: no cells */
  const int32_t *cell_from; /* [S] */
  const int32_t *cell;      /* cell ids, or −1 */
  /* [threads][R], NULL if not requested: the argmax of the logits that each thread computes, found while they are in its
   * cache. Graphs without logits leave it as it is. On a GPU: [R][parts], by part of the columns. */
  ifl_best *best;
  /* On a GPU: how many of the largest logits of each row to find, and where they go: [R][parts][IFL_TOP], in any order
   * within a part, those that it lacks with IFL_NONE. Rows with a number of 1 or less, or over
   * IFL_TOP, are left out, and parts of a row with a number that is not finite. */
  const int32_t *top_k; /* [R] */
  ifl_best *top;
} ifl_step;

/* The arguments of ifl_open. The caller owns all memory. */
typedef struct ifl_config {
  int32_t abi;
  int32_t threads;
  const int32_t *cpus;     /* [threads] CPU to pin each thread to; NULL or -1: do not pin */
  const uint8_t *weights;  /* packed weights, 64-byte aligned */
  int64_t weights_bytes;
  uint8_t *state;          /* ifl_state_bytes(pages, cells) bytes, 64-byte aligned, zeroed */
  int32_t pages, cells;
  int32_t max_tokens, max_out_rows, max_seqs;
  uint8_t *arena;          /* ifl_arena_bytes(…) bytes, 64-byte aligned */
  const uint8_t *dispatch; /* [matmuls][IFL_ROWS] index of the implementation to use */
  const struct ifl_comm *comm; /* the other ranks of a partitioned model (ifl_comm.h); NULL: not partitioned */
} ifl_config;

/* The functions of a model's library. ifl_run returns 0, or a negative code: -1 wrong abi, -2 a count over its maximum,
 * -3 an id, page, cell or row out of range (checked before anything is written), -4 another rank could not be reached (the
 * context takes no further steps). One step at a time per context. */
typedef struct ifl_ctx ifl_ctx;
int32_t ifl_abi(void);
int64_t ifl_state_bytes(int32_t pages, int32_t cells);
int64_t ifl_arena_bytes(int32_t threads, int32_t max_tokens, int32_t max_out_rows, int32_t max_seqs);
ifl_ctx *ifl_open(const ifl_config *config); /* NULL: wrong abi, or a thread could not be started */
int32_t ifl_run(ifl_ctx *ctx, const ifl_step *step);
void ifl_close(ifl_ctx *ctx);
/* Copies KV cache row `from` of a page to row `to` of the same or another page, in every layer of every state. */
void ifl_move(ifl_ctx *ctx, int32_t to_page, int32_t to, int32_t from_page, int32_t from);
/* The same for a row of a cell: `from` and `to` are 0…15. */
void ifl_move_in_cells(ifl_ctx *ctx, int32_t to_cell, int32_t to, int32_t from_cell, int32_t from);
/* Sets an adapter: its matrices by site, which the caller owns and keeps; NULL: no step uses the number any more. */
void ifl_set_adapter(ifl_ctx *ctx, int32_t number, const ifl_lora *sites);
/* Copies a cell. */
void ifl_copy_cell(ifl_ctx *ctx, int32_t to, int32_t from);
/* Tracing: from now on every thread records when it starts a region and when it starts to wait at a barrier, in its part
 * of marks[threads][capacity]. The ns of mark 0 is the number of marks that follow. Marks beyond the capacity are dropped.
 * NULL ends tracing. */
typedef struct ifl_mark {
  int64_t ns;    /* on the monotonic clock */
  int32_t what;  /* index of the region in the manifest; IFL_WAIT: waits at a barrier; IFL_DONE: the step ends */
  int32_t layer; /* in a repeat, else 0 */
} ifl_mark;
enum { IFL_WAIT = -1, IFL_DONE = -2 };
void ifl_trace(ifl_ctx *ctx, ifl_mark *marks, int64_t capacity);
/* Calibration: from now on every matmul adds the squares of its input rows to sums[threads][ifl_calib_sums()], by column, and
 * their Hessian to hessians[ifl_calib_hessians()], unless that is NULL. rows is memory for ifl_calib_row_len() floats
 * per token or output row of a step. */
int64_t ifl_calib_sums(void);
int64_t ifl_calib_row_len(void);
int64_t ifl_calib_hessians(void);
void ifl_calib_start(ifl_ctx *ctx, double *sums, float *rows, float *hessians);
