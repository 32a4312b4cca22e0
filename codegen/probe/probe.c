/* Measures the CPU's peak performance for the bench subcommand: independent chains of multiply-adds in registers. Each
 * function runs a number of rounds and returns the number of operations; a multiply-add counts as two. */
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#define KEEP(x) __asm__ volatile("" : "+x"(x))
#elif defined(__aarch64__)
#include <arm_neon.h>
#define KEEP(x) __asm__ volatile("" : "+w"(x))
#endif

#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX2__)
#define WIDTH 32
#else
#define WIDTH 16
#endif
enum { CHAINS = 12 }; /* twice four units of latency four and more, and fewer than the 16 registers of AVX2 */

#define EXPORT __attribute__((visibility("default")))

int64_t ifl_probe_f32(int64_t rounds);
int64_t ifl_probe_i8(int64_t rounds);

static volatile float sink_f;

typedef float vec __attribute__((vector_size(WIDTH)));
static inline vec fused(vec a, vec b, vec c) {
#if defined(__AVX512F__)
  return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

EXPORT int64_t ifl_probe_f32(int64_t rounds) {
  vec acc[CHAINS], x = {0}, y = {0};
  x += 0.5f + sink_f * 0.0f;
  y += 1.0f + sink_f * 0.0f;
  for (int i = 0; i < CHAINS; i++) acc[i] = y * (float)i; /* equal chains would become one */
  for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++) acc[i] = fused(acc[i], x, y);
  for (int i = 0; i < CHAINS; i++) sink_f = acc[i][0];
  return rounds * CHAINS * (WIDTH / 4) * 2;
}

#if defined(__AVX512VNNI__)
#define I8_MACS 64
typedef __m512i ivec;
static inline ivec step(ivec acc, ivec x, ivec y) { return _mm512_dpbusd_epi32(acc, x, y); }
static inline ivec ones(void) { return _mm512_set1_epi8(1); }
static inline int32_t low(ivec v) { return _mm512_cvtsi512_si32(v); }
#elif defined(__AVX2__)
#define I8_MACS 32
typedef __m256i ivec;
/* As codes of few bits are multiplied: sums of pairs stay in 16 bits. (Codes of eight bits need twice as many instructions.) */
static inline ivec step(ivec acc, ivec x, ivec y) {
  ivec pairs;
  __asm__ volatile("vpmaddubsw %2, %1, %0" : "=x"(pairs) : "x"(x), "x"(y));
  acc = _mm256_add_epi16(acc, pairs);
  KEEP(acc); /* or gcc adds them all up later, from memory */
  return acc;
}
static inline ivec ones(void) { return _mm256_set1_epi8(1); }
static inline int32_t low(ivec v) { return _mm256_cvtsi256_si32(v); }
#elif defined(__ARM_FEATURE_DOTPROD)
#define I8_MACS 16
typedef int32x4_t ivec;
static inline ivec step(ivec acc, ivec x, ivec y) { return vdotq_s32(acc, vreinterpretq_s8_s32(x), vreinterpretq_s8_s32(y)); }
static inline ivec ones(void) { return vreinterpretq_s32_s8(vdupq_n_s8(1)); }
static inline int32_t low(ivec v) { return vgetq_lane_s32(v, 0); }
#endif

#ifdef I8_MACS
static volatile int32_t sink_i;

EXPORT int64_t ifl_probe_i8(int64_t rounds) {
  ivec acc[CHAINS], x = ones(), y = ones();
  for (int i = 0; i < CHAINS; i++) acc[i] = x;
  for (int64_t r = 0; r < rounds; r++) {
    KEEP(x);
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++) acc[i] = step(acc[i], x, y);
  }
  for (int i = 0; i < CHAINS; i++) sink_i = low(acc[i]);
  return rounds * CHAINS * I8_MACS * 2;
}
#else
/* Without a dot-product instruction, 8-bit kernels widen to 16 bits, and the CPU has no single int8 peak. 0: unknown. */
EXPORT int64_t ifl_probe_i8(int64_t rounds) { return rounds * 0; }
#endif
