/* Mixture of experts in three kernels. The first lists each expert's rows in ascending order. The second computes the hidden
 * rows of all row-expert pairs, some columns per thread block. The third sums each row's experts in ascending order, so that
 * a row's result does not depend on the others.
 *
 * Scratch for P = max_rows · top_k pairs: [E + 1] i32 first pair of each expert, [P] i32 row of each pair, [rows · E] i32
 * pair of a row and expert or −1, then, 64-byte aligned, the packed input rows and the hidden rows. */
#pragma once
#include "ifl_gemv.cuh"
#include "ifl_rows.cuh"

enum ifl_expert_act { IFL_SILU, IFL_GELU, IFL_GELU_TANH, IFL_RELU, IFL_SWIGLU_OAI };

template <ifl_expert_act A> IFL_DEVICE float ifl_expert_value(float x, float u, bool gated, float limit, float alpha) {
  if (A == IFL_SWIGLU_OAI) {
    x = ifl_min(x, limit), u = ifl_min(ifl_max(u, -limit), limit);
    return (u + 1.0f) * x * ifl_sigmoid(alpha * x);
  }
  if (A == IFL_SILU)
    x = x * ifl_sigmoid(x);
  if (A == IFL_GELU)
    x = 0.5f * x * (1.0f + erff(x * 0.70710678f));
  if (A == IFL_GELU_TANH)
    x = 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
  if (A == IFL_RELU)
    x = ifl_max(x, 0.0f);
  return gated ? x * u : x;
}

/* The addresses of the parts of the scratch. */
struct ifl_pairs {
  int *first, *row, *pair;
  uint8_t *in, *hidden; /* by row; by pair */
  __device__ ifl_pairs(uint8_t *p, int experts, int max_rows, int top_k, int64_t in_bytes) {
    first = reinterpret_cast<int *>(p);
    row = first + experts + 1;
    pair = row + (int64_t)max_rows * top_k;
    in = p + ifl_round64(((int64_t)experts + 1 + (int64_t)max_rows * top_k + (int64_t)max_rows * experts) * 4);
    hidden = in + ifl_round64((int64_t)max_rows * in_bytes);
  }
};

/* Runs in one block: each thread counts and lists the rows of some experts. */
IFL_DEVICE void ifl_expert_list(const ifl_pairs &m, const float *route, int64_t ldr, int rows, int experts, int most) {
  for (int e = threadIdx.x; e < experts; e += blockDim.x) {
    int n = 0;
    for (int t = 0; t < rows; t++)
      n += route[t * ldr + e] != 0;
    m.first[e + 1] = n;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    m.first[0] = 0;
    for (int e = 0; e < experts; e++)
      m.first[e + 1] = ifl_min_int(m.first[e] + m.first[e + 1], most);
  }
  __syncthreads();
  for (int e = threadIdx.x; e < experts; e += blockDim.x) {
    int n = m.first[e];
    for (int t = 0; t < rows; t++) {
      const bool goes = route[t * ldr + e] != 0 && n < m.first[e + 1];
      m.pair[(int64_t)t * experts + e] = goes ? n : -1;
      if (goes)
        m.row[n++] = t;
    }
  }
}

/* y = some panels of one expert's matrix times the rows at x, plus its bias. */
template <class P, int NT>
IFL_DEVICE void ifl_expert_product(const uint8_t *w, int k, int panels, const ifl_rows_in &x, const float *bias, float *red,
                                   float *y, int ldy) {
  ifl_gemv<P, NT>(w, k, panels).run(x, red, y, ldy);
  ifl_add_more<P>(w, k, panels, x, y, ldy);
  if (bias)
    for (int i = threadIdx.x; i < x.rows * panels * 16; i += blockDim.x)
      y[i / (panels * 16) * ldy + i % (panels * 16)] += bias[i % (panels * 16)];
  __syncthreads();
}
