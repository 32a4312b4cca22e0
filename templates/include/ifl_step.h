/* The step ABI: the one definition of what the engine hands to a compiled model, on every target.
 *
 * A step is ragged: T tokens of any mix of sequences (decode tokens, prefill chunks, speculation trees). The tokens of
 * one sequence stand together, in ascending position. KV rows live in pages; a sequence owns a list of page ids. */
#pragma once
#include <stdint.h>

#define IFL_ABI 4
#define IFL_MAX_OUT 8
#define IFL_ROWS 513 /* dispatch tables have an entry for 0…511 rows; the last one serves every larger count */

/* The argmax of some logits, the first of equals. at is IFL_NONE before any was looked at, and IFL_UNSURE where one was no
 * finite number. */
typedef struct ifl_best {
  float value;
  int32_t at;
} ifl_best;
enum { IFL_NONE = -1, IFL_UNSURE = -2 };

typedef struct ifl_step {
  int32_t abi;   /* IFL_ABI */
  int32_t entry; /* which graph of the module, in its order */
  int32_t tokens, out_rows, seqs;
  int32_t mask_words; /* words a token in mask; 0: no tree */
  const int32_t *id;    /* [T] token ids */
  const int32_t *pos;   /* [T] positions, for rope and masks */
  const int32_t *seq;   /* [T] sequence of each token, 0…S-1 */
  const int32_t *slot;  /* [T] the state row each token writes (= pos outside speculation trees) */
  const int32_t *types; /* [T] token types, or NULL */
  const int32_t *out_row; /* [R] token index of each output row */
  const int32_t *first; /* [S+1] first token of each sequence in this step */
  const int32_t *past;  /* [S] state rows written before this step */
  const int32_t *page_at; /* [S+1] where each sequence's pages begin in page */
  const int32_t *page;    /* page ids; rows 64·i … 64·i+63 of a sequence are in its i-th page */
  /* [T][mask_words], or NULL. A sequence whose first token in the step sees itself is a tree: bit i of a token's words
   * says that it sees the sequence's i-th token of the step, which are its ancestors and itself, at consecutive
   * positions from that of the first token on. Every other sequence is causal. */
  const uint64_t *mask;
  const int32_t *adapter; /* [S], reserved: NULL */
  float *out[IFL_MAX_OUT]; /* one array per yield of the graph, row-major */
  const int32_t *xpage_at; /* [S+1] where the pages of each sequence's source begin in xpage, or NULL: no sources */
  const int32_t *xpage;    /* page ids of source states */
  const int32_t *xrows;    /* [S] rows of each sequence's source */
  /* [threads][R]: each thread compares the logits it computes with its part, while they are in its cache; NULL: nobody asks.
   * Only graphs with `best` in the manifest do. */
  ifl_best *best;
} ifl_step;

/* What ifl_open is given. All memory stays the caller's. */
typedef struct ifl_config {
  int32_t abi;
  int32_t threads;
  const int32_t *cpus;     /* [threads] processor to pin each thread to; NULL or -1: do not pin */
  const uint8_t *weights;  /* packed weights, 64-byte aligned */
  int64_t weights_bytes;
  uint8_t *state;          /* ifl_state_bytes(pages) bytes, 64-byte aligned, zeroed */
  int32_t pages;
  int32_t max_tokens, max_out_rows, max_seqs;
  uint8_t *arena;          /* ifl_arena_bytes(…) bytes, 64-byte aligned */
  const uint8_t *dispatch; /* [matmuls][IFL_ROWS] index of the implementation to use */
  const struct ifl_comm *comm; /* the other ranks of a partitioned model (ifl_comm.h); NULL: the model is whole */
} ifl_config;

/* What a model's library exports. ifl_run returns 0, or a negative code: -1 wrong abi, -2 a count over its maximum,
 * -3 an id, page or row out of range (checked before anything is written), -4 another rank could not be reached (the
 * context takes no further steps). One step at a time per context. */
typedef struct ifl_ctx ifl_ctx;
int32_t ifl_abi(void);
int64_t ifl_state_bytes(int32_t pages);
int64_t ifl_arena_bytes(int32_t threads, int32_t max_tokens, int32_t max_out_rows, int32_t max_seqs);
ifl_ctx *ifl_open(const ifl_config *config); /* NULL: wrong abi, or threads could not be started */
int32_t ifl_run(ifl_ctx *ctx, const ifl_step *step);
void ifl_close(ifl_ctx *ctx);
/* Copies a state row from row `from` of a page to row `to` of another or the same one, in every element of every state. */
void ifl_move(ifl_ctx *ctx, int32_t to_page, int32_t to, int32_t from_page, int32_t from);
/* Tracing: from here on every thread notes when it begins a region, and when it begins to wait for the others, in its
 * part of marks[threads][capacity]: mark 0 counts its marks (the count is in ns), the others follow. A full part gets no
 * more. NULL ends it. */
typedef struct ifl_mark {
  int64_t ns;    /* on the monotonic clock */
  int32_t what;  /* number of the region in the manifest; IFL_WAIT: for the others; IFL_DONE: with the step */
  int32_t layer; /* in a repeat, else 0 */
} ifl_mark;
enum { IFL_WAIT = -1, IFL_DONE = -2 };
void ifl_trace(ifl_ctx *ctx, ifl_mark *marks, int64_t capacity);
/* Calibration: from here on every matmul adds the squares of the rows it reads to sums[threads][ifl_calib_sums()], by column. */
int64_t ifl_calib_sums(void);
void ifl_calib_set_sums(ifl_ctx *ctx, double *sums);
