/* Adapters: the products B·A·x that are added to a matmul's output, on the rows of sequences with an adapter.
 *
 * A kernel in front of the matmul computes A·x from the floats of x, before they are rounded. The epilogue adds B times that
 * before all else. A row's order of addition depends on the sizes of A and B only: A·x by lane, four columns each, then lanes
 * as a tree; B·(A·x) by every eighth rank, then as a tree. */
#pragma once
#include "ifl_rows.cuh"

enum { IFL_TOKENS, IFL_OUT_ROWS, IFL_SEQUENCES }; /* what the rows of a matmul are */

/* The matrices of the adapter of row t, by site; NULL: it has none. */
template <int ROLE> IFL_DEVICE const ifl_lora *ifl_lora_sites(const ifl_ctx *c, const ifl_step *s, int t) {
  const int seq = ROLE == IFL_TOKENS ? s->seq[t] : ROLE == IFL_OUT_ROWS ? s->seq[s->out_row[t]] : t;
  return s->adapter[seq] < 0 ? NULL : c->adapter[s->adapter[seq]];
}

/* Adds a·x to the sums of rows from … to−1. load(m, i) gives columns i … i+3 of row m. AHEAD
 * loads of A are in flight. */
template <int AHEAD, int NT, class L> IFL_DEVICE void ifl_lora_dot(float (&sum)[NT], const float *a, int k, int from, int to, L load) {
#pragma unroll AHEAD
  for (int i = 4 * (threadIdx.x & 31); i < k; i += 128) {
    const float4 f = __ldg(reinterpret_cast<const float4 *>(a + i));
#pragma unroll
    for (int m = 0; m < NT; m++)
      if (NT == 1 || (m >= from && m < to)) {
        const float4 v = load(m, i);
        sum[m] = fmaf(f.x, v.x, fmaf(f.y, v.y, fmaf(f.z, v.z, fmaf(f.w, v.w, sum[m]))));
      }
  }
}

/* Computes A·x for rows t0 … t0+nt−1, which are at x, K columns each. out is where that of row t0 goes; rows are `pitch`
 * floats apart. A warp reads a row of A once for consecutive rows with the same adapter. The blocks along y share the ranks. */
template <int ROLE, int K, int NT>
IFL_DEVICE void ifl_lora_down(const ifl_ctx *c, const ifl_step *s, int site, const float *const (&x)[NT], int t0, int nt, float *out, int pitch) {
  const int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
  bool vectors = K % 4 == 0;
  for (int m = 0; m < NT; m++)
    vectors = vectors && (reinterpret_cast<uintptr_t>(x[m]) & 15) == 0;
  for (int from = 0, to; from < nt; from = to) {
    const ifl_lora *sites = ifl_lora_sites<ROLE>(c, s, t0 + from);
    for (to = from + 1; to < nt && ifl_lora_sites<ROLE>(c, s, t0 + to) == sites; to++) {
    }
    if (!sites)
      continue;
    const ifl_lora w = sites[site];
    for (int r = blockIdx.y * warps + (threadIdx.x >> 5); r < w.rank; r += gridDim.y * warps) {
      const float *a = w.a + (int64_t)r * ifl_round16(K);
      float sum[NT] = {};
      if (vectors)
        ifl_lora_dot<8 / NT>(sum, a, K, from, to, [&](int m, int i) { return *reinterpret_cast<const float4 *>(x[m] + i); });
      else
        ifl_lora_dot<1>(sum, a, K, from, to, [&](int m, int i) {
          const float *v = x[m] + i;
          const int n = K % 4 == 0 ? 4 : K - i;
          return make_float4(v[0], n > 1 ? v[1] : 0.0f, n > 2 ? v[2] : 0.0f, n > 3 ? v[3] : 0.0f);
        });
#pragma unroll
      for (int m = 0; m < NT; m++)
        if (m >= from && m < to) {
          const float v = ifl_warp_sum(sum[m]);
          if (lane == 0)
            out[m * pitch + r] = v;
        }
    }
  }
}

/* Reports whether a block along y has ranks of an adapter of rows t0 … t0+nt−1. */
template <int ROLE> IFL_DEVICE bool ifl_lora_any(const ifl_ctx *c, const ifl_step *s, int site, int t0, int nt) {
  const int first = blockIdx.y * (blockDim.x >> 5);
  for (int t = t0; t < t0 + nt; t++) {
    const ifl_lora *sites = ifl_lora_sites<ROLE>(c, s, t);
    if (sites && sites[site].rank > first)
      return true;
  }
  return false;
}

/* The columns of an output that adapters of one site change: panels first, first + step, …, `panels` of them. */
struct ifl_lora_part {
  int site, first, step, panels;
};

/* Adds B·a to columns n0 … n1−1 of rows t0 … t0+nt−1 at y; a is A·x of row t0, and rows are `pitch` floats apart. A warp adds to
 * a panel of a row. Lane l adds ranks l/4, l/4 + 8, … of columns 4·(l%4) … 4·(l%4)+3, so that a warp loads 512 consecutive
 * bytes of B. All threads of the block call it; a block barrier must follow. */
template <int ROLE>
static __device__ __noinline__ void ifl_lora_add(const ifl_ctx *c, const ifl_step *s, ifl_lora_part part, const float *a, int pitch, float *y, int ldy, int t0, int nt, int n0, int n1) {
  const int lane = threadIdx.x & 31, lo = n0 / 16 - part.first, hi = lo + (n1 - n0) / 16; /* panels after the part's first */
  const int from = lo > 0 ? (lo + part.step - 1) / part.step : 0;
  const int to = ifl_min_int(hi > 0 ? (hi + part.step - 1) / part.step : 0, part.panels);
  for (int i = threadIdx.x >> 5; i < nt * (to - from); i += blockDim.x >> 5) {
    const int m = i % nt, p = from + i / nt;
    const ifl_lora *sites = ifl_lora_sites<ROLE>(c, s, t0 + m);
    const int rank = sites ? sites[part.site].rank : 0;
    if (rank == 0)
      continue;
    const float4 *b = reinterpret_cast<const float4 *>(sites[part.site].b) + (int64_t)p * rank * 4 + lane;
    const float *v = a + m * pitch;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 2
    for (int r = lane >> 2; r < rank; r += 8, b += 32) {
      const float4 f = __ldg(b);
      sum.x = fmaf(f.x, v[r], sum.x), sum.y = fmaf(f.y, v[r], sum.y), sum.z = fmaf(f.z, v[r], sum.z), sum.w = fmaf(f.w, v[r], sum.w);
    }
    /* Half of the lanes keep half of the columns each time. */
    const bool second = lane & 16, odd = lane & 8;
    const float left = (second ? sum.z : sum.x) + __shfl_xor_sync(0xffffffffu, second ? sum.x : sum.z, 16);
    const float right = (second ? sum.w : sum.y) + __shfl_xor_sync(0xffffffffu, second ? sum.y : sum.w, 16);
    float one = (odd ? right : left) + __shfl_xor_sync(0xffffffffu, odd ? left : right, 8);
    one += __shfl_xor_sync(0xffffffffu, one, 4);
    if ((lane & 4) == 0)
      y[m * ldy + (p * part.step - lo) * 16 + 4 * (lane & 3) + (second ? 2 : 0) + (odd ? 1 : 0)] += one;
  }
}
