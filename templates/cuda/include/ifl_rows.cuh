/* Operations on one row by a group of threads (g: an ifl_block or an ifl_warp). Each ends with a barrier of the group, so
 * that its results are visible. ifl_rows.h of the CPU target documents what they compute. */
#pragma once
#include "ifl_device.cuh"

template <class G> IFL_DEVICE void ifl_row_copy_(const G &g, float *y, const float *x, int n) {
  for (int i = g.lane; i < n; i += g.lanes)
    y[i] = x[i];
  g.sync();
}

template <class G>
IFL_DEVICE void ifl_row_rmsnorm_(const G &g, float *y, const float *x, const float *w, int n, float eps, float base) {
  float ss = 0;
  for (int i = g.lane; i < n; i += g.lanes)
    ss = fmaf(x[i], x[i], ss);
  const float inv = 1.0f / sqrtf(ifl_sum_of(g, ss) / (float)n + eps);
  for (int i = g.lane; i < n; i += g.lanes)
    y[i] = x[i] * inv * (w ? w[i] + base : 1.0f);
  g.sync();
}

template <class G>
IFL_DEVICE void ifl_row_layernorm_(const G &g, float *y, const float *x, const float *w, const float *b, int n, float eps,
                                   float base) {
  float sum = 0, ss = 0;
  for (int i = g.lane; i < n; i += g.lanes)
    sum += x[i];
  const float mean = ifl_sum_of(g, sum) / (float)n;
  for (int i = g.lane; i < n; i += g.lanes)
    ss = fmaf(x[i] - mean, x[i] - mean, ss);
  const float inv = 1.0f / sqrtf(ifl_sum_of(g, ss) / (float)n + eps);
  for (int i = g.lane; i < n; i += g.lanes)
    y[i] = fmaf((x[i] - mean) * inv, w ? w[i] + base : 1.0f, b ? b[i] : 0.0f);
  g.sync();
}

template <class G> IFL_DEVICE void ifl_row_l2norm_(const G &g, float *y, const float *x, int n, float eps) {
  float ss = 0;
  for (int i = g.lane; i < n; i += g.lanes)
    ss = fmaf(x[i], x[i], ss);
  const float inv = 1.0f / sqrtf(ifl_sum_of(g, ss) + eps);
  for (int i = g.lane; i < n; i += g.lanes)
    y[i] = x[i] * inv;
  g.sync();
}

template <class G> IFL_DEVICE void ifl_row_mean_(const G &g, float *y, const float *x, int n) {
  float sum = 0;
  for (int i = g.lane; i < n; i += g.lanes)
    sum += x[i];
  sum = ifl_sum_of(g, sum);
  if (g.lane == 0) *y = sum / (float)n;
  g.sync();
}

template <class G> IFL_DEVICE void ifl_row_rms_(const G &g, float *y, const float *x, int n, float min) {
  float ss = 0;
  for (int i = g.lane; i < n; i += g.lanes)
    ss = fmaf(x[i], x[i], ss);
  ss = ifl_sum_of(g, ss);
  if (g.lane == 0) *y = sqrtf(fmaxf(ss / (float)n, min));
  g.sync();
}

template <class G> IFL_DEVICE void ifl_row_position_scale_(const G &g, float *y, int pos, int floor, float by) {
  if (g.lane == 0) *y = (float)(1 + (double)by * log1p((double)(pos / floor)));
  g.sync();
}

template <class G> IFL_DEVICE void ifl_row_softmax_(const G &g, float *y, const float *x, int n) {
  float most = -INFINITY, sum = 0;
  for (int i = g.lane; i < n; i += g.lanes)
    most = fmaxf(most, x[i]);
  most = ifl_max_over(g, most);
  for (int i = g.lane; i < n; i += g.lanes)
    sum += y[i] = expf(x[i] - most);
  const float inv = 1.0f / ifl_sum_of(g, sum);
  for (int i = g.lane; i < n; i += g.lanes)
    y[i] *= inv;
  g.sync();
}

/* Angles are rounded to float, and sine and cosine are computed in double, as on the CPU: at position 10⁵ a float cosine
 * is too inaccurate. A row needs few of them. */
template <class G> IFL_DEVICE void ifl_rope_table_(const G &g, float *cs, int pos, int dim, const float *freqs, float scale) {
  const int half = dim / 2;
  for (int i = g.lane; i < half; i += g.lanes) {
    const double angle = (double)((float)pos * freqs[i]);
    cs[i] = (float)cos(angle) * scale;
    cs[half + i] = (float)sin(angle) * scale;
  }
  g.sync();
}

template <class G>
IFL_DEVICE void ifl_rope_table_dynamic_(const G &g, float *cs, int pos, int dim, float theta, float factor, int from, int rows,
                                        float scale) {
  const int half = dim / 2;
  const float grown = factor * (float)rows / (float)from - (factor - 1.0f);
  const float base = theta * (float)pow((double)grown, (double)dim / (double)(dim - 2));
  for (int i = g.lane; i < half; i += g.lanes) {
    const float freq = 1.0f / (float)pow((double)base, (double)((float)(2 * i) / (float)dim));
    const double angle = (double)((float)pos * freq);
    cs[i] = (float)cos(angle) * scale;
    cs[half + i] = (float)sin(angle) * scale;
  }
  g.sync();
}

template <class G>
IFL_DEVICE void ifl_row_rope_(const G &g, float *x, const float *cs, int heads, int width, int dim, int offset, int adjacent) {
  const int half = dim / 2;
  for (int j = g.lane; j < heads * half; j += g.lanes) {
    const int h = j / half, i = j % half;
    float *p = x + (int64_t)h * width + offset, *pa = adjacent ? p + 2 * i : p + i, *pb = adjacent ? pa + 1 : p + half + i;
    const float a = *pa, b = *pb, c = cs[i], s = cs[half + i];
    *pa = fmaf(a, c, -(b * s));
    *pb = fmaf(b, c, a * s);
  }
  g.sync();
}

template <class G>
IFL_DEVICE void ifl_row_join_heads_(const G &g, float *out, const float *a, const float *b, int heads, int wa, int wb,
                                    int b_heads) {
  const int w = wa + wb;
  for (int i = g.lane; i < heads * w; i += g.lanes) {
    const int h = i / w, j = i % w;
    out[i] = j < wa ? a[h * wa + j] : b[(b_heads == 1 ? 0 : h) * wb + j - wa];
  }
  g.sync();
}

template <class G>
IFL_DEVICE void ifl_row_head_cols_(const G &g, float *out, const float *x, int heads, int width, int lo, int n) {
  for (int i = g.lane; i < heads * n; i += g.lanes)
    out[i] = x[i / n * width + lo + i % n];
  g.sync();
}

template <class G>
IFL_DEVICE void ifl_row_sinusoid_(const G &g, float *out, int pos, const double *f, int half, int divide, int pairs) {
  for (int c = g.lane; c < half; c += g.lanes) {
    const double angle = divide ? pos / f[c] : (double)((float)pos * (float)f[c]);
    out[pairs ? 2 * c : c] = (float)sin(angle);
    out[pairs ? 2 * c + 1 : half + c] = (float)cos(angle);
  }
  g.sync();
}

template <class G>
IFL_DEVICE void ifl_row_unfold_(const G &g, float *y, const float *x, int pitch, int n, int before, int after, int t, int first,
                                int last) {
  const int taps = before + 1 + after;
  for (int i = g.lane; i < n * taps; i += g.lanes) {
    const int by = i % taps - before, at = t + by;
    y[i] = at < first || at >= last ? 0.0f : x[(int64_t)by * pitch + i / taps];
  }
  g.sync();
}

/* The names that generated code calls, as on the CPU; g is the group in scope. */
#define ifl_row_copy(...) ifl_row_copy_(g, __VA_ARGS__)
#define ifl_row_rmsnorm(...) ifl_row_rmsnorm_(g, __VA_ARGS__)
#define ifl_row_layernorm(...) ifl_row_layernorm_(g, __VA_ARGS__)
#define ifl_row_l2norm(...) ifl_row_l2norm_(g, __VA_ARGS__)
#define ifl_row_softmax(...) ifl_row_softmax_(g, __VA_ARGS__)
#define ifl_row_mean(...) ifl_row_mean_(g, __VA_ARGS__)
#define ifl_row_rms(...) ifl_row_rms_(g, __VA_ARGS__)
#define ifl_row_position_scale(...) ifl_row_position_scale_(g, __VA_ARGS__)
#define ifl_rope_table(...) ifl_rope_table_(g, __VA_ARGS__)
#define ifl_rope_table_dynamic(...) ifl_rope_table_dynamic_(g, __VA_ARGS__)
#define ifl_row_rope(...) ifl_row_rope_(g, __VA_ARGS__)
#define ifl_row_join_heads(...) ifl_row_join_heads_(g, __VA_ARGS__)
#define ifl_row_head_cols(...) ifl_row_head_cols_(g, __VA_ARGS__)
#define ifl_row_unfold(...) ifl_row_unfold_(g, __VA_ARGS__)
#define ifl_row_sinusoid(...) ifl_row_sinusoid_(g, __VA_ARGS__)
