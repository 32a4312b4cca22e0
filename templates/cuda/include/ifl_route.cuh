/* The op route: the experts of a row and their weights. One thread of the group selects them; N is the number of experts.
 * Selection and ties are as in ifl_moe.h of the CPU target. */
#pragma once
#include "ifl_device.cuh"

enum ifl_route_score { IFL_ROUTE_SOFTMAX, IFL_ROUTE_SIGMOID, IFL_ROUTE_SQRTSOFTPLUS, IFL_ROUTE_SOFTMAX_TOPK };

/* Indices of the k ≤ n largest of n numbers in descending order; ties go to the lower index. NaN counts as −∞. */
template <int N> IFL_DEVICE void ifl_greatest(const float *x, int n, int k, int *out) {
  float best[N];
  int have = 0;
  for (int e = 0; e < n; e++) {
    const float v = x[e] == x[e] ? x[e] : -INFINITY;
    if (have == k && v <= best[k - 1])
      continue;
    int at = have < k ? have++ : k - 1;
    for (; at > 0 && best[at - 1] < v; at--)
      best[at] = best[at - 1], out[at] = out[at - 1];
    best[at] = v, out[at] = e;
  }
}

IFL_DEVICE void ifl_softmax_small(float *x, int n) {
  float top = -INFINITY, sum = 0;
  for (int i = 0; i < n; i++)
    top = ifl_max(top, x[i]);
  for (int i = 0; i < n; i++)
    sum += x[i] = expf(x[i] - top);
  for (int i = 0; i < n; i++)
    x[i] /= sum;
}

/* Group-limited routing: sets the scores of experts outside the best groups to −∞ (DeepSeek-V2, §2.1.2; top2: V3, §2.1.2). */
template <int N> IFL_DEVICE void ifl_limit_groups(float *choice, int n, int groups, int top, int top2) {
  float worth[N];
  int best[N], pair[2];
  const int size = n / groups;
  for (int g = 0; g < groups; g++) {
    ifl_greatest<N>(choice + g * size, size, top2 ? 2 : 1, pair);
    worth[g] = choice[g * size + pair[0]] + (top2 ? choice[g * size + pair[1]] : 0);
  }
  ifl_greatest<N>(worth, groups, top, best);
  for (int g = 0; g < groups; g++) {
    bool kept = false;
    for (int i = 0; i < top; i++)
      kept |= best[i] == g;
    for (int e = g * size; !kept && e < (g + 1) * size; e++)
      choice[e] = -INFINITY;
  }
}

template <int N>
IFL_DEVICE void ifl_route_one(float *out, const float *logits, const float *bias, int k, ifl_route_score score, int norm,
                              float scale, int groups, int top_groups, int top2, const float *ids) {
  float x[N], choice[N], w[N];
  int chosen[N];
  for (int e = 0; e < N; e++)
    x[e] = score == IFL_ROUTE_SIGMOID        ? ifl_sigmoid(logits[e])
           : score == IFL_ROUTE_SQRTSOFTPLUS ? sqrtf(fmaxf(logits[e], 0.0f) + log1pf(expf(-fabsf(logits[e]))))
                                             : logits[e];
  if (score == IFL_ROUTE_SOFTMAX)
    ifl_softmax_small(x, N);
  for (int e = 0; e < N; e++)
    choice[e] = x[e] + (bias ? bias[e] : 0);
  if (groups > 0)
    ifl_limit_groups<N>(choice, N, groups, top_groups, top2);
  if (ids)
    for (int i = 0; i < k; i++)
      chosen[i] = ids[i] > 0 ? ids[i] < (float)N ? (int)ids[i] : N - 1 : 0;
  else
    ifl_greatest<N>(choice, N, k, chosen);
  for (int i = 0; i < k; i++)
    w[i] = x[chosen[i]];
  if (score == IFL_ROUTE_SOFTMAX_TOPK)
    ifl_softmax_small(w, k);
  if (norm) {
    float sum = 1e-20f;
    for (int i = 0; i < k; i++)
      sum += w[i];
    for (int i = 0; i < k; i++)
      w[i] /= sum;
  }
  for (int e = 0; e < N; e++)
    out[e] = 0;
  for (int i = 0; i < k; i++)
    out[chosen[i]] += w[i] * scale; /* a table may name an expert twice */
}

/* The weights of two experts (SparseMixer, Phi-3.5-MoE). */
template <int N> IFL_DEVICE void ifl_sparsemixer_one(float *out, const float *logits, float jitter, float scale) {
  int chosen[2] = {-1, -1};
  float weight[2];
  for (int i = 0; i < 2; i++) {
    int best = -1;
    for (int e = 0; e < N; e++)
      if (e != chosen[0] && (best < 0 || logits[e] > logits[best]))
        best = e;
    const float most = logits[best];
    float sum = 0;
    for (int e = 0; e < N; e++) {
      const float size = fabsf(logits[e]) > most ? fabsf(logits[e]) : most;
      if (e != chosen[0] && !((most - logits[e]) / size > 2 * jitter))
        sum += expf(logits[e] - most);
    }
    chosen[i] = best, weight[i] = 1 / sum;
  }
  for (int e = 0; e < N; e++)
    out[e] = 0;
  for (int i = 0; i < 2; i++)
    out[chosen[i]] = weight[i] * scale;
}

#define ifl_row_route(out, logits, bias, n, ...)                                                                                 \
  do {                                                                                                                           \
    if (g.lane == 0)                                                                                                             \
      ifl_route_one<(n)>(out, logits, bias, __VA_ARGS__);                                                                        \
    g.sync();                                                                                                                    \
  } while (0)
#define ifl_row_sparsemixer(out, logits, n, ...)                                                                                 \
  do {                                                                                                                           \
    if (g.lane == 0)                                                                                                             \
      ifl_sparsemixer_one<(n)>(out, logits, __VA_ARGS__);                                                                        \
    g.sync();                                                                                                                    \
  } while (0)
