/* Shared code of the regions of a generated step: the context, tracing, the division of rows among threads, and the parts of
 * a matmul that do not depend on the model.
 *
 * A region is a function that all threads of a step run, followed by a barrier. The generated file defines the sizes that
 * its model needs before it includes this header; buffers without a definition need no memory:
 *   IFL_BUFFERS       number of buffers of values
 *   IFL_ROW           floats per scratch row; each thread has IFL_SCRATCH_ROWS
 *   IFL_PRODUCT_K     input columns of the widest matmul; IFL_GROUP: columns of the widest group of an output
 *   IFL_PACKED        some matmuls pack activations
 *   IFL_SPARSE_K      columns of the widest matrix with sparse outliers
 *   IFL_LORA_PARTS    most sites of a matmul's weight, for adapters
 *   IFL_CALIB_SUMS    calibration sums per thread; IFL_CALIB_HESSIANS: floats of the Hessians; IFL_CALIB_ROW: floats per token
 *   IFL_ATTENTION     scratch of attention: query heads, width of a key, width of a value, pages of a sequence
 *   IFL_CELLS         the model has fixed-size states; IFL_CELL_SCRATCH: floats of scratch of the ops on them
 *   IFL_EXPERTS       the model has mixtures of experts
 *   IFL_CROSS         index of the graph with cross-attention
 *   IFL_RANKS         ranks of the TP group; 1 if the model is not partitioned */
#pragma once
#include "ifl_kernel.h"
#include "ifl_pool.h"
#include <string.h>
#include <time.h>
#ifdef IFL_RANKS
#include "ifl_comm.h"
#endif

#define IFL_PRIVATE_ROWS 16 /* maximum number of rows that every thread packs for itself */
#define IFL_CALL 32768      /* maximum floats of output of a kernel call before its epilogue */

/* The memory of one thread. */
struct ifl_own {
#ifdef IFL_ROW
  float *row; /* scratch rows */
#endif
#ifdef IFL_PRODUCT_K
  float *y;    /* a kernel's output before its epilogue */
  uint8_t *mm; /* the kernel's scratch */
#endif
#ifdef IFL_PACKED
  uint8_t *act;     /* packed activations of up to IFL_PRIVATE_ROWS rows */
  uint32_t claimed; /* c->claimed at the start of this region */
#endif
#ifdef IFL_SPARSE_K
  float *sparse; /* activations of up to IFL_PRIVATE_ROWS rows, for sparse outliers */
#endif
#ifdef IFL_LORA_PARTS
  float *lora; /* copies of rows for adapters */
#endif
#ifdef IFL_CELL_SCRATCH
  float *cells; /* scratch of ops on fixed-size states */
#endif
#ifdef IFL_RANKS
  int32_t failed; /* nonzero: another rank could not be reached */
#endif
  char pad[64]; /* avoids false sharing */
};

struct ifl_ctx {
  ifl_pool *pool;
  int threads, pages, cells, max_tokens, max_out_rows, max_seqs;
  const uint8_t *weights, *dispatch;
  uint8_t *state;
#ifdef IFL_CELLS
  uint8_t *cell; /* all cells */
#endif
  const ifl_step *step;
  struct ifl_own *own; /* [threads] */
  ifl_mark *marks;     /* [threads][marks_room] trace marks; NULL: no tracing */
  int64_t marks_room;
#ifdef IFL_BUFFERS
  float *buffer[IFL_BUFFERS];
#endif
#ifdef IFL_SPARSE_K
  float *sparse; /* activations after quantization, for sparse outliers */
#endif
#ifdef IFL_LORA_PARTS
  float *lora; /* [rows][IFL_LORA_PARTS][IFL_LORA_RANK] A·x of the current region's rows */
  const ifl_lora *adapter[IFL_ADAPTERS]; /* each adapter's matrices by site; NULL: not loaded */
#endif
#ifdef IFL_CALIB_SUMS
  double *calib;     /* [threads][IFL_CALIB_SUMS] sums of calibration; NULL: no calibration */
  float *calib_rows; /* [tokens][IFL_CALIB_ROW] rows of the current region */
  float *hessians;   /* [IFL_CALIB_HESSIANS] Hessians of calibration; NULL: none */
#endif
#ifdef IFL_ATTENTION
  uint8_t *attention;
  int64_t attention_bytes;
#endif
#ifdef IFL_EXPERTS
  uint8_t *experts; /* rows sorted by expert, and their hidden rows */
#endif
#ifdef IFL_CROSS
  int32_t *zeros; /* [max_tokens] */
#endif
#ifdef IFL_RANKS
  const ifl_comm *comm;
  int32_t failed;               /* the transport's result, set by thread 0 */
  const void *parts[IFL_RANKS]; /* the ranks' parts of the last exchange */
#endif
#ifdef IFL_PACKED
  uint8_t *act; /* packed activations shared by the threads */
  _Alignas(64) _Atomic uint32_t claimed; /* claims of matmul pieces in this step, including those that found none left */
  char claimed_pad[60];
#endif
};

/* Adds a mark to the thread's part of the trace. */
static __attribute__((noinline)) void ifl_note(const ifl_ctx *c, int tid, int what, int layer) {
  ifl_mark *m = c->marks + tid * c->marks_room;
  if (m->ns + 1 >= c->marks_room) return;
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  m[++m->ns] = (ifl_mark){(int64_t)t.tv_sec * 1000000000 + t.tv_nsec, what, layer};
}

/* Runs region number n, then waits at a barrier. */
#define IFL_REGION(n, layer, call)              \
  do {                                          \
    if (c->marks) ifl_note(c, tid, n, layer);   \
    call;                                       \
    if (c->marks) ifl_note(c, tid, IFL_WAIT, 0); \
    ifl_barrier(c->pool);                       \
  } while (0)

static inline int ifl_min_int(int a, int b) { return a < b ? a : b; }
static inline int ifl_max_int(int a, int b) { return a > b ? a : b; }

/* The rows of a thread: first … last−1 of n. */
typedef struct {
  int first, last;
} ifl_rows;
static inline ifl_rows ifl_rows_of_thread(const ifl_ctx *c, int tid, int n) {
  return (ifl_rows){(int)((int64_t)n * tid / c->threads), (int)((int64_t)n * (tid + 1) / c->threads)};
}

/* Rows of a sequence after this step. */
static inline int ifl_rows_of(const ifl_step *s, int seq) { return s->past[seq] + s->first[seq + 1] - s->first[seq]; }

#ifdef IFL_CROSS
/* The step for cross-attention: all rows of the sources exist, and the step's tokens add none. */
static inline ifl_step ifl_source_step(const ifl_ctx *c, const ifl_step *s) {
  ifl_step x = *s;
  x.page_at = s->xpage_at;
  x.page = s->xpage;
  x.past = s->xrows;
  x.slot = c->zeros;
  x.mask = NULL;
  return x;
}
#endif

#ifdef IFL_PACKED
#include "ifl_matmul.h"
#endif
