/* What the regions of a generated step have in common: the context, tracing, how threads share rows, and the parts of a matmul
 * that are the same for all.
 *
 * A region is a function that all threads of a step run; they meet behind it. The generated file defines, before it includes
 * this header, what its model needs of it; what is not defined takes no memory:
 *   IFL_BUFFERS       buffers of values
 *   IFL_ROW           floats of a row of scratch, of which each thread has IFL_SCRATCH_ROWS
 *   IFL_PRODUCT_K     columns of the widest product, and IFL_GROUP those of the widest group of its output
 *   IFL_PACKED        matmuls pack activations
 *   IFL_SPARSE_K      columns of the widest matrix with sparse outliers
 *   IFL_CALIB_SUMS    sums of a thread in calibration; IFL_CALIB_HESSIANS products of columns, of rows of IFL_CALIB_ROW floats
 *   IFL_ATTENTION     the scratch of attention: query heads, width of a key, width of a value, pages of a sequence
 *   IFL_EXPERTS       there are mixtures of experts
 *   IFL_CROSS         the number of the graph whose attention reads the source's state
 *   IFL_RANKS         ranks of the tensor-parallel group, 1 for none: the model is one rank's */
#pragma once
#include "ifl_kernel.h"
#include "ifl_pool.h"
#include <string.h>
#include <time.h>
#ifdef IFL_RANKS
#include "ifl_comm.h"
#endif

#define IFL_PRIVATE_ROWS 16 /* up to so many rows every thread packs activations for itself */
#define IFL_CALL 32768      /* floats of output a kernel call may produce before the ops behind it run */

/* What each thread has for itself. */
struct ifl_own {
#ifdef IFL_ROW
  float *row; /* rows of scratch */
#endif
#ifdef IFL_PRODUCT_K
  float *y;    /* a kernel's output before the ops behind it */
  uint8_t *mm; /* the kernel's scratch */
#endif
#ifdef IFL_PACKED
  uint8_t *act;     /* packed activations of up to IFL_PRIVATE_ROWS rows */
  uint32_t claimed; /* what c->claimed was when this region began */
#endif
#ifdef IFL_SPARSE_K
  float *sparse; /* activations of up to IFL_PRIVATE_ROWS rows, for sparse outliers */
#endif
#ifdef IFL_RANKS
  int32_t failed; /* another rank could not be reached */
#endif
  char pad[64]; /* threads write on lines of their own */
};

struct ifl_ctx {
  ifl_pool *pool;
  int threads, pages, max_tokens, max_out_rows, max_seqs;
  const uint8_t *weights, *dispatch;
  uint8_t *state;
  const ifl_step *step;
  struct ifl_own *own; /* [threads] */
  ifl_mark *marks;     /* [threads][marks_room], where a trace is noted; else NULL */
  int64_t marks_room;
#ifdef IFL_BUFFERS
  float *buffer[IFL_BUFFERS];
#endif
#ifdef IFL_SPARSE_K
  float *sparse; /* activations as kernels multiply them, for sparse outliers */
#endif
#ifdef IFL_CALIB_SUMS
  double *calib; /* [threads][IFL_CALIB_SUMS], where calibration adds up; else NULL */
#endif
#ifdef IFL_CALIB_HESSIANS
  float *hessians;      /* [IFL_CALIB_HESSIANS], where calibration adds up products of columns; else NULL */
  float *calib_rows;    /* [tokens][IFL_CALIB_ROW], the rows of one region meanwhile */
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
  int32_t failed;               /* what the transport said to thread 0 */
  const void *parts[IFL_RANKS]; /* what the ranks gave to the last exchange */
#endif
#ifdef IFL_PACKED
  uint8_t *act; /* packed activations shared by the threads */
  _Alignas(64) _Atomic uint32_t claimed; /* claims of pieces of matmuls in this step, also those that found none left */
  char claimed_pad[60];
#endif
};

/* Notes in the thread's part of the trace what begins now. */
static __attribute__((noinline)) void ifl_note(const ifl_ctx *c, int tid, int what, int layer) {
  ifl_mark *m = c->marks + tid * c->marks_room;
  if (m->ns + 1 >= c->marks_room) return;
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  m[++m->ns] = (ifl_mark){(int64_t)t.tv_sec * 1000000000 + t.tv_nsec, what, layer};
}

/* Region number n runs; then all threads meet. */
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
/* The step as attention sees it that reads the sources' rows: they are all there, and the step's tokens add none. */
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
