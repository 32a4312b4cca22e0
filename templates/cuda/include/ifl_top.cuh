/* The k largest of a thread block's numbers. */
#pragma once
#include "ifl_device.cuh"

/* The largest 32-bit number that at least k of the block's keys reach, where count(least) says how many of the thread's keys do:
 * bit by bit, and until exactly k reach it. */
template <class F> IFL_DEVICE uint32_t ifl_reached_by(const ifl_block &g, int k, const F &count) {
  uint32_t least = 0;
#pragma unroll 1
  for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
    const float n = ifl_sum_of(g, (float)count(least | bit));
    if (n >= (float)k) least |= bit;
    if (n == (float)k) break;
  }
  return least;
}

/* Writes the k ≤ IFL_TOP largest x[i] with column(i) < used to `to`, in any order, of equal ones those in the lowest columns. If
 * there are fewer, the rest is IFL_NONE. The numbers are finite, and column(i) is unique in the block. Shared memory: IFL_TOP
 * of kept, and have. */
template <int N, class C> IFL_DEVICE void ifl_find_top(const ifl_block &g, const float (&x)[N], const C &column, int used, int k, ifl_best *kept, int *have, ifl_best *to) {
  uint32_t key[N]; /* ordered as the numbers, which are not kept; 0 for columns that are not used */
#pragma unroll
  for (int i = 0; i < N; i++) {
    const uint32_t bits = __float_as_uint(x[i] + 0.0f); /* no negative zero */
    key[i] = column(i) < used ? bits ^ (bits >> 31 ? ~0u : 1u << 31) : 0;
  }
  const auto reaching = [&](uint32_t least) {
    int n = 0;
#pragma unroll
    for (int i = 0; i < N; i++)
      n += key[i] >= least;
    return n;
  };
  const uint32_t least = ifl_reached_by(g, k, reaching);
  const int equal = k - (int)ifl_sum_of(g, (float)reaching(least + 1)); /* so many of those that are `least` */
  const uint32_t column_key = ifl_reached_by(g, equal, [&](uint32_t bound) {
    int n = 0;
#pragma unroll
    for (int i = 0; i < N; i++)
      n += key[i] == least && ~(uint32_t)column(i) >= bound;
    return n;
  });
  if (g.lane == 0) *have = 0;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; i++)
    if (key[i] != 0 && (key[i] > least || (key[i] == least && ~(uint32_t)column(i) >= column_key))) kept[atomicAdd(have, 1)] = {__uint_as_float(key[i] >> 31 ? key[i] ^ 1u << 31 : ~key[i]), column(i)};
  __syncthreads();
  for (int i = g.lane; i < IFL_TOP; i += g.lanes)
    to[i] = i < *have ? kept[i] : ifl_best{0, IFL_NONE};
}
