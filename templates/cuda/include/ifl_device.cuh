/* What every kernel of a model gets, groups of threads that work together, and the functions of expressions.
 *
 * The same text goes through nvcc and, with the emulation's header in front, through a C++ compiler. Inline PTX stands
 * in ifl_intrin.cuh alone. */
#pragma once
#include "ifl_intrin.cuh"
#include "ifl_step.h"
#include <math.h>
#include <stdint.h>

#define IFL_DEVICE static __device__ inline
#define IFL_SLOTS 240 /* most buffers of values */

/* A model on a device, in device memory; the runtime fills it when it opens the model. */
struct ifl_ctx {
  const uint8_t *weights;
  const uint8_t *tables; /* the same, of tables that rows are looked up in; they may be the host's memory */
  uint8_t *state, *host_state; /* of offsets below state_split and from there on: the latter is the host's memory */
  int64_t state_split;
  uint8_t *act;         /* packed rows of the matmul that runs */
  uint8_t *attention;   /* partial results of splits, and their counters */
  uint8_t *experts;     /* rows sorted by expert, and their hidden rows */
  const int32_t *zeros; /* [max_tokens] */
  const uint8_t *parts; /* what the ranks of the tensor group said, part_bytes each */
  int64_t part_bytes;
  /* Of a product of many rows: its rows as f16, a piece of its weights likewise, and what it gives, [row][columns rounded up
   * to 16], times a factor of each row. */
  uint16_t *wide, *panels;
  float *product, *factor;
  int32_t pages, max_tokens, max_out_rows, max_seqs;
  float *buffer[IFL_SLOTS];
};

/* The state at an offset. */
IFL_DEVICE uint8_t *ifl_state(const ifl_ctx *c, int64_t at) { return (at < c->state_split ? c->state : c->host_state) + at; }

/* The scratch of a row's ops. */
struct ifl_own {
  float *row;
};

/* A block of threads that works on one row. */
struct ifl_block {
  int lane, lanes;
  float *red; /* [32], shared */
  __device__ ifl_block(float *r) : lane(threadIdx.x), lanes(blockDim.x), red(r) {}
  __device__ __forceinline__ void sync() const { __syncthreads(); }
};

/* A warp that works on one row. */
struct ifl_warp {
  int lane, lanes;
  __device__ ifl_warp() : lane(threadIdx.x & 31), lanes(32) {}
  __device__ __forceinline__ void sync() const { __syncwarp(); }
};

IFL_DEVICE float ifl_warp_sum(float v) {
  for (int o = 16; o; o >>= 1)
    v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}
IFL_DEVICE float ifl_warp_max(float v) {
  for (int o = 16; o; o >>= 1)
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}

/* Sum and maximum over a group, known to all its threads, in an order that depends on the group's size alone. */
IFL_DEVICE float ifl_sum_of(const ifl_warp &, float v) { return ifl_warp_sum(v); }
IFL_DEVICE float ifl_max_over(const ifl_warp &, float v) { return ifl_warp_max(v); }
IFL_DEVICE float ifl_sum_of(const ifl_block &g, float v) {
  v = ifl_warp_sum(v);
  if ((g.lane & 31) == 0)
    g.red[g.lane >> 5] = v;
  __syncthreads();
  v = (g.lane & 31) < g.lanes / 32 ? g.red[g.lane & 31] : 0.0f;
  v = ifl_warp_sum(v);
  __syncthreads();
  return v;
}
IFL_DEVICE float ifl_max_over(const ifl_block &g, float v) {
  v = ifl_warp_max(v);
  if ((g.lane & 31) == 0)
    g.red[g.lane >> 5] = v;
  __syncthreads();
  v = (g.lane & 31) < g.lanes / 32 ? g.red[g.lane & 31] : -INFINITY;
  v = ifl_warp_max(v);
  __syncthreads();
  return v;
}

/* Of a number and an index of each thread those of the largest number, of equals the least index; known to all. */
IFL_DEVICE void ifl_first_of(const ifl_warp &, float &top, int &at) {
  for (int o = 16; o; o >>= 1) {
    const float v = __shfl_xor_sync(0xffffffffu, top, o);
    const int i = __shfl_xor_sync(0xffffffffu, at, o);
    if (v > top || (v == top && i < at))
      top = v, at = i;
  }
}
IFL_DEVICE void ifl_first_of(const ifl_block &g, float &top, int &at) {
  const ifl_warp w;
  ifl_first_of(w, top, at);
  if (w.lane == 0)
    g.red[g.lane >> 5] = top, g.red[16 + (g.lane >> 5)] = (float)at; /* exact up to 2²⁴ */
  __syncthreads();
  top = w.lane < g.lanes / 32 ? g.red[w.lane] : -1.0f;
  at = w.lane < g.lanes / 32 ? (int)g.red[16 + w.lane] : 0;
  ifl_first_of(w, top, at);
  __syncthreads();
}

/* The functions that the expressions of elementwise ops call (ir/ops). */
IFL_DEVICE float ifl_set1(float x) { return x; }
IFL_DEVICE float ifl_exp(float x) { return expf(x); }
IFL_DEVICE float ifl_log(float x) { return logf(x); }
IFL_DEVICE float ifl_tanh(float x) { return tanhf(x); }
IFL_DEVICE float ifl_erf(float x) { return erff(x); }
IFL_DEVICE float ifl_abs(float x) { return fabsf(x); }
IFL_DEVICE float ifl_min(float a, float b) { return b < a ? b : a; } /* NaN in a stays, as in the CPU's vectors */
IFL_DEVICE float ifl_max(float a, float b) { return b > a ? b : a; }
IFL_DEVICE float ifl_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

IFL_DEVICE int ifl_min_int(int a, int b) { return a < b ? a : b; }
IFL_DEVICE int ifl_max_int(int a, int b) { return a > b ? a : b; }
IFL_DEVICE int64_t ifl_round64(int64_t n) { return (n + 63) & ~(int64_t)63; }
IFL_DEVICE int ifl_round16(int n) { return (n + 15) & ~15; }

IFL_DEVICE float ifl_half_bits(uint16_t h) {
  __half x;
  *reinterpret_cast<uint16_t *>(&x) = h;
  return __half2float(x);
}
template <class H> IFL_DEVICE uint16_t ifl_bits16(H h) { return *reinterpret_cast<const uint16_t *>(&h); }
IFL_DEVICE float ifl_bf16_bits(uint16_t h) { return __uint_as_float((uint32_t)h << 16); }

/* Rows of a sequence after this step. */
IFL_DEVICE int ifl_rows_of(const ifl_step *s, int seq) { return s->past[seq] + s->first[seq + 1] - s->first[seq]; }

/* The step as attention sees it that reads the sources' rows: they are all there, and the step's tokens add none. */
IFL_DEVICE ifl_step ifl_source_step(const ifl_ctx *c, const ifl_step *s) {
  ifl_step x = *s;
  x.page_at = s->xpage_at;
  x.page = s->xpage;
  x.past = s->xrows;
  x.slot = c->zeros;
  x.mask = NULL;
  return x;
}
