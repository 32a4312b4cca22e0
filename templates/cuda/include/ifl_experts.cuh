/* Mixture of experts. A list of each expert's rows in ascending order is made first. Then the hidden rows of all pairs of a row
 * and an expert are computed, and their output rows, by expert. Last, each row's outputs are summed by ascending expert, so that
 * a row's result does not depend on the others. */
#pragma once
#include "ifl_flat.cuh"
#include "ifl_rows.cuh"

enum ifl_expert_act { IFL_SILU, IFL_GELU, IFL_GELU_TANH, IFL_RELU, IFL_RELU2, IFL_SWIGLU_OAI };

template <ifl_expert_act A> IFL_DEVICE float ifl_expert_value(float x, float u, bool gated, float limit, float alpha) {
  if (limit > 0)
    x = ifl_min(x, limit), u = ifl_min(ifl_max(u, -limit), limit);
  if (A == IFL_SWIGLU_OAI)
    return (u + 1.0f) * x * ifl_sigmoid(alpha * x);
  if (A == IFL_SILU)
    x = x * ifl_sigmoid(x);
  if (A == IFL_GELU)
    x = 0.5f * x * (1.0f + erff(x * 0.70710678f));
  if (A == IFL_GELU_TANH)
    x = 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
  if (A == IFL_RELU)
    x = ifl_max(x, 0.0f);
  if (A == IFL_RELU2)
    x = ifl_max(x, 0.0f) * ifl_max(x, 0.0f);
  return gated ? x * u : x;
}

/* The parts of the scratch, for P = max_rows · top_k pairs. Sizes are those of cuda.sizes in Go. */
struct ifl_pairs {
  int *first;  /* [E + 1] first pair of each expert */
  int *active; /* [1 + E] number of experts that have rows, and these experts */
  int *row;    /* [P] row of each pair */
  int *chosen; /* [rows][top_k] experts of each row in ascending order, then −1 */
  int *pair;   /* [rows][E] pair of a row and an expert; undefined if there is none */
  uint8_t *in, *hidden, *out; /* packed rows; packed hidden rows and output rows of each pair, aligned to 64 bytes */
  __device__ __forceinline__ ifl_pairs(uint8_t *p, int experts, int max_rows, int top_k, int64_t in_bytes, int64_t hidden_bytes) {
    const int64_t pairs = (int64_t)max_rows * top_k;
    first = reinterpret_cast<int *>(p), active = first + experts + 1, row = active + experts + 1, chosen = row + pairs, pair = chosen + pairs;
    in = p + ifl_round64((2 * ((int64_t)experts + 1) + 2 * pairs + (int64_t)max_rows * experts) * 4);
    hidden = in + ifl_round64(max_rows * in_bytes);
    out = hidden + ifl_round64(pairs * hidden_bytes);
  }
};

/* Runs in one block. A row goes to the experts whose weight in `route` is not 0, of at most `most` pairs in all. count is shared. */
template <int EXPERTS, int TOPK>
IFL_DEVICE void ifl_expert_list(const ifl_pairs &m, const float *route, int64_t ldr, int rows, int most, int *count) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int e = threadIdx.x; e < EXPERTS; e += blockDim.x) {
    int n = 0;
    for (int t = 0; t < rows; t++)
      n += route[t * ldr + e] != 0;
    count[e] = n;
  }
  __syncthreads();
  if (warp == 0) { /* first pairs, and the experts with rows */
    int pairs = 0, active = 0;
    for (int base = 0; base < EXPERTS; base += 32) {
      const int e = base + lane, n = e < EXPERTS ? count[e] : 0;
      int end = n;
      for (int o = 1; o < 32; o *= 2) {
        const int before = __shfl_up_sync(0xffffffffu, end, o);
        end += lane >= o ? before : 0;
      }
      const int first = ifl_min_int(pairs + end - n, most);
      const unsigned has = __ballot_sync(0xffffffffu, n > 0 && first < most);
      if (e < EXPERTS) {
        count[e] = m.first[e] = first;
        if (has >> lane & 1)
          m.active[1 + active + __popc(has & ((1u << lane) - 1))] = e;
      }
      pairs += __shfl_sync(0xffffffffu, end, 31), active += __popc(has);
    }
    if (lane == 0)
      m.first[EXPERTS] = ifl_min_int(pairs, most), m.active[0] = active;
  }
  __syncthreads();
  for (int e = threadIdx.x; e < EXPERTS; e += blockDim.x) {
    int n = count[e];
    for (int t = 0; t < rows; t++)
      if (route[t * ldr + e] != 0) {
        if (n < most)
          m.row[n] = t;
        m.pair[(int64_t)t * EXPERTS + e] = n++;
      }
  }
  for (int t = warp; t < rows; t += blockDim.x / 32) {
    int n = 0;
    for (int base = 0; base < EXPERTS; base += 32) {
      const int e = base + lane;
      const bool goes = e < EXPERTS && route[t * ldr + e] != 0;
      const unsigned all = __ballot_sync(0xffffffffu, goes);
      const int at = n + __popc(all & ((1u << lane) - 1));
      if (goes && at < TOPK)
        m.chosen[t * TOPK + at] = e;
      n += __popc(all);
    }
    for (int i = n + lane; i < TOPK; i += 32)
      m.chosen[t * TOPK + i] = -1;
  }
}

/* Column n of row t: the sum of its experts' output rows, ld floats each, by their weights unless these multiplied the input. */
template <int EXPERTS, int TOPK, bool SCALED> IFL_DEVICE float ifl_expert_sum(const ifl_pairs &m, const float *route, int t, int n, int64_t ld) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < TOPK; i++) {
    const int e = m.chosen[t * TOPK + i];
    if (e >= 0)
      sum = fmaf(SCALED ? 1.0f : route[e], reinterpret_cast<const float *>(m.out)[m.pair[(int64_t)t * EXPERTS + e] * ld + n], sum);
  }
  return sum;
}
