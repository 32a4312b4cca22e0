// cuda_emu.hpp - run CUDA C kernels on the CPU for correctness tests: declarations for kernels.
//   g++ -std=c++20 -O2 -march=native -x c++ -include cuda_emu.hpp kernel.cu fibers.cpp
// fibers.cpp, compiled once for all kernels, runs the threads. Few headers are included here, because every model's
// kernels read this one.
// Build flags: -fsanitize=thread (race check), address, undefined.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <bit>
#include <type_traits>
#include <utility>
#if defined(__SANITIZE_THREAD__)
#define EMU_NOTSAN __attribute__((no_sanitize("thread")))
#else
#define EMU_NOTSAN
#endif

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
// No __shared__: generated code says IFL_SHARED(float, red, [4]) / IFL_DYN_SMEM(half, sm), which take
// poisoned per-block memory here.  (static thread_local would overflow the static TLS block of a dlopen'ed .so.)
#define __grid_constant__
#define IFL_EMU 1

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
typedef dim3 uint3;
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(4) char4 {
  signed char x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }

// ---------------------------------------------------------------- fp16 / bf16
namespace emu {
#if defined(__F16C__)
typedef short v8hi __attribute__((vector_size(16)));
typedef float v4sf __attribute__((vector_size(16)));
#endif
inline float h2f(uint16_t h) {
#if defined(__F16C__)
  return __builtin_ia32_vcvtph2ps(v8hi{(short)h})[0];
#else
  uint32_t s = (h & 0x8000u) << 16, e = (h >> 10) & 31, m = h & 1023;
  if (e == 31)
    return std::bit_cast<float>(s | 0x7f800000u | (m << 13));
  if (e)
    return std::bit_cast<float>(s | ((e + 112) << 23) | (m << 13));
  float f = (float)m * 0x1p-24f;
  return s ? -f : f;
#endif
}
inline uint16_t f2h(float f) { // round to nearest even
#if defined(__F16C__)
  return __builtin_ia32_vcvtps2ph(v4sf{f}, 0)[0];
#else
  uint32_t u = std::bit_cast<uint32_t>(f), s = (u >> 16) & 0x8000u;
  u &= 0x7fffffffu;
  if (u > 0x7f800000u)
    return s | 0x7e00 | ((u >> 13) & 0x1ff);
  if (u >= 0x477ff000u)
    return s | 0x7c00;
  if (u < 0x38800000u)
    return s | std::bit_cast<uint32_t>(std::bit_cast<float>(u) + 0.5f) - 0x3f000000u;
  u += 0xfff + ((u >> 13) & 1);
  return s | ((u - 0x38000000u) >> 13);
#endif
}
inline float b2f(uint16_t b) { return std::bit_cast<float>((uint32_t)b << 16); }
inline uint16_t f2b(float f) {
  uint32_t u = std::bit_cast<uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u)
    return 0x7fff;
  return (u + 0x7fff + ((u >> 16) & 1)) >> 16;
}
} // namespace emu

#define EMU_F16(T, T2, TO, FROM)                                                                                                 \
  struct alignas(2) T {                                                                                                          \
    uint16_t x;                                                                                                                  \
    T() = default;                                                                                                               \
    T(float f) : x(FROM(f)) {}                                                                                                   \
    operator float() const { return TO(x); }                                                                                     \
  };                                                                                                                             \
  struct alignas(4) T2 {                                                                                                         \
    T x, y;                                                                                                                      \
  };                                                                                                                             \
  inline T __hadd(T a, T b) { return T((float)a + (float)b); }                                                                   \
  inline T __hsub(T a, T b) { return T((float)a - (float)b); }                                                                   \
  inline T __hmul(T a, T b) { return T((float)a * (float)b); }                                                                   \
  inline T __hfma(T a, T b, T c) { return T((float)((double)(float)a * (float)b + (double)(float)c)); }                          \
  inline T2 __hadd2(T2 a, T2 b) { return {__hadd(a.x, b.x), __hadd(a.y, b.y)}; }                                                 \
  inline T2 __hsub2(T2 a, T2 b) { return {__hsub(a.x, b.x), __hsub(a.y, b.y)}; }                                                 \
  inline T2 __hmul2(T2 a, T2 b) { return {__hmul(a.x, b.x), __hmul(a.y, b.y)}; }                                                 \
  inline T2 __hfma2(T2 a, T2 b, T2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
EMU_F16(__half, __half2, emu::h2f, emu::f2h)
EMU_F16(__nv_bfloat16, __nv_bfloat162, emu::b2f, emu::f2b)
typedef __half half;
typedef __half2 half2;
inline float __half2float(half h) { return h; }
inline half __float2half(float f) { return half(f); }
inline half __float2half_rn(float f) { return half(f); }
inline float2 __half22float2(half2 h) { return {(float)h.x, (float)h.y}; }
inline half2 __floats2half2_rn(float a, float b) { return {half(a), half(b)}; }
inline float __bfloat162float(__nv_bfloat16 h) { return h; }
inline __nv_bfloat16 __float2bfloat16(float f) { return __nv_bfloat16(f); }
inline float2 __bfloat1622float2(__nv_bfloat162 h) { return {(float)h.x, (float)h.y}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {__nv_bfloat16(a), __nv_bfloat16(b)}; }

// ---------------------------------------------------------------- threads
#pragma GCC visibility push(hidden)
namespace emu {
union Slot {
  uint64_t q[3];
  const void *p;
  uint32_t w[6];
};
struct Thread {
  dim3 tid;
  int lin = 0, lane = 0, warp = 0;
};
struct Block {
  dim3 bidx, bdim, gdim;
  char *smem = nullptr;
  int n = 0; // threads
};
// A collective of the lanes of a warp: their inputs and outputs.
struct Coll {
  uint32_t mask = 0, arrived = 0, gen = 0, pending = 0;
  const char *op = nullptr;
  Slot in[2][32];
  Slot out[2][32];
  char hb;
};
// initial-exec: no __tls_get_addr, and the address is never cached across a switch
extern constinit thread_local Block *B __attribute__((tls_model("initial-exec")));
extern constinit thread_local Thread *T __attribute__((tls_model("initial-exec")));

[[noreturn]] void die(const char *fmt, ...);
int block_sync(const char *where, int pred, int kind);
// Warp collective. `in`: this lane's input. `last` runs once, by the last lane to arrive, and may fill out[].
// `hb`: the op orders memory among its lanes (__syncwarp); shuffles do not.
Coll *warp_coll(uint32_t mask, const char *op, const Slot *in, int &par, bool hb, void (*last)(uint32_t, Slot *, Slot *));
inline void nolast(uint32_t, Slot *, Slot *) {}
uint32_t alive(); // lanes of this thread's warp
void *static_smem(const void *site, size_t n, size_t al);
void copy_async(void *d, const void *s); // 16 bytes
void copy_commit();
void copy_wait(size_t left); // until at most this many groups are pending
void launch_raw(dim3 g, dim3 bd, size_t smem, size_t fixed, void (*fn)(void *), void *arg);

// The shared variables of all kernels of a library, which the linker collects in a section.
struct Shared {
  const char *kernel;
  size_t bytes;
};
constexpr size_t aligned16(size_t n) { return (n + 15) / 16 * 16; }
} // namespace emu
#pragma GCC visibility pop

namespace emu {
// cuLaunchKernel's convention: params[i] points at argument i.
template <class... P, size_t... I> void call_params(void (*k)(P...), void **p, std::index_sequence<I...>) {
  k(*(std::remove_cvref_t<P> *)p[I]...);
}
template <class... P> void launch_params(dim3 g, dim3 b, size_t smem, size_t fixed, void (*k)(P...), void **params) {
  struct C {
    void (*k)(P...);
    void **p;
  } c{k, params};
  launch_raw(
      g, b, smem, fixed,
      [](void *q) {
        auto *c = (C *)q;
        call_params(c->k, c->p, std::index_sequence_for<P...>{});
      },
      &c);
}
} // namespace emu
// The size of argument i, or -1.
namespace emu {
template <class... P> int arg_size(void (*)(P...), int i) {
  const int sizes[] = {(int)sizeof(P)..., -1};
  return sizes[i];
}
} // namespace emu
// A weak reference: a library whose kernels have no shared variables lacks the section.
extern "C" __attribute__((weak, visibility("hidden"))) const emu::Shared __start_ifl_shared[], __stop_ifl_shared[];
namespace emu {
// The bytes of a kernel's shared variables.
inline size_t shared_of(const char *kernel) {
  size_t n = 0;
  for (const Shared *s = __start_ifl_shared; s != __stop_ifl_shared; s++)
    n += strcmp(s->kernel, kernel) ? 0 : s->bytes;
  return n;
}
} // namespace emu
#define IFL_EXPORT(name)                                                                                                         \
  extern "C" int name##__arg(int i) { return emu::arg_size(name, i); }                                                           \
  extern "C" int name##__shared() { return (int)emu::shared_of(#name); }                                                         \
  extern "C" void name##__emu(dim3 g, dim3 b, size_t smem, void **params) {                                                      \
    static const size_t fixed = emu::shared_of(#name);                                                                           \
    emu::launch_params(g, b, smem, fixed, name, params);                                                                         \
  }
#define IFL_SHARED(TY, name, ...)                                                                                                \
  typedef TY name##_ty __VA_ARGS__;                                                                                              \
  __attribute__((section("ifl_shared"), used)) static const emu::Shared name##_site{__func__,                                    \
                                                                                    emu::aligned16(sizeof(name##_ty))};          \
  name##_ty &name = *(name##_ty *)emu::static_smem(&name##_site, sizeof(name##_ty), 16)
#define IFL_DYN_SMEM(T, name) T *name = (T *)emu::B->smem

#define threadIdx (emu::T->tid)
#define blockIdx (emu::B->bidx)
#define blockDim (emu::B->bdim)
#define gridDim (emu::B->gdim)
constexpr int warpSize = 32;
#define EMU_S2(x) #x
#define EMU_S1(x) EMU_S2(x)
#define EMU_AT __FILE__ ":" EMU_S1(__LINE__)
#define __syncthreads() ((void)emu::block_sync("__syncthreads " EMU_AT, 0, 0))
#define __syncthreads_or(p) emu::block_sync("__syncthreads_or", p, 0)
#define __syncthreads_and(p) emu::block_sync("__syncthreads_and", p, 1)
#define __syncthreads_count(p) emu::block_sync("__syncthreads_count", p, 2)
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __syncwarp(unsigned mask = ~0u) {
  int p;
  emu::warp_coll(mask, "__syncwarp", nullptr, p, true, emu::nolast);
}

namespace emu {
template <class V> EMU_NOTSAN inline V shfl(unsigned mask, const char *op, V v, int src, bool ok) {
  static_assert(sizeof(V) <= 8);
  Slot s;
  if constexpr (sizeof(V) == 4)
    s.q[0] = std::bit_cast<uint32_t>(v);
  else
    __builtin_memcpy(&s, &v, sizeof v);
  int p;
  Coll *c = warp_coll(mask, op, &s, p, false, nolast);
  if (!ok)
    return v;
  if (!(mask >> src & 1))
    die("%s reads lane %d outside mask %08x", op, src, mask);
  V r;
  __builtin_memcpy(&r, &c->in[p][src], sizeof r);
  return r;
}
inline int active_lanes() {
  Block *b = B;
  const int n = b->n - T->warp * 32;
  return n < 32 ? n : 32;
}
} // namespace emu
template <class V> inline V __shfl_sync(unsigned m, V v, int s, int w = 32) {
  int l = emu::T->lane;
  return emu::shfl(m, "__shfl_sync", v, (l & ~(w - 1)) | (s & (w - 1)), true);
}
template <class V> inline V __shfl_xor_sync(unsigned m, V v, int x, int w = 32) {
  int l = emu::T->lane, s = l ^ x;
  return emu::shfl(m, "__shfl_xor_sync", v, s, (s & ~(w - 1)) <= (l & ~(w - 1)));
}
template <class V> inline V __shfl_down_sync(unsigned m, V v, unsigned d, int w = 32) {
  int l = emu::T->lane, s = l + (int)d;
  return emu::shfl(m, "__shfl_down_sync", v, s, (l & (w - 1)) + (int)d < w);
}
template <class V> inline V __shfl_up_sync(unsigned m, V v, unsigned d, int w = 32) {
  int l = emu::T->lane, s = l - (int)d;
  return emu::shfl(m, "__shfl_up_sync", v, s, (l & (w - 1)) >= (int)d);
}
EMU_NOTSAN inline unsigned __ballot_sync(unsigned m, int pred) {
  emu::Slot s;
  s.q[0] = pred != 0;
  int p;
  auto *c = emu::warp_coll(m, "__ballot_sync", &s, p, false, [](uint32_t m, emu::Slot *in, emu::Slot *out) EMU_NOTSAN {
    unsigned r = 0;
    for (unsigned k = m; k; k &= k - 1) {
      int l = std::countr_zero(k);
      r |= (unsigned)in[l].q[0] << l;
    }
    out[0].q[0] = r;
  });
  return (unsigned)c->out[p][0].q[0];
}
inline int __any_sync(unsigned m, int p) { return __ballot_sync(m, p) != 0; }
inline int __all_sync(unsigned m, int p) { return __ballot_sync(m, p) == m; }
inline unsigned __activemask() { return emu::alive(); }
EMU_NOTSAN inline int __reduce_add_sync(unsigned m, int v) {
  emu::Slot s;
  s.q[0] = (unsigned)v;
  int p;
  auto *c = emu::warp_coll(m, "__reduce_add_sync", &s, p, false, [](uint32_t m, emu::Slot *in, emu::Slot *out) EMU_NOTSAN {
    unsigned r = 0;
    for (unsigned k = m; k; k &= k - 1)
      r += (unsigned)in[std::countr_zero(k)].q[0];
    out[0].q[0] = r;
  });
  return (int)c->out[p][0].q[0];
}

// ---------------------------------------------------------------- atomics, math, bit tricks
template <class V> inline V atomicAdd(V *a, V v) {
  if constexpr (std::is_integral_v<V>)
    return __atomic_fetch_add(a, v, __ATOMIC_RELAXED);
  else {
    V o, sum;
    __atomic_load(a, &o, __ATOMIC_RELAXED);
    do
      sum = o + v;
    while (!__atomic_compare_exchange(a, &o, &sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return o;
  }
}
template <class V> inline V atomicMax(V *a, V v) {
  V o = __atomic_load_n(a, __ATOMIC_RELAXED);
  while (o < v && !__atomic_compare_exchange_n(a, &o, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return o;
}
template <class V> inline V atomicExch(V *a, V v) { return __atomic_exchange_n(a, v, __ATOMIC_RELAXED); }
template <class V> inline V atomicCAS(V *a, V c, V v) {
  __atomic_compare_exchange_n(a, &c, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return c;
}
inline unsigned atomicInc(unsigned *a, unsigned lim) {
  unsigned o = __atomic_load_n(a, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(a, &o, o >= lim ? 0 : o + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
  return o;
}
template <class V> inline V __ldg(const V *p) { return *p; }
template <class V> inline V __ldcg(const V *p) { return *p; }
template <class V> inline void __stcg(V *p, V v) { *p = v; }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.f / sqrtf(x); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __int_as_float(int i) { return std::bit_cast<float>(i); }
inline float __uint_as_float(unsigned i) { return std::bit_cast<float>(i); }
inline unsigned __float_as_uint(float f) { return std::bit_cast<unsigned>(f); }
inline int __float_as_int(float f) { return std::bit_cast<int>(f); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero((unsigned)x); }
inline int __ffs(int x) { return x ? std::countr_zero((unsigned)x) + 1 : 0; }
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; i++)
    c += (int)(int8_t)(a >> 8 * i) * (int)(int8_t)(b >> 8 * i);
  return c;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  uint64_t v = (uint64_t)b << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) {
    unsigned k = s >> 4 * i & 15, by = (unsigned)(v >> 8 * (k & 7)) & 255;
    if (k & 8)
      by = by & 128 ? 255 : 0;
    r |= by << 8 * i;
  }
  return r;
}
template <class V> constexpr const V &max(const V &a, const V &b) { return a < b ? b : a; }
template <class V> constexpr const V &min(const V &a, const V &b) { return b < a ? b : a; }

// ---------------------------------------------------------------- tensor-core and async-copy wrappers
#include "ifl_intrin.cuh"
