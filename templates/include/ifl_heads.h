/* Row operations on heads and on neighboring rows, and sinusoidal positions. */
#pragma once
#include <math.h>
#include <stddef.h>
#include <string.h>

/* Concatenates the columns of a and b in each head; with b_heads 1 every head uses the same b (op join_heads). */
static inline __attribute__((unused)) void ifl_row_join_heads(float *out, const float *a, const float *b, int heads, int wa, int wb, int b_heads) {
  for (int h = 0; h < heads; h++, out += wa + wb) {
    memcpy(out, a + h * wa, (size_t)wa * 4);
    memcpy(out + wa, b + (b_heads == 1 ? 0 : h) * wb, (size_t)wb * 4);
  }
}

/* n columns of each head, from column lo on, contiguous (op head_cols). */
static inline __attribute__((unused)) void ifl_row_head_cols(float *out, const float *x, int heads, int width, int lo, int n) {
  for (int h = 0; h < heads; h++) memcpy(out + h * n, x + h * width + lo, (size_t)n * 4);
}

/* y[c·taps + j] = x[c] of row t − before + j, for taps = before + 1 + after rows; those outside of first…last − 1 are 0. x is
 * row t, and rows are `pitch` floats apart (op unfold). */
static inline __attribute__((unused)) void ifl_row_unfold(float *y, const float *x, int pitch, int n, int before, int after, int t, int first, int last) {
  const int taps = before + 1 + after;
  for (int j = 0; j < taps; j++, y++) {
    const int by = j - before, outside = t + by < first || t + by >= last;
    const float *row = x + (ptrdiff_t)by * pitch;
    for (int c = 0; c < n; c++) y[(ptrdiff_t)c * taps] = outside ? 0.0f : row[c];
  }
}

/* y = 1 + by·log(1 + ⌊pos / floor⌋) (op position_scale). */
static inline __attribute__((unused)) void ifl_row_position_scale(float *y, int pos, int floor, float by) {
  *y = (float)(1 + (double)by * log1p((double)(pos / floor)));
}

/* Sines and cosines of pos times each of `half` frequencies, or with `divide` pos divided by each (op sinusoid). */
static inline __attribute__((unused)) void ifl_row_sinusoid(float *out, int pos, const double *f, int half, int divide, int pairs) {
  for (int c = 0; c < half; c++) {
    const double angle = divide ? pos / f[c] : (double)((float)pos * (float)f[c]);
    out[pairs ? 2 * c : c] = (float)sin(angle);
    out[pairs ? 2 * c + 1 : half + c] = (float)cos(angle);
  }
}
