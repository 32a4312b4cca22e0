// fibers.cpp - runs the threads of emulated kernels (cuda_emu.hpp); a copy of it is linked to every model's kernels.
// One fiber per CUDA thread, hand-switched; blocks are spread over OS threads.
// A fiber runs uninterrupted between synchronization points, so each order of
// EMU_ORDER=fwd|rev|rand:<seed> is one legal interleaving; results must not depend on it.
// EMU_CPASYNC=lazy|eager: lazy completes a cp.async only when wait_group forces it.
// EMU_THREADS=n: OS threads.
#include "cuda_emu.hpp"
#include <sys/mman.h>
#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <vector>
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define EMU_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define EMU_ASAN 1
#endif

namespace emu {
constinit thread_local Block *B = nullptr;
constinit thread_local Thread *T = nullptr;

void die(const char *fmt, ...) {
  va_list a;
  va_start(a, fmt);
  fprintf(stderr, "cuda_emu: ");
  vfprintf(stderr, fmt, a);
  fputc('\n', stderr);
  fflush(stderr);
  abort();
}

extern "C" void emu_swap(void **save_sp, void *load_sp);
#if defined(__x86_64__)
asm(R"(
.pushsection .text
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
static void *seed_stack(char *top, void (*fn)()) {
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
static void *seed_stack(char *top, void (*fn)()) {
  uint64_t *p = (uint64_t *)((uintptr_t)top & ~15ull) - 22;
  memset(p, 0, 176);
  p[11] = (uint64_t)fn;
  return p;
}
#else
#error "add emu_swap for this CPU"
#endif


namespace {
constexpr size_t STACK = 128 << 10;
constexpr int MAXT = 1024;
enum State : uint8_t { READY, WAIT_WARP, WAIT_BLOCK, WAIT_MBARRIER, DONE };

struct Copy {
  void *d;
  const void *s;
};
// A bulk copy that has not completed.
struct Bulk {
  void *to;
  const void *from;
  uint32_t bytes;
  void *barrier;
};
// A wgmma that has not been waited for.
struct Wgmma {
  float *d;
  const uint32_t *a;
  uint64_t b;
  int n;
  bool done;
  std::vector<float> result;
};
struct Fiber : Thread {
  void *sp = nullptr;
  State st = DONE;
  uint32_t wmask = 0;
  const char *where = "";
  std::vector<Copy> cur;
  std::vector<std::vector<Copy>> groups;
  const void *barrier = nullptr;
  bool fence = false;
  size_t wgmmas = 0;
  std::vector<Wgmma> open;
  std::vector<std::vector<Wgmma>> batches;
  std::map<const void *, std::vector<uint32_t>> fenced; // registers at the last wgmma.fence
#ifdef EMU_TSAN
  void *fiber = nullptr;
#endif
#ifdef EMU_ASAN
  void *fake = nullptr;
  char *stk = nullptr;
#endif
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
Opts opts_from_env() {
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

struct Executor : Block { // per OS thread, reused for all blocks it runs
  Fiber th[MAXT];
  Warp wp[32];
  int nw = 0, nwait = 0, nalive = 0;
  void *main_sp = nullptr;
  char *stacks = nullptr;
  char *smem_map = nullptr;
  size_t smem_cap = 0;
  void (*fn)(void *) = nullptr;
  void *arg = nullptr;
  Opts o;
  uint64_t rng = 1;
  char *st_map = nullptr;
  size_t st_used = 0, st_fixed = 0; // bytes of shared variables; of those that the kernel declares
  int nsites = 0;
  struct {
    const void *first;
    void *second;
  } sites[64];
  int vote_or = 0, vote_and = 1, vote_cnt = 0, vote_gen = 0, vote_res[2][3] = {};
  std::vector<Bulk> bulk;
  std::vector<char> proxy; // dynamic shared memory as the async proxy sees it
  bool unfenced = false;
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
// The executor of this OS thread.
inline Executor *executing() { return (Executor *)B; }
inline Fiber *running() { return (Fiber *)T; }

EMU_NOTSAN static void switch_to(Fiber *from, Fiber *to) { // from/to null = scheduler
  Executor *b = executing();
  T = to;
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
static int pick(uint32_t m, Executor *b) {
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
EMU_NOTSAN static Fiber *next_ready(int warp) { // same warp first (or random), then the others
  Executor *b = executing();
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
EMU_NOTSAN static void deadlock() {
  Executor *b = executing();
  fprintf(stderr, "cuda_emu: DEADLOCK in block (%u,%u,%u): divergent or missing synchronization\n", b->bidx.x, b->bidx.y,
          b->bidx.z);
  for (int i = 0, shown = 0; i < b->n && shown < 40; i++)
    if (i == 0 || b->th[i].st != b->th[i - 1].st || b->th[i].where != b->th[i - 1].where) {
      shown++;
      const char *s[] = {"ready", "waits in warp op", "waits in block op", "waits for mbarrier", "exited"};
      fprintf(stderr, "  thread %d.. : %s %s mask=%08x\n", i, s[b->th[i].st], b->th[i].where, b->th[i].wmask);
    }
  abort();
}
EMU_NOTSAN static void block_release() {
  Executor *b = executing();
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
EMU_NOTSAN static bool complete_one();
// The next thread to run; bulk copies complete when there is none.
EMU_NOTSAN static Fiber *next_after(const Fiber *t) {
  Fiber *nx = next_ready(t->warp);
  while (!nx && complete_one())
    nx = next_ready(t->warp);
  return nx;
}
EMU_NOTSAN static void park(Fiber *t) {
  Fiber *nx = next_after(t);
  if (nx == t) {
    T = t;
    return;
  }
  if (!nx)
    deadlock();
  switch_to(t, nx);
}

} // namespace

EMU_NOTSAN int block_sync(const char *where, int pred, int kind) {
  Executor *b = executing();
  Fiber *t = running();
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
EMU_NOTSAN Coll *warp_coll(uint32_t mask, const char *op, const Slot *in, int &par, [[maybe_unused]] bool hb,
                           void (*last)(uint32_t, Slot *, Slot *)) {
  Fiber *t = running();
  Executor *b = executing();
  Warp &w = b->wp[t->warp];
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
  else if (c->op != op && strcmp(c->op, op))
    die("warp %d lane %d does %s while its peers do %s", t->warp, t->lane, op, c->op);
  par = c->gen & 1;
  if (in) // word by word: one wide load would wait for the stores of its words
    for (int i = 0; i < 3; i++)
      c->in[par][t->lane].q[i] = ((const volatile Slot *)in)->q[i];
#ifdef EMU_TSAN
  if (hb)
    __tsan_release(&c->hb);
#endif
  c->arrived |= 1u << t->lane;
  if (c->arrived == mask) {
    if (last != nolast)
      last(mask, c->in[par], c->out[par]);
    c->arrived = 0;
    c->gen++;
    c->pending = std::popcount(mask);
    w.ready |= mask; // st tells what a fiber waits for, and is read only when none is ready
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
uint32_t alive() { return executing()->wp[T->warp].alive; }

void copy_async(void *d, const void *s) {
  if (((uintptr_t)d | (uintptr_t)s) & 15)
    die("cp.async 16: misaligned, lane %d", T->lane);
  if (executing()->o.lazy)
    running()->cur.push_back({d, s});
  else
    memcpy(d, s, 16);
}
void copy_commit() {
  Fiber *t = running();
  t->groups.push_back(std::move(t->cur));
  t->cur.clear();
}
void copy_wait(size_t left) {
  auto &g = running()->groups;
  while (g.size() > left) {
    for (auto &c : g[0])
      memcpy(c.d, c.s, 16);
    g.erase(g.begin());
  }
}

} // namespace emu
#include "async.hpp"
namespace emu {
EMU_NOTSAN void *static_smem(const void *site, size_t n, size_t al) {
  Executor *b = executing();
  for (int i = 0; i < b->nsites; i++)
    if (b->sites[i].first == site)
      return b->sites[i].second;
  size_t o = (b->st_used + al - 1) / al * al;
  b->st_used = o + n;
  if (b->st_used > b->st_fixed)
    die("IFL_SHARED belongs into a kernel, which then reports its size");
  for (size_t i = 0; i < n; i++)
    ((volatile char *)b->st_map)[o + i] = (char)0xFF; // poison (NaN)
  if (b->nsites == 64)
    die("too many shared arrays");
  b->sites[b->nsites++] = {site, b->st_map + o};
  return b->st_map + o;
}

namespace {
EMU_NOTSAN void fiber_main() {
#ifdef EMU_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &executing()->main_stk, &executing()->main_sz);
#endif
  for (;;) {
    Executor *b = executing();
    Fiber *t = running();
    b->fn(b->arg);
    t = running();
    finished(t);
    t->st = DONE;
    t->where = "";
    b->nalive--;
    b->wp[t->warp].ready &= ~(1u << t->lane);
    b->wp[t->warp].alive &= ~(1u << t->lane);
    if (b->nalive && b->nwait == b->nalive)
      block_release();
    Fiber *nx = b->nalive ? next_after(t) : nullptr;
    if (!nx && b->nalive)
      deadlock();
    switch_to(t, nx);
  }
}
struct Pool {
  std::mutex mu;
  std::vector<Executor *> free;
};
static Pool &pool = *new Pool; // of this module: its fibers hold its thread-local variables; never destroyed
EMU_NOTSAN Executor *executor(const Opts &o) {
  Executor *mine = nullptr;
  {
    std::lock_guard l(pool.mu);
    if (!pool.free.empty()) {
      mine = pool.free.back();
      pool.free.pop_back();
    }
  }
  if (!mine) {
    mine = new Executor;
    mine->stacks =
        (char *)mmap(nullptr, (STACK + 4096) * MAXT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mine->stacks == MAP_FAILED)
      die("mmap stacks");
  }
  mine->o = o;
  mine->rng = o.seed * 0x9E3779B97F4A7C15ull | 1;
  return mine;
}
EMU_NOTSAN void run_block(Executor *b, dim3 bi) {
  B = b;
  b->bidx = bi;
  b->nwait = 0;
  b->nalive = b->n;
  if (b->smem)
    memset(b->smem_map, 0xFF, b->smem_cap); // poison: fp16/fp32 NaN
  b->proxy.assign(b->smem ? b->smem_map + b->smem_cap - b->smem : 0, (char)0xFF);
  b->unfenced = false;
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
    Fiber &t = b->th[i];
    t.lin = i;
    t.lane = i & 31;
    t.warp = i >> 5;
    if (!t.sp) {
      char *lo = b->stacks + (STACK + 4096) * i;
      mprotect(lo, 4096, PROT_NONE);
      t.sp = seed_stack(lo + 4096 + STACK - t.lane * 128, fiber_main); // in sets of the L1 cache of its own
#ifdef EMU_ASAN
      t.stk = lo + 4096;
#endif
#ifdef EMU_TSAN
      t.fiber = __tsan_create_fiber(0);
#endif
    }
    t.st = READY;
    t.cur.clear();
    t.groups.clear();
    t.fence = false, t.wgmmas = 0;
    t.fenced.clear();
    t.tid = dim3(i % b->bdim.x, i / b->bdim.x % b->bdim.y, i / (b->bdim.x * b->bdim.y));
#ifdef EMU_TSAN
    __tsan_release(&b->hb_block);
    __tsan_switch_to_fiber(t.fiber, 1);
    __tsan_acquire(&b->hb_block);
    __tsan_switch_to_fiber(b->main_fiber, 1);
#endif
  }
  switch_to(nullptr, next_ready(0));
  finished(b);
#ifdef EMU_TSAN
  for (int i = 0; i < b->n; i++) {
    __tsan_switch_to_fiber(b->th[i].fiber, 1);
    __tsan_release(&b->hb_block);
    __tsan_switch_to_fiber(b->main_fiber, 1);
  }
  __tsan_acquire(&b->hb_block);
#endif
}
} // namespace

void launch_raw(dim3 g, dim3 bd, size_t smem, size_t fixed, void (*fn)(void *), void *arg) {
  static Opts o0 = opts_from_env();
  Opts o = o0;
  size_t n = (size_t)bd.x * bd.y * bd.z, nb = (size_t)g.x * g.y * g.z;
  if (!n || n > MAXT)
    die("bad block size %zu", n);
  if (fixed > 48 * 1024)
    die("static shared memory %zu > 48 KiB", fixed);
  if (smem + fixed > 227 * 1024)
    die("shared memory %zu > 227 KiB", smem + fixed);
  std::atomic<size_t> next{0};
  auto work = [&] {
    Executor *b = executor(o);
    b->n = (int)n;
    b->nw = (int)((n + 31) / 32);
    b->bdim = bd;
    b->gdim = g;
    b->st_fixed = fixed;
    b->fn = fn;
    b->arg = arg;
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
}
} // namespace emu
