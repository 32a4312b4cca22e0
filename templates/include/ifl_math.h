/* Elementary functions over vectors; included by ifl_vec.h. Relative error ≤ 2·10⁻⁷ (erf 4·10⁻⁷) over the whole range (the tests
 * compare with double precision); infinities, zeros and NaN are handled as in libm. The polynomials are Chebyshev
 * fits of the named functions on the named intervals. */
#pragma once

/* x·2ⁿ for integral n, correct also if the result is subnormal or 2ⁿ alone would overflow. */
#ifdef IFL_AVX2
IFL_INLINE __m256 ifl_scale2_8_(__m256 x, __m256 n) {
  const __m256i i = _mm256_cvttps_epi32(n), half = _mm256_srai_epi32(i, 1), bias = _mm256_set1_epi32(127);
  const __m256i a = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23), b = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(i, half), bias), 23);
  return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(a)), _mm256_castsi256_ps(b));
}
#endif
IFL_INLINE ifl_v16 ifl_scale2_(ifl_v16 x, ifl_v16 n) {
#ifdef IFL_AVX512
  return (ifl_v16)_mm512_scalef_ps((__m512)x, (__m512)n);
#elif defined(IFL_AVX2)
  return ifl_both_(ifl_scale2_8_(ifl_low_(x), ifl_low_(n)), ifl_scale2_8_(ifl_high_(x), ifl_high_(n)));
#else
  ifl_v16i i = ifl_whole(n), half = i >> 1; /* two factors, each a normal number */
  return x * (ifl_v16)((half + 127) << 23) * (ifl_v16)((i - half + 127) << 23);
#endif
}

/* eˣ = 2ⁿ·eʳ with |r| ≤ ln 2 / 2; eʳ = 1 + r + r²·P(r). */
#ifdef IFL_AVX2
/* Computed register by register: gcc would pass a vector of two registers through memory between the steps. */
IFL_INLINE __m256 ifl_exp8_(__m256 x) {
#define SET(c) _mm256_set1_ps(c)
  x = _mm256_min_ps(SET(89.0f), _mm256_max_ps(SET(-104.0f), x)); /* this order of operands preserves NaN */
  const __m256 magic = SET(12582912.0f), n = _mm256_sub_ps(_mm256_add_ps(_mm256_mul_ps(x, SET(1.442695041f)), magic), magic);
  const __m256 r = _mm256_fmadd_ps(n, SET(-1.428606820e-6f), _mm256_fmadd_ps(n, SET(-0x1.62e4p-1f), x));
  __m256 p = _mm256_fmadd_ps(SET(0.0001989108046f), r, SET(0.001393373072f));
  p = _mm256_fmadd_ps(p, r, SET(0.008333310845f));
  p = _mm256_fmadd_ps(p, r, SET(0.0416664642f));
  p = _mm256_fmadd_ps(p, r, SET(0.1666666668f));
  p = _mm256_fmadd_ps(p, r, SET(0.5f));
  p = _mm256_fmadd_ps(_mm256_mul_ps(p, r), r, r);
  return ifl_scale2_8_(_mm256_add_ps(p, SET(1.0f)), n);
#undef SET
}
#endif

IFL_INLINE ifl_v16 ifl_exp(ifl_v16 x) {
#ifdef IFL_AVX2
  return ifl_both_(ifl_exp8_(ifl_low_(x)), ifl_exp8_(ifl_high_(x)));
#else
  x = ifl_min(ifl_set1(89.0f), ifl_max(ifl_set1(-104.0f), x)); /* this order of operands preserves NaN */
  ifl_v16 n = ifl_nearest(x * 1.442695041f);
  /* ln 2 in two parts; the first has trailing zero bits, so n times it is exact even without a fused multiply-add. */
  ifl_v16 r = ifl_fma(n, ifl_set1(-0x1.62e4p-1f), x);
  r = ifl_fma(n, ifl_set1(-1.428606820e-6f), r);
  ifl_v16 p = ifl_fma(ifl_set1(0.0001989108046f), r, ifl_set1(0.001393373072f));
  p = ifl_fma(p, r, ifl_set1(0.008333310845f));
  p = ifl_fma(p, r, ifl_set1(0.0416664642f));
  p = ifl_fma(p, r, ifl_set1(0.1666666668f));
  p = ifl_fma(p, r, ifl_set1(0.5f));
  p = ifl_fma(p * r, r, r);
  return ifl_scale2_(p + 1.0f, n);
#endif
}

/* ln x = e·ln 2 + ln m with m in [√½, √2); with s = (m−1)/(m+1), ln m = 2s + s³·P(s²). */
IFL_INLINE ifl_v16 ifl_log(ifl_v16 x) {
  ifl_v16i tiny = x < 0x1p-126f;
  ifl_v16 y = ifl_select(tiny, x * 0x1p24f, x);
  ifl_v16i bits = (ifl_v16i)y - 0x3f3504f3; /* bits of √½: reduces m to [√½, √2) */
  ifl_v16 e = __builtin_convertvector((bits >> 23) - (tiny & 24), ifl_v16);
  ifl_v16 f = (ifl_v16)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  ifl_v16 s = f / (f + 2.0f), z = s * s, h = f * f * 0.5f;
  ifl_v16 p = ifl_fma(ifl_set1(0.2334194339f), z, ifl_set1(0.2855039696f));
  p = ifl_fma(p, z, ifl_set1(0.4000012559f));
  p = ifl_fma(p, z, ifl_set1(0.6666666655f)) * z;
  /* 2s = f − s·f and s·f = f²/2 − s·f²/2: the large terms stay exact, as f is. */
  ifl_v16 low = s * (h + p);
  ifl_v16 r = e * 0x1.62e4p-1f + (f - (h - (low + e * 1.428606820e-6f)));
  r = ifl_select(x == 0.0f, ifl_set1(-__builtin_inff()), r);
  r = ifl_select(x == __builtin_inff(), x, r);
  return ifl_select((x < 0.0f) | (x != x), ifl_set1(__builtin_nanf("")), r);
}

/* ln(1 + x). The factor corrects for the rounding of 1 + x (Goldberg 1991, theorem 4). */
IFL_INLINE ifl_v16 ifl_log1p(ifl_v16 x) {
  const ifl_v16 u = 1.0f + x, d = u - 1.0f;
  return ifl_select(ifl_equal(d, ifl_set1(0)), x, ifl_log(u) * ifl_select(ifl_equal(d, x), ifl_set1(1), x / d));
}

/* |x| with the sign of s. */
IFL_INLINE ifl_v16 ifl_signed_(ifl_v16 x, ifl_v16 s) {
  return (ifl_v16)((ifl_v16i)x | ((ifl_v16i)s & (int32_t)0x80000000));
}

/* Near zero x + x³·P(x²), else 1 − 2/(e²ˣ + 1). */
IFL_INLINE ifl_v16 ifl_tanh(ifl_v16 x) {
  ifl_v16 a = ifl_abs(x), s = x * x;
  ifl_v16 p = ifl_fma(ifl_set1(0.002214902743f), s, ifl_set1(-0.008272456733f));
  p = ifl_fma(p, s, ifl_set1(0.02174618709f));
  p = ifl_fma(p, s, ifl_set1(-0.0539563494f));
  p = ifl_fma(p, s, ifl_set1(0.1333329075f));
  p = ifl_fma(p, s, ifl_set1(-0.3333333308f));
  ifl_v16 near = ifl_fma(p * s, a, a);
  ifl_v16 far = 1.0f - 2.0f / (ifl_exp(a + a) + 1.0f);
  return ifl_signed_(ifl_select(ifl_less(a, ifl_set1(0.65f)), near, far), x);
}

/* x·P(x²)/Q(x²), a minimax fit of the relative error (1.9e-8; 3 ulp with rounding), up to the x from which erf
 * rounds to 1. One path with one division takes half the time of separate paths for small x and, with an exponential, large x. */
IFL_INLINE ifl_v16 ifl_erf(ifl_v16 x) {
  const ifl_v16 a = ifl_min(ifl_set1(3.9192059f), ifl_abs(x)), s = a * a; /* this order of operands preserves NaN */
  ifl_v16 p = ifl_fma(ifl_set1(2.050749102e-6f), s, ifl_set1(0.0002848889705f));
  ifl_v16 q = ifl_fma(ifl_set1(3.809887186e-5f), s, ifl_set1(0.001162318709f));
  p = ifl_fma(p, s, ifl_set1(0.003764481583f));
  q = ifl_fma(q, s, ifl_set1(0.01496692641f));
  p = ifl_fma(p, s, ifl_set1(0.05274535112f));
  q = ifl_fma(q, s, ifl_set1(0.1140970606f));
  p = ifl_fma(p, s, ifl_set1(0.1903758153f));
  q = ifl_fma(q, s, ifl_set1(0.5020489161f));
  p = ifl_fma(p, s, ifl_set1(1.128379146f));
  q = ifl_fma(q, s, ifl_set1(1.0f));
  return ifl_signed_(ifl_min(ifl_set1(1.0f), a * p / q), x);
}

IFL_INLINE ifl_v16 ifl_sigmoid(ifl_v16 x) {
#ifdef IFL_AVX2
  const __m256 one = _mm256_set1_ps(1.0f), sign = _mm256_set1_ps(-0.0f);
  const __m256 low = ifl_exp8_(_mm256_xor_ps(sign, ifl_low_(x))), high = ifl_exp8_(_mm256_xor_ps(sign, ifl_high_(x)));
  return ifl_both_(_mm256_div_ps(one, _mm256_add_ps(low, one)), _mm256_div_ps(one, _mm256_add_ps(high, one)));
#else
  return 1.0f / (ifl_exp(-x) + 1.0f);
#endif
}
