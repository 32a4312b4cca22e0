/* The context of a model's kernels, groups of cooperating threads, and the functions of elementwise expressions.
 *
 * The same source is compiled by nvcc and, after the emulation's header, by a C++ compiler. Only ifl_intrin.cuh and
 * ifl_intrin90.cuh contain inline PTX. */
#pragma once
#include "ifl_intrin.cuh"
#include "ifl_step.h"
#include <math.h>
#include <stdint.h>

#define IFL_DEVICE static __device__ inline
#define IFL_SLOTS 240 /* maximum number of buffers of values */

/* A model on a device. The struct is in device memory; the runtime fills it when it opens the model. */
struct ifl_ctx {
  const uint8_t *weights;
  const uint8_t *tables; /* weights of lookup tables; may be in host memory */
  uint8_t *state, *host_state; /* the KV cache at offsets below state_split in device memory, from there on in host memory */
  int64_t state_split;
  uint8_t *cell;        /* the cells of the fixed-size states, by element */
  int64_t cells;
  uint8_t *act;         /* packed rows of the current matmul */
  float *rows;          /* temporaries of row ops that are too wide for shared memory, or rows in front of adapters */
  float *partial;       /* tiles of matmuls whose blocks divide K, and a counter for each tile */
  unsigned *arrived;
  uint8_t *attention;   /* partial results of splits, and their counters */
  uint8_t *experts;     /* rows sorted by expert, and their hidden rows */
  const int32_t *zeros; /* [max_tokens] */
  const float *parts; /* of the TP ranks, in the last exchange */
  /* Buffers of a matmul of many rows: its rows as f16, a piece of its weights as 16-bit floats, and its result [row][columns
   * rounded up to 16], each row scaled by a factor. */
  uint16_t *wide, *panels;
  float *product, *factor;
  float *lora; /* [row][part][IFL_LORA_RANK] A·x of the current matmul's adapters */
  int32_t pages, max_tokens, max_out_rows, max_seqs;
  const ifl_lora *adapter[IFL_ADAPTERS]; /* matrices by site, or NULL */
  float *buffer[IFL_SLOTS];
};

/* The address of the KV cache at an offset. */
IFL_DEVICE uint8_t *ifl_state(const ifl_ctx *c, int64_t at) { return (at < c->state_split ? c->state : c->host_state) + at; }

/* The address of the fixed-size states' cells at an offset. */
IFL_DEVICE uint8_t *ifl_cell(const ifl_ctx *c, int64_t at) { return c->cell + at; }

/* A TP rank's part of the last exchange: rows of so many columns. Exchanges of up to 64 rows are rounded up to a power of two
 * rows, so that one CUDA graph serves all their numbers (partRows in Go). */
IFL_DEVICE const float *ifl_part_of(const ifl_ctx *c, int rank, int rows, int most, int cols) {
  if (rows > 1 && rows <= 64)
    rows = 1 << (32 - __clz(rows - 1));
  return c->parts + (int64_t)rank * (rows < most ? rows : most) * cols;
}

/* The scratch memory of row ops. */
struct ifl_own {
  float *row;
};

/* A thread block that computes one row. */
struct ifl_block {
  int lane, lanes;
  float *red; /* [32], shared */
  __device__ ifl_block(float *r) : lane(threadIdx.x), lanes(blockDim.x), red(r) {}
  __device__ __forceinline__ void sync() const { __syncthreads(); }
};

/* A warp that computes one row. */
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

/* Sum and maximum over a group, returned to all its threads. The order depends only on the group's size. */
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

/* The largest number of a group with its index, returned to all threads; ties go to the lowest index. */
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

/* Called by all threads of a block after it has stored its part of a sum that several blocks compute. Reports whether it is
 * the last of `blocks` blocks that share a counter, and then resets the counter; flag is a word of shared memory. */
IFL_DEVICE bool ifl_last_block(unsigned *counter, unsigned blocks, int *flag) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    *flag = atomicInc(counter, blocks - 1) == blocks - 1;
  __syncthreads();
  if (!*flag)
    return false;
  __threadfence();
  return true;
}

/* The functions of the expressions of elementwise ops (ir/ops). */
IFL_DEVICE float ifl_set1(float x) { return x; }
IFL_DEVICE float ifl_exp(float x) { return expf(x); }
IFL_DEVICE float ifl_log(float x) { return logf(x); }
IFL_DEVICE float ifl_log1p(float x) { return log1pf(x); }
IFL_DEVICE float ifl_tanh(float x) { return tanhf(x); }
IFL_DEVICE float ifl_erf(float x) { return erff(x); }
IFL_DEVICE float ifl_abs(float x) { return fabsf(x); }
IFL_DEVICE float ifl_min(float a, float b) { return b < a ? b : a; } /* returns a if it is NaN, as on the CPU */
IFL_DEVICE float ifl_max(float a, float b) { return b > a ? b : a; }
IFL_DEVICE float ifl_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

IFL_DEVICE int ifl_min_int(int a, int b) { return a < b ? a : b; }
IFL_DEVICE int ifl_max_int(int a, int b) { return a > b ? a : b; }
IFL_DEVICE int64_t ifl_round64(int64_t n) { return (n + 63) & ~(int64_t)63; }
IFL_DEVICE int ifl_round16(int n) { return (n + 15) & ~15; }

/* Reports whether the tokens of a sequence in a step form a speculation tree: then its first token sees itself. */
IFL_DEVICE bool ifl_tree(const ifl_step *s, int seq) {
  return s->mask && s->mask[(int64_t)s->first[seq] * s->mask_words] & 1;
}

IFL_DEVICE float ifl_half_bits(uint16_t h) {
  __half x;
  *reinterpret_cast<uint16_t *>(&x) = h;
  return __half2float(x);
}
template <class H> IFL_DEVICE uint16_t ifl_bits16(H h) { return *reinterpret_cast<const uint16_t *>(&h); }
IFL_DEVICE float ifl_bf16_bits(uint16_t h) { return __uint_as_float((uint32_t)h << 16); }

/* Rows of a sequence after this step. */
IFL_DEVICE int ifl_rows_of(const ifl_step *s, int seq) { return s->past[seq] + s->first[seq + 1] - s->first[seq]; }

/* The step for cross-attention: all rows of the sources exist, and the step's tokens add none. */
IFL_DEVICE ifl_step ifl_source_step(const ifl_ctx *c, const ifl_step *s) {
  ifl_step x = *s;
  x.page_at = s->xpage_at;
  x.page = s->xpage;
  x.past = s->xrows;
  x.slot = c->zeros;
  x.mask = NULL;
  return x;
}
