/* Row operations of hyper-connections, and the join of two results of attention. */
#pragma once
#include "ifl_vec.h"
#include <math.h>
#include <string.h>

static inline float ifl_stream_sigmoid(float x) { return ifl_sigmoid(ifl_set1(x))[0]; }

/* Divides n numbers, `step` apart, by their sum plus eps. */
static inline void ifl_stream_normalize(float *x, int n, int step, float eps) {
  float sum = eps;
  for (int i = 0; i < n; i++) sum += x[i * step];
  for (int i = 0; i < n; i++) x[i * step] /= sum;
}

/* The op stream_weights for n ≤ 16 streams: pre[n], and if cols is n·(n + 2) also post[n] and comb[n][n]. */
static inline __attribute__((unused)) void ifl_row_stream_weights(float *out, const float *x, const float *scale, const float *base, int cols, int n, int iterations,
                                                                  float eps) {
  for (int i = 0; i < cols; i++) {
    const float v = ifl_fma1(x[i], scale[i < n ? 0 : i < 2 * n ? 1 : 2], base[i]);
    out[i] = i < n ? ifl_stream_sigmoid(v) + eps : i < 2 * n ? 2 * ifl_stream_sigmoid(v) : v;
  }
  if (cols == n) return;
  float *comb = out + 2 * n;
  for (int r = 0; r < n; r++) { /* softmax of each row */
    float *row = comb + r * n, top = row[0], sum = 0;
    for (int i = 1; i < n; i++) top = row[i] > top ? row[i] : top;
    for (int i = 0; i < n; i++) row[i] = ifl_exp(ifl_set1(row[i] - top))[0], sum += row[i];
    for (int i = 0; i < n; i++) row[i] = row[i] / sum + eps;
  }
  for (int k = 0; k < iterations; k++) {
    for (int i = 0; k > 0 && i < n; i++) ifl_stream_normalize(comb + i * n, n, 1, eps);
    for (int i = 0; i < n; i++) ifl_stream_normalize(comb + i, n, n, eps);
  }
}

/* The op mix_streams: m streams of d columns as sums of n. */
static inline __attribute__((unused)) void ifl_row_mix_streams(float *out, const float *x, const float *w, int n, int m, int d) {
  for (int k = 0; k < m; k++) {
    for (int c = 0; c < d; c += 16) {
      const int have = d - c < 16 ? d - c : 16;
      ifl_v16 y = {0};
      for (int j = 0; j < n; j++) y = ifl_fma(ifl_set1(w[j * m + k]), ifl_load_n(x + j * d + c, have), y);
      ifl_store_n(out + k * d + c, y, have);
    }
  }
}

/* The op merge_attention: heads of vdim columns, followed by a logarithm for each head. sinks may be NULL. */
static inline __attribute__((unused)) void ifl_row_merge_attention(float *out, const float *a, const float *b, const float *sinks, int heads, int vdim) {
  for (int h = 0; h < heads; h++) {
    const float la = a[heads * vdim + h], lb = b[heads * vdim + h];
    float top = la > lb ? la : lb;
    const int none = top == -INFINITY;
    if (sinks && sinks[h] > top) top = sinks[h];
    const ifl_v16 e = none ? ifl_set1(0) : ifl_exp((ifl_v16){la, lb, sinks ? sinks[h] : 0} - top);
    const float ea = la == -INFINITY ? 0 : e[0], eb = lb == -INFINITY ? 0 : e[1], sum = none ? 1 : ea + eb + (sinks ? e[2] : 0);
    const ifl_v16 fa = ifl_set1(ea / sum), fb = ifl_set1(eb / sum);
    for (int c = h * vdim; c < (h + 1) * vdim; c += 16) {
      const int have = (h + 1) * vdim - c < 16 ? (h + 1) * vdim - c : 16;
      ifl_store_n(out + c, ifl_fma(ifl_load_n(a + c, have), fa, ifl_load_n(b + c, have) * fb), have);
    }
  }
}
