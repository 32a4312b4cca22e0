// cuda_emu.hpp - run CUDA-C kernels on the CPU for correctness tests.
//   g++ -std=c++20 -O2 -march=native -x c++ -include cuda_emu.hpp kernel.cu
// One fiber per CUDA thread, hand-switched; blocks are spread over OS threads.
// A fiber runs uninterrupted between synchronisation points, so each order of
// EMU_ORDER=fwd|rev|rand:<seed> is one legal interleaving; results must not depend on it.
// EMU_CPASYNC=lazy|eager: lazy completes a cp.async only when wait_group forces it.
// Env EMU_THREADS=n.  Build flags: -fsanitize=thread (race check), address, undefined.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <algorithm>
#include <atomic>
#include <mutex>
#include <bit>
#include <new>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>
#include <string>
#include <sys/mman.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define EMU_TSAN 1
#define EMU_NOTSAN __attribute__((no_sanitize("thread")))
#else
#define EMU_NOTSAN
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define EMU_ASAN 1
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

namespace emu {
// ---------------------------------------------------------------- fp16 / bf16
inline float h2f(uint16_t h) {
#if defined(__F16C__)
  return _cvtsh_ss(h);
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
  return _cvtss_sh(f, 0);
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

// ---------------------------------------------------------------- fibers
namespace emu {
[[noreturn]] inline void die(const char *fmt, auto... a) {
  fprintf(stderr, "cuda_emu: ");
  fprintf(stderr, fmt, a...);
  fputc('\n', stderr);
  fflush(stderr);
  abort();
}

extern "C" void emu_swap(void **save_sp, void *load_sp);
#if defined(__x86_64__)
asm(R"(
.pushsection .text
.weak emu_swap
.type emu_swap,@function
emu_swap:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
.size emu_swap,.-emu_swap
.popsection
)");
inline void *seed_stack(char *top, void (*fn)()) {
  void **p = (void **)((uintptr_t)top & ~15ull);
  *--p = nullptr;
  *--p = (void *)fn;
  for (int i = 0; i < 6; i++)
    *--p = nullptr;
  return p;
}
#elif defined(__aarch64__)
asm(R"(
.pushsection .text
.weak emu_swap
.type emu_swap,%function
emu_swap:
  sub sp,sp,#176
  stp x19,x20,[sp,#0]
  stp x21,x22,[sp,#16]
  stp x23,x24,[sp,#32]
  stp x25,x26,[sp,#48]
  stp x27,x28,[sp,#64]
  stp x29,x30,[sp,#80]
  stp d8,d9,[sp,#96]
  stp d10,d11,[sp,#112]
  stp d12,d13,[sp,#128]
  stp d14,d15,[sp,#144]
  mov x9,sp
  str x9,[x0]
  mov sp,x1
  ldp x19,x20,[sp,#0]
  ldp x21,x22,[sp,#16]
  ldp x23,x24,[sp,#32]
  ldp x25,x26,[sp,#48]
  ldp x27,x28,[sp,#64]
  ldp x29,x30,[sp,#80]
  ldp d8,d9,[sp,#96]
  ldp d10,d11,[sp,#112]
  ldp d12,d13,[sp,#128]
  ldp d14,d15,[sp,#144]
  add sp,sp,#176
  ret
.popsection
)");
inline void *seed_stack(char *top, void (*fn)()) {
  uint64_t *p = (uint64_t *)((uintptr_t)top & ~15ull) - 22;
  memset(p, 0, 176);
  p[11] = (uint64_t)fn;
  return p;
}
#else
#error "add emu_swap for this CPU"
#endif

constexpr size_t STACK = 128 << 10;
constexpr int MAXT = 1024;
enum State : uint8_t { READY, WAIT_WARP, WAIT_BLOCK, DONE };
union Slot {
  uint64_t q[3];
  const void *p;
  uint32_t w[6];
};

struct Copy {
  void *d;
  const void *s;
  int n;
};
struct Thread {
  void *sp = nullptr;
  dim3 tid;
  int lin = 0, lane = 0, warp = 0;
  State st = DONE;
  uint32_t wmask = 0;
  const char *where = "";
  std::vector<Copy> cur;
  std::vector<std::vector<Copy>> groups;
#ifdef EMU_TSAN
  void *fiber = nullptr;
#endif
#ifdef EMU_ASAN
  void *fake = nullptr;
  char *stk = nullptr;
#endif
};
struct Coll {
  uint32_t mask = 0, arrived = 0, gen = 0, pending = 0;
  const char *op = nullptr;
  Slot in[2][32];
  Slot out[2][32];
  char hb;
};
struct Warp {
  uint32_t ready = 0, alive = 0;
  int ncoll = 0;
  Coll coll[8];
};

struct Opts {
  int order = 0;
  uint64_t seed = 1;
  bool lazy = true;
  int nthr = 0;
};
inline Opts opts_from_env() {
  Opts o;
  if (const char *e = getenv("EMU_ORDER")) {
    if (!strcmp(e, "rev"))
      o.order = 1;
    else if (!strncmp(e, "rand", 4)) {
      o.order = 2;
      o.seed = e[4] ? atoll(e + 5) : 1;
    }
  }
  if (const char *e = getenv("EMU_CPASYNC"))
    o.lazy = strcmp(e, "eager");
  if (const char *e = getenv("EMU_THREADS"))
    o.nthr = atoi(e);
  else
    o.nthr = (int)std::thread::hardware_concurrency();
  return o;
}

struct Block { // per OS thread executor, reused for all blocks it runs
  Thread th[MAXT];
  Warp wp[32];
  int n = 0, nw = 0, nwait = 0, nalive = 0;
  void *main_sp = nullptr;
  char *stacks = nullptr;
  char *smem_map = nullptr;
  char *smem = nullptr;
  size_t smem_cap = 0;
  dim3 bidx, bdim, gdim;
  void (*fn)(void *) = nullptr;
  void *arg = nullptr;
  Opts o;
  uint64_t rng = 1;
  int cur = 0;
  uint64_t switches = 0;
  char *st_map = nullptr;
  size_t st_used = 0;
  int nsites = 0;
  struct {
    const void *first;
    void *second;
  } sites[64];
  int vote_or = 0, vote_and = 1, vote_cnt = 0, vote_gen = 0, vote_res[2][3] = {};
  char hb_block;
#ifdef EMU_TSAN
  void *main_fiber = nullptr;
#endif
#ifdef EMU_ASAN
  void *main_fake = nullptr;
  const void *main_stk = nullptr;
  size_t main_sz = 0;
#endif
};
// initial-exec: no __tls_get_addr, and the address is never cached across a switch
static thread_local Block *B __attribute__((tls_model("initial-exec"))) = nullptr;
static thread_local Thread *T __attribute__((tls_model("initial-exec"))) = nullptr;

EMU_NOTSAN inline void switch_to(Thread *from, Thread *to) { // from/to null = scheduler
  Block *b = B;
  T = to;
  b->switches++;
#ifdef EMU_TSAN
  __tsan_switch_to_fiber(to ? to->fiber : b->main_fiber, 1 /*no implied sync*/);
#endif
#ifdef EMU_ASAN
  if (to)
    __sanitizer_start_switch_fiber(from ? &from->fake : &b->main_fake, to->stk, STACK);
  else
    __sanitizer_start_switch_fiber(from ? &from->fake : &b->main_fake, b->main_stk, b->main_sz);
#endif
  emu_swap(from ? &from->sp : &b->main_sp, to ? to->sp : b->main_sp);
#ifdef EMU_ASAN
  const void *ob;
  size_t os;
  __sanitizer_finish_switch_fiber(from ? from->fake : b->main_fake, &ob, &os);
  if (!b->main_stk) {
    b->main_stk = ob;
    b->main_sz = os;
  }
#endif
}
inline int pick(uint32_t m, Block *b) {
  if (b->o.order == 0)
    return std::countr_zero(m);
  if (b->o.order == 1)
    return 31 - std::countl_zero(m);
  b->rng ^= b->rng << 13;
  b->rng ^= b->rng >> 7;
  b->rng ^= b->rng << 17;
  int k = (int)((b->rng >> 33) % (unsigned)std::popcount(m));
  while (k--)
    m &= m - 1;
  return std::countr_zero(m);
}
EMU_NOTSAN inline Thread *next_ready(int warp) { // same warp first (or random), then the others
  Block *b = B;
  if (b->o.order == 2) {
    int s = (int)((b->rng >> 13) % (unsigned)b->nw);
    warp = s;
  }
  for (int i = 0, w = warp; i < b->nw; i++) {
    if (b->wp[w].ready)
      return &b->th[w * 32 + pick(b->wp[w].ready, b)];
    if (b->o.order == 1)
      w = w ? w - 1 : b->nw - 1;
    else
      w = w + 1 == b->nw ? 0 : w + 1;
  }
  return nullptr;
}
EMU_NOTSAN inline void deadlock() {
  Block *b = B;
  fprintf(stderr, "cuda_emu: DEADLOCK in block (%u,%u,%u): divergent or missing synchronisation\n", b->bidx.x, b->bidx.y,
          b->bidx.z);
  for (int i = 0, shown = 0; i < b->n && shown < 40; i++)
    if (i == 0 || b->th[i].st != b->th[i - 1].st || b->th[i].where != b->th[i - 1].where) {
      shown++;
      const char *s[] = {"ready", "waits in warp op", "waits in block op", "exited"};
      fprintf(stderr, "  thread %d.. : %s %s mask=%08x\n", i, s[b->th[i].st], b->th[i].where, b->th[i].wmask);
    }
  abort();
}
EMU_NOTSAN inline void block_release() {
  Block *b = B;
  b->vote_res[b->vote_gen & 1][0] = b->vote_or;
  b->vote_res[b->vote_gen & 1][1] = b->vote_and;
  b->vote_res[b->vote_gen & 1][2] = b->vote_cnt;
  b->vote_or = 0;
  b->vote_and = 1;
  b->vote_cnt = 0;
  b->vote_gen++;
  b->nwait = 0;
  for (int i = 0; i < b->n; i++)
    if (b->th[i].st == WAIT_BLOCK) {
      b->th[i].st = READY;
      b->wp[i >> 5].ready |= 1u << (i & 31);
    }
}
EMU_NOTSAN inline void park(Thread *t) {
  Thread *nx = next_ready(t->warp);
  if (nx == t) {
    T = t;
    return;
  }
  if (!nx)
    deadlock();
  switch_to(t, nx);
}

EMU_NOTSAN inline int block_sync(const char *where, int pred, int kind) {
  Block *b = B;
  Thread *t = T;
#ifdef EMU_TSAN
  __tsan_release(&b->hb_block);
#endif
  b->vote_or |= pred != 0;
  b->vote_and &= pred != 0;
  b->vote_cnt += pred != 0;
  int g = b->vote_gen;
  b->nwait++;
  t->st = WAIT_BLOCK;
  t->where = where;
  b->wp[t->warp].ready &= ~(1u << t->lane);
  if (b->nwait == b->nalive)
    block_release(); // exited threads do not count, as on sm_70+
  park(t);
#ifdef EMU_TSAN
  __tsan_acquire(&b->hb_block);
#endif
  return b->vote_res[g & 1][kind];
}
// Warp collective. `in`: this lane's input. `last` runs once, by the last lane to arrive, and may fill out[].
// `hb`: the op orders memory among its lanes (__syncwarp); shuffles do not.
template <class F> EMU_NOTSAN inline Coll *warp_coll(uint32_t mask, const char *op, const Slot *in, int &par, bool hb, F &&last) {
  Thread *t = T;
  Warp &w = B->wp[t->warp];
  if (!(mask >> t->lane & 1))
    die("%s: lane %d calls with a mask %08x that omits it", op, t->lane, mask);
  Coll *c = nullptr;
  for (int i = 0; i < w.ncoll; i++)
    if (w.coll[i].mask == mask) {
      c = &w.coll[i];
      break;
    }
  if (!c) {
    if (w.ncoll == 8)
      for (int i = 0; i < 8; i++)
        if (!w.coll[i].arrived && !w.coll[i].pending) {
          c = &w.coll[i];
          break;
        } // reuse an idle one
    if (!c) {
      if (w.ncoll == 8)
        die("too many live warp masks");
      c = &w.coll[w.ncoll++];
    }
    c->mask = mask;
    c->arrived = 0;
  }
  if (!c->arrived)
    c->op = op;
  else if (strcmp(c->op, op))
    die("warp %d lane %d does %s while its peers do %s", t->warp, t->lane, op, c->op);
  par = c->gen & 1;
  if (in)
    c->in[par][t->lane] = *in;
#ifdef EMU_TSAN
  if (hb)
    __tsan_release(&c->hb);
#endif
  c->arrived |= 1u << t->lane;
  if (c->arrived == mask) {
    last(c->in[par], c->out[par]);
    c->arrived = 0;
    c->gen++;
    c->pending = std::popcount(mask);
    for (uint32_t m = mask & ~(1u << t->lane); m; m &= m - 1) {
      int l = std::countr_zero(m);
      B->th[t->warp * 32 + l].st = READY;
    }
    w.ready |= mask;
  } else {
    t->st = WAIT_WARP;
    t->where = op;
    t->wmask = mask;
    w.ready &= ~(1u << t->lane);
    park(t);
  }
#ifdef EMU_TSAN
  if (hb)
    __tsan_acquire(&c->hb);
#endif
  c->pending--;
  return c;
}
inline void nolast(Slot *, Slot *) {}

EMU_NOTSAN inline void fiber_main() {
#ifdef EMU_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &B->main_stk, &B->main_sz);
#endif
  for (;;) {
    Block *b = B;
    Thread *t = T;
    b->fn(b->arg);
    t = T;
    t->st = DONE;
    t->where = "";
    b->nalive--;
    b->wp[t->warp].ready &= ~(1u << t->lane);
    b->wp[t->warp].alive &= ~(1u << t->lane);
    if (b->nalive && b->nwait == b->nalive)
      block_release();
    Thread *nx = next_ready(t->warp);
    if (!nx && b->nalive)
      deadlock();
    switch_to(t, nx);
  }
}
struct Pool {
  std::mutex mu;
  std::vector<Block *> free;
};
static Pool &pool = *new Pool; // of this module: its fibers hold its thread-local variables; never destroyed
EMU_NOTSAN inline Block *executor(const Opts &o) {
  Block *mine = nullptr;
  {
    std::lock_guard l(pool.mu);
    if (!pool.free.empty()) {
      mine = pool.free.back();
      pool.free.pop_back();
    }
  }
  if (!mine) {
    mine = new Block;
    mine->stacks =
        (char *)mmap(nullptr, (STACK + 4096) * MAXT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mine->stacks == MAP_FAILED)
      die("mmap stacks");
  }
  mine->o = o;
  mine->rng = o.seed * 0x9E3779B97F4A7C15ull | 1;
  return mine;
}
EMU_NOTSAN inline void run_block(Block *b, dim3 bi) {
  B = b;
  b->bidx = bi;
  b->nwait = 0;
  b->nalive = b->n;
  if (b->smem)
    memset(b->smem_map, 0xFF, b->smem_cap); // poison: fp16/fp32 NaN
  b->nsites = 0;
  if (!b->st_map)
    b->st_map = (char *)mmap(nullptr, 256 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  b->st_used = 0;
#ifdef EMU_TSAN
  if (!b->main_fiber)
    b->main_fiber = __tsan_get_current_fiber();
#endif
  for (int w = 0; w < b->nw; w++) {
    int c = std::min(32, b->n - w * 32);
    b->wp[w].ready = b->wp[w].alive = c == 32 ? ~0u : (1u << c) - 1;
    for (int k = 0; k < b->wp[w].ncoll; k++)
      b->wp[w].coll[k].arrived = b->wp[w].coll[k].pending = 0;
    b->wp[w].ncoll = 0;
  }
  for (int i = 0; i < b->n; i++) {
    Thread &t = b->th[i];
    if (!t.sp) {
      char *lo = b->stacks + (STACK + 4096) * i;
      mprotect(lo, 4096, PROT_NONE);
      t.sp = seed_stack(lo + 4096 + STACK, fiber_main);
#ifdef EMU_ASAN
      t.stk = lo + 4096;
#endif
#ifdef EMU_TSAN
      t.fiber = __tsan_create_fiber(0);
#endif
    }
    t.lin = i;
    t.lane = i & 31;
    t.warp = i >> 5;
    t.st = READY;
    t.cur.clear();
    t.groups.clear();
    t.tid = dim3(i % b->bdim.x, i / b->bdim.x % b->bdim.y, i / (b->bdim.x * b->bdim.y));
#ifdef EMU_TSAN
    __tsan_release(&b->hb_block);
    __tsan_switch_to_fiber(t.fiber, 1);
    __tsan_acquire(&b->hb_block);
    __tsan_switch_to_fiber(b->main_fiber, 1);
#endif
  }
  switch_to(nullptr, next_ready(0));
#ifdef EMU_TSAN
  for (int i = 0; i < b->n; i++) {
    __tsan_switch_to_fiber(b->th[i].fiber, 1);
    __tsan_release(&b->hb_block);
    __tsan_switch_to_fiber(b->main_fiber, 1);
  }
  __tsan_acquire(&b->hb_block);
#endif
}
inline uint64_t g_switches = 0;
inline void launch_raw(dim3 g, dim3 bd, size_t smem, void (*fn)(void *), void *arg) {
  static Opts o0 = opts_from_env();
  Opts o = o0;
  size_t n = (size_t)bd.x * bd.y * bd.z, nb = (size_t)g.x * g.y * g.z;
  if (!n || n > MAXT)
    die("bad block size %zu", n);
  if (smem > 227 * 1024)
    die("dynamic shared memory %zu > 227 KiB", smem);
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> sw{0};
  auto work = [&] {
    Block *b = executor(o);
    b->n = (int)n;
    b->nw = (int)((n + 31) / 32);
    b->bdim = bd;
    b->gdim = g;
    b->fn = fn;
    b->arg = arg;
    b->switches = 0;
    if (smem) {
      size_t cap = (smem + 4095) & ~4095ull;
      if (cap != b->smem_cap) {
        if (b->smem_map)
          munmap(b->smem_map, b->smem_cap + 4096);
        b->smem_map = (char *)mmap(nullptr, cap + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(b->smem_map + cap, 4096, PROT_NONE);
        b->smem_cap = cap;
      }
      b->smem = b->smem_map + cap - ((smem + 15) & ~15ull);
    } else
      b->smem = nullptr; // its end touches a guard page
    for (size_t i; (i = next.fetch_add(1)) < nb;) {
      if (o.order == 1)
        i = nb - 1 - i;
      run_block(b, dim3(i % g.x, i / g.x % g.y, i / ((size_t)g.x * g.y)));
    }
    sw += b->switches;
    std::lock_guard l(pool.mu);
    pool.free.push_back(b);
  };
  int nt = nb < 64 ? 1 : (int)std::min<size_t>(std::max(1, o.nthr), nb);
  if (nt <= 1)
    work();
  else {
    std::vector<std::thread> v;
    for (int i = 0; i < nt; i++)
      v.emplace_back(work);
    for (auto &t : v)
      t.join();
  }
  g_switches = sw;
}
template <class... P, class... A> void launch(dim3 g, dim3 b, size_t smem, void (*k)(P...), A &&...a) {
  std::tuple<void (*)(P...), P...> pk(k, static_cast<P>(a)...);
  launch_raw(
      g, b, smem,
      [](void *q) {
        auto &t = *(decltype(pk) *)q;
        std::apply([](auto f, auto &...x) { f(x...); }, t);
      },
      &pk);
}
// cuLaunchKernel's convention: params[i] points at argument i.
template <class... P, size_t... I> void call_params(void (*k)(P...), void **p, std::index_sequence<I...>) {
  k(*(std::remove_cvref_t<P> *)p[I]...);
}
template <class... P> void launch_params(dim3 g, dim3 b, size_t smem, void (*k)(P...), void **params) {
  struct C {
    void (*k)(P...);
    void **p;
  } c{k, params};
  launch_raw(
      g, b, smem,
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
#define IFL_EXPORT(name)                                                                                                         \
  extern "C" int name##__arg(int i) { return emu::arg_size(name, i); }                                                           \
  extern "C" void name##__emu(dim3 g, dim3 b, size_t smem, void **params) { emu::launch_params(g, b, smem, name, params); }
namespace emu {
EMU_NOTSAN inline void *static_smem(const void *site, size_t n, size_t al) {
  Block *b = B;
  for (int i = 0; i < b->nsites; i++)
    if (b->sites[i].first == site)
      return b->sites[i].second;
  size_t o = (b->st_used + al - 1) / al * al;
  b->st_used = o + n;
  if (b->st_used > 48 * 1024)
    die("static shared memory > 48 KiB");
  for (size_t i = 0; i < n; i++)
    ((volatile char *)b->st_map)[o + i] = (char)0xFF; // poison (NaN)
  if (b->nsites == 64)
    die("too many shared arrays");
  b->sites[b->nsites++] = {site, b->st_map + o};
  return b->st_map + o;
}
} // namespace emu
#define IFL_SHARED(TY, name, ...)                                                                                                \
  static const char name##_site = 0;                                                                                             \
  typedef TY name##_ty __VA_ARGS__;                                                                                              \
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
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_block() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __syncwarp(unsigned mask = ~0u) {
  int p;
  emu::warp_coll(mask, "__syncwarp", nullptr, p, true, emu::nolast);
}

namespace emu {
template <class V> EMU_NOTSAN inline V shfl(unsigned mask, const char *op, V v, int src, bool ok) {
  static_assert(sizeof(V) <= 8);
  Slot s;
  s.q[0] = 0;
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
  return std::min(32, b->n - T->warp * 32);
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
  auto *c = emu::warp_coll(m, "__ballot_sync", &s, p, false, [m](emu::Slot *in, emu::Slot *out) EMU_NOTSAN {
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
inline unsigned __activemask() { return emu::B->wp[emu::T->warp].alive; }
EMU_NOTSAN inline int __reduce_add_sync(unsigned m, int v) {
  emu::Slot s;
  s.q[0] = (unsigned)v;
  int p;
  auto *c = emu::warp_coll(m, "__reduce_add_sync", &s, p, false, [m](emu::Slot *in, emu::Slot *out) EMU_NOTSAN {
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
  else
    return std::atomic_ref<V>(*a).fetch_add(v, std::memory_order_relaxed);
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
using std::max;
using std::min;

// ---------------------------------------------------------------- tensor-core and async-copy wrappers
#include "ifl_intrin.cuh"
