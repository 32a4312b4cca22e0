/* Operations on one row, for prologues and epilogues of the generated step. A row's result depends on that row alone.
 * Rows need no alignment, and elements from n on are not accessed. */
#pragma once
#include "ifl_vec.h"
#include <math.h>
#include <stddef.h>

/* Σ f(x[i]) over a row in four accumulators, to shorten the dependency chain of additions. */
#define IFL_ROW_SUM_(out, x, n, TERM)                                                                \
  do {                                                                                               \
    ifl_v16 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, v;                                               \
    int i = 0;                                                                                       \
    for (; i + 64 <= (n); i += 64) {                                                                 \
      v = ifl_load((x) + i), s0 = TERM(v, s0);                                                       \
      v = ifl_load((x) + i + 16), s1 = TERM(v, s1);                                                  \
      v = ifl_load((x) + i + 32), s2 = TERM(v, s2);                                                  \
      v = ifl_load((x) + i + 48), s3 = TERM(v, s3);                                                  \
    }                                                                                                \
    for (; i + 16 <= (n); i += 16) v = ifl_load((x) + i), s0 = TERM(v, s0);                          \
    if (i < (n)) {                                                                                   \
      v = ifl_load_n((x) + i, (n) - i);                                                              \
      s1 = ifl_select(ifl_first((n) - i), TERM(v, s1), s1);                                          \
    }                                                                                                \
    out = ifl_sum((s0 + s1) + (s2 + s3));                                                            \
  } while (0)

/* Calls STEP(i, load, store) for every vector of a row; the last vector is masked to the row's end. */
#define IFL_LOAD_PART_(p) ifl_load_n(p, part)
#define IFL_STORE_PART_(p, v) ifl_store_n(p, v, part)
#define IFL_ROW_EACH_(n, STEP)                                          \
  do {                                                                  \
    int i = 0;                                                          \
    for (; i + 16 <= (n); i += 16) STEP(ifl_load, ifl_store);           \
    const int part = (n) - i;                                           \
    if (part > 0) STEP(IFL_LOAD_PART_, IFL_STORE_PART_);                \
  } while (0)

/* y = x / sqrt(mean(x²) + eps) · (w + base); w may be NULL, for 1 (Zhang and Sennrich 2019, eq. 4). y may be x. */
static __attribute__((unused)) void ifl_row_rmsnorm(float *y, const float *x, const float *w, int n, float eps, float base) {
  float ss;
#define SQUARE(v, s) ifl_fma(v, v, s)
  IFL_ROW_SUM_(ss, x, n, SQUARE);
#undef SQUARE
  const ifl_v16 inv = ifl_set1(1.0f / sqrtf(ss / (float)n + eps));
#define STEP(LOAD, STORE) STORE(y + i, LOAD(x + i) * inv * (w ? LOAD(w + i) + base : ifl_set1(1)))
  IFL_ROW_EACH_(n, STEP);
#undef STEP
}

/* y = (x − mean(x)) / sqrt(var(x) + eps) · (w + base) + b; w may be NULL, for 1, and b, for 0. y may be x. */
static __attribute__((unused)) void ifl_row_layernorm(float *y, const float *x, const float *w, const float *b, int n, float eps, float base) {
  float sum, ss;
#define TERM(v, s) (s + v)
  IFL_ROW_SUM_(sum, x, n, TERM);
#undef TERM
  const ifl_v16 mean = ifl_set1(sum / (float)n);
#define TERM(v, s) ifl_fma(v - mean, v - mean, s)
  IFL_ROW_SUM_(ss, x, n, TERM);
#undef TERM
  const ifl_v16 inv = ifl_set1(1.0f / sqrtf(ss / (float)n + eps));
#define STEP(LOAD, STORE)                                                                                               \
  STORE(y + i, ifl_fma((LOAD(x + i) - mean) * inv, w ? LOAD(w + i) + base : ifl_set1(1), b ? LOAD(b + i) : ifl_set1(0)))
  IFL_ROW_EACH_(n, STEP);
#undef STEP
}

/* y = x / sqrt(Σx² + eps). y may be x. */
static __attribute__((unused)) void ifl_row_l2norm(float *y, const float *x, int n, float eps) {
  float ss;
#define SQUARE(v, s) ifl_fma(v, v, s)
  IFL_ROW_SUM_(ss, x, n, SQUARE);
#undef SQUARE
  const ifl_v16 inv = ifl_set1(1.0f / sqrtf(ss + eps));
#define STEP(LOAD, STORE) STORE(y + i, LOAD(x + i) * inv)
  IFL_ROW_EACH_(n, STEP);
#undef STEP
}

/* y = mean(x), one number (op reduce). */
static __attribute__((unused)) void ifl_row_mean(float *y, const float *x, int n) {
  float sum;
#define TERM(v, s) (s + v)
  IFL_ROW_SUM_(sum, x, n, TERM);
#undef TERM
  *y = sum / (float)n;
}

/* y = √max(mean(x²), min), one number (op reduce). */
static __attribute__((unused)) void ifl_row_rms(float *y, const float *x, int n, float min) {
  float ss;
#define SQUARE(v, s) ifl_fma(v, v, s)
  IFL_ROW_SUM_(ss, x, n, SQUARE);
#undef SQUARE
  ss /= (float)n;
  *y = sqrtf(ss > min ? ss : min);
}

/* y = exp(x − max x) / Σ exp(x − max x). y may be x. */
static __attribute__((unused)) void ifl_row_softmax(float *y, const float *x, int n) {
  ifl_v16 most = ifl_set1(-INFINITY);
  int from = 0;
  for (; from + 16 <= n; from += 16) most = ifl_max(most, ifl_load(x + from));
  if (from < n) most = ifl_select(ifl_first(n - from), ifl_max(most, ifl_load_n(x + from, n - from)), most);
  const ifl_v16 top = ifl_set1(ifl_max_of(most));
#define STEP(LOAD, STORE) STORE(y + i, ifl_exp(LOAD(x + i) - top))
  IFL_ROW_EACH_(n, STEP);
#undef STEP
  float sum;
#define TERM(v, s) (s + v)
  IFL_ROW_SUM_(sum, y, n, TERM);
#undef TERM
  const ifl_v16 inv = ifl_set1(1.0f / sum);
#define STEP(LOAD, STORE) STORE(y + i, LOAD(y + i) * inv)
  IFL_ROW_EACH_(n, STEP);
#undef STEP
}

/* cs[i] = cos(pos·freqs[i])·scale and cs[dim/2 + i] = sin(pos·freqs[i])·scale, i < dim/2. The angle is rounded to float as
 * in published implementations; its cosine and sine are accurate to the last bits. */
static __attribute__((unused)) void ifl_rope_table(float *cs, int pos, int dim, const float *freqs, float scale) {
  const int half = dim / 2;
  for (int i = 0; i < half; i++) {
    const float angle = (float)pos * freqs[i];
    cs[i] = (float)cos((double)angle) * scale;
    cs[half + i] = (float)sin((double)angle) * scale;
  }
}

/* ifl_rope_table for a sequence of `rows` > from with a base that grows with the length (NTK scaling, rope_type dynamic of
 * Hugging Face transformers). Base and frequencies are rounded to float, as in transformers. */
static __attribute__((unused)) void ifl_rope_table_dynamic(float *cs, int pos, int dim, float theta, float factor, int from, int rows, float scale) {
  const int half = dim / 2;
  const float grown = factor * (float)rows / (float)from - (factor - 1.0f);
  const float base = theta * (float)pow((double)grown, (double)dim / (double)(dim - 2));
  for (int i = 0; i < half; i++) {
    const float freq = 1.0f / (float)pow((double)base, (double)((float)(2 * i) / (float)dim));
    const float angle = (float)pos * freq;
    cs[i] = (float)cos((double)angle) * scale;
    cs[half + i] = (float)sin((double)angle) * scale;
  }
}

/* Rotates (a, b) by an angle: (a·cos − b·sin, b·cos + a·sin). */
#define IFL_TURN_(a, b, c, s, FMA) const __typeof__(a) ra_ = FMA(a, c, -(b * s)), rb_ = FMA(b, c, a * s)

#ifdef IFL_AVX512
/* Rotates eight pairs (2i, 2i + 1) of p, with the rounding of IFL_TURN_. */
IFL_INLINE void ifl_turn_pairs_(float *p, const float *cosines, const float *sines) {
  const ifl_v16 c8 = ifl_load_n(cosines, 8), s8 = ifl_load_n(sines, 8), v = ifl_load(p);
  const ifl_v16 c = __builtin_shufflevector(c8, c8, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  const ifl_v16 s = __builtin_shufflevector(s8, s8, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  const ifl_v16 other = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  const int32_t minus = (int32_t)0x80000000;
  const ifl_v16i sign = {minus, 0, minus, 0, minus, 0, minus, 0, minus, 0, minus, 0, minus, 0, minus, 0};
  ifl_store(p, ifl_fma(v, c, (ifl_v16)((ifl_v16i)(other * s) ^ sign)));
}
#endif

/* Rotates, in each of `heads` slices of `width`, the `dim` channels from `offset` (Su et al. 2021, eq. 15). Pairs are
 * (i, i + dim/2), or (2i, 2i + 1) when adjacent. cs is a row of ifl_rope_table. In place. */
static __attribute__((unused)) void ifl_row_rope(float *x, const float *cs, int heads, int width, int dim, int offset, int adjacent) {
  const int half = dim / 2;
  const float *cosines = cs, *sines = cs + half;
  for (int h = 0; h < heads; h++) {
    float *p = x + (ptrdiff_t)h * width + offset;
    int i = 0;
    if (!adjacent) {
      for (; i + 16 <= half; i += 16) {
        const ifl_v16 a = ifl_load(p + i), b = ifl_load(p + half + i), c = ifl_load(cosines + i), s = ifl_load(sines + i);
        IFL_TURN_(a, b, c, s, ifl_fma);
        ifl_store(p + i, ra_);
        ifl_store(p + half + i, rb_);
      }
    }
#ifdef IFL_AVX512
    for (; adjacent && i + 8 <= half; i += 8) ifl_turn_pairs_(p + 2 * i, cosines + i, sines + i);
#endif
    for (unsigned j = (unsigned)i; j < (unsigned)half; j++) { /* unsigned avoids a false overflow warning of gcc 12 */
      float *pa = adjacent ? p + 2 * j : p + j, *pb = adjacent ? pa + 1 : p + half + j;
      const float a = *pa, b = *pb, c = cosines[j], s = sines[j];
      IFL_TURN_(a, b, c, s, ifl_fma1);
      *pa = ra_;
      *pb = rb_;
    }
  }
}
