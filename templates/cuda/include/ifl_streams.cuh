/* Row operations of hyper-connections, and the join of two results of attention; ifl_streams.h of the CPU target says what
 * they compute. */
#pragma once
#include "ifl_device.cuh"

/* Divides n numbers, `step` apart, by their sum plus eps. */
IFL_DEVICE void ifl_stream_normalize(float *x, int n, int step, float eps) {
  float sum = eps;
  for (int i = 0; i < n; i++)
    sum += x[i * step];
  for (int i = 0; i < n; i++)
    x[i * step] /= sum;
}

/* One thread of the group computes the weights, which are few. */
template <class G>
IFL_DEVICE void ifl_row_stream_weights_(const G &g, float *out, const float *x, const float *scale, const float *base, int cols,
                                        int n, int iterations, float eps) {
  for (int i = 0; g.lane == 0 && i < cols; i++) {
    const float v = fmaf(x[i], scale[i < n ? 0 : i < 2 * n ? 1 : 2], base[i]);
    out[i] = i < n ? ifl_sigmoid(v) + eps : i < 2 * n ? 2 * ifl_sigmoid(v) : v;
  }
  float *comb = out + 2 * n;
  for (int r = 0; g.lane == 0 && cols > n && r < n; r++) { /* softmax of each row */
    float *row = comb + r * n, top = row[0], sum = 0;
    for (int i = 1; i < n; i++)
      top = fmaxf(top, row[i]);
    for (int i = 0; i < n; i++)
      row[i] = expf(row[i] - top), sum += row[i];
    for (int i = 0; i < n; i++)
      row[i] = row[i] / sum + eps;
  }
  for (int k = 0; g.lane == 0 && cols > n && k < iterations; k++) {
    for (int i = 0; k > 0 && i < n; i++)
      ifl_stream_normalize(comb + i * n, n, 1, eps);
    for (int i = 0; i < n; i++)
      ifl_stream_normalize(comb + i, n, n, eps);
  }
  g.sync();
}

template <class G> IFL_DEVICE void ifl_row_mix_streams_(const G &g, float *out, const float *x, const float *w, int n, int m, int d) {
  for (int i = g.lane; i < m * d; i += g.lanes) {
    float y = 0;
    for (int j = 0; j < n; j++)
      y = fmaf(w[j * m + i / d], x[j * d + i % d], y);
    out[i] = y;
  }
  g.sync();
}

template <class G>
IFL_DEVICE void ifl_row_merge_attention_(const G &g, float *out, const float *a, const float *b, const float *sinks, int heads,
                                         int vdim) {
  for (int c = g.lane; c < heads * vdim; c += g.lanes) {
    const int h = c / vdim;
    const float la = a[heads * vdim + h], lb = b[heads * vdim + h];
    float top = fmaxf(la, lb), y = 0;
    if (top != -INFINITY) {
      if (sinks)
        top = fmaxf(top, sinks[h]);
      const float ea = expf(la - top), eb = expf(lb - top), sum = ea + eb + (sinks ? expf(sinks[h] - top) : 0.0f);
      y = fmaf(a[c], ea / sum, b[c] * (eb / sum));
    }
    out[c] = y;
  }
  g.sync();
}

#define ifl_row_stream_weights(...) ifl_row_stream_weights_(g, __VA_ARGS__)
#define ifl_row_mix_streams(...) ifl_row_mix_streams_(g, __VA_ARGS__)
#define ifl_row_merge_attention(...) ifl_row_merge_attention_(g, __VA_ARGS__)
