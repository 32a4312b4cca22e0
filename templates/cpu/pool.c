/* The thread pool: see ifl_pool.h. Threads sleep on futexes on Linux and on condition variables elsewhere. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU affinity */
#endif
#include "ifl_pool.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

/* A word that workers wait on; each release increments its value. It has a cache line pair of its own, so that spinning
 * workers do not slow the arrival of others. */
typedef struct {
  _Alignas(128) _Atomic uint32_t value;
  _Atomic uint32_t sleepers;
} wait_word;

typedef struct {
  ifl_pool *pool;
  int tid;
  pthread_t thread;
  _Alignas(64) _Atomic int cpu; /* CPU on which it last ran, or -1 */
} worker;

struct ifl_pool {
  wait_word epoch; /* one release per run */
  wait_word phase; /* one release per barrier */
  _Alignas(128) _Atomic uint32_t arrived;
  _Alignas(128) _Atomic int64_t spin_ns; /* current spin time of a barrier */
  _Atomic int64_t long_ns;               /* time that workers slept at barriers since adapt last read it */
  _Alignas(128) int threads;
  int active;  /* workers of a run */
  int adaptive;
  int64_t run_ns, lost_ns, apart_ns, retry_ns; /* of adapt */
  int closing;
  int64_t max_spin_ns;
  int32_t cpu0;
  int pinned;
  ifl_pool_fn fn;
  void *arg;
  worker *workers; /* [threads]; 0 is the caller and has no thread of its own */
#ifndef __linux__
  pthread_mutex_t lock;
  pthread_cond_t changed;
#endif
};

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Sleeps until w->value may differ from old; spurious wake-ups are possible. */
static void sleep_on(ifl_pool *t, wait_word *w, uint32_t old) {
  atomic_fetch_add(&w->sleepers, 1);
#ifdef __linux__
  (void)t;
  syscall(SYS_futex, &w->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
#else
  pthread_mutex_lock(&t->lock);
  while (atomic_load(&w->value) == old) pthread_cond_wait(&t->changed, &t->lock);
  pthread_mutex_unlock(&t->lock);
#endif
  atomic_fetch_sub(&w->sleepers, 1);
}

/* The release and the read of the number of sleepers are sequentially consistent, and so are a sleeper's increment and its
 * check of the value. Therefore one of the two sees the other, and no wake-up is lost. */
static void release_at(ifl_pool *t, wait_word *w, uint32_t value) {
  atomic_store(&w->value, value);
  if (atomic_load(&w->sleepers) == 0) return;
#ifdef __linux__
  (void)t;
  syscall(SYS_futex, &w->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
#else
  pthread_mutex_lock(&t->lock);
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
#endif
}

static void release(ifl_pool *t, wait_word *w) { release_at(t, w, atomic_load(&w->value) + 1); }

/* The epoch's value holds the run count in the high bits and the number of active workers in the low bits. So a worker
 * learns from the single word that wakes it whether it takes part in the run, however late it reads the word. */
#define WORKER_BITS 11
static void start_run(ifl_pool *t, int active) {
  uint32_t runs = atomic_load(&t->epoch.value) >> WORKER_BITS;
  release_at(t, &t->epoch, (runs + 1) << WORKER_BITS | (uint32_t)active);
}

#ifdef __linux__
typedef cpu_set_t cpu_mask;
static int keep_mask(cpu_mask *m) { return sched_getaffinity(0, sizeof *m, m) == 0; }
static void set_mask(const cpu_mask *m) { (void)sched_setaffinity(0, sizeof *m, m); }

/* The scheduler often wakes a thread on the core of its waker. Two workers on one core take twice as long, and load
 * balancing is too slow for a step of milliseconds. So a worker that finds an earlier one on its core moves to another
 * core, and then restores its affinity mask. */
static void leave_shared_core(ifl_pool *t, int tid) {
  if (t->pinned) return;
  cpu_mask own, free_ones;
  int shared = 0;
  const int here = sched_getcpu();
  for (int i = 0; i < tid && !shared; i++) shared = here >= 0 && atomic_load_explicit(&t->workers[i].cpu, memory_order_relaxed) == here;
  if (shared && keep_mask(&own)) {
    free_ones = own;
    for (int i = 0; i < t->threads; i++) {
      const int cpu = atomic_load_explicit(&t->workers[i].cpu, memory_order_relaxed);
      if (i != tid && cpu >= 0 && cpu < CPU_SETSIZE) CPU_CLR(cpu, &free_ones);
    }
    if (CPU_COUNT(&free_ones) > 0) {
      set_mask(&free_ones);
      set_mask(&own);
    }
  }
  atomic_store_explicit(&t->workers[tid].cpu, sched_getcpu(), memory_order_relaxed);
}
#else
static void leave_shared_core(ifl_pool *t, int tid) { (void)t, (void)tid; }
#endif

/* Waits until w->value differs from old: spins for spin_ns, then sleeps. Returns the wait in ns if it slept, else 0. It reads the clock
 * once in 16 pauses, because reading it costs as much as a barrier. */
static int64_t wait_for(ifl_pool *t, wait_word *w, uint32_t old, int64_t spin_ns) {
  int64_t end = 0;
  int slept = 0;
  for (uint32_t n = 1; atomic_load_explicit(&w->value, memory_order_acquire) == old; n++) {
    relax();
    if (n % 16) continue;
    int64_t now = now_ns();
    if (!end) end = now + spin_ns;
    if (now < end) continue;
    sleep_on(t, w, old);
    slept = 1;
  }
  return slept ? now_ns() - (end - spin_ns) : 0;
}

/* Shortens the spin time after a wait that ended in sleep and lengthens it after one that did not. If two workers share a
 * core, a spinning one delays the worker for which it waits, so each barrier would cost the whole spin time. The minimum is
 * a quarter: a spin time below the usual wait would always end in sleep and never grow again, and a wake-up costs more
 * than such a wait. */
static void wait_phase(ifl_pool *t, uint32_t phase) {
  int64_t spin = atomic_load_explicit(&t->spin_ns, memory_order_relaxed), next = spin;
  int64_t waited = wait_for(t, &t->phase, phase, spin);
  if (waited > 0) {
    atomic_fetch_add_explicit(&t->long_ns, waited, memory_order_relaxed);
    next = spin / 2 > t->max_spin_ns / 4 ? spin / 2 : t->max_spin_ns / 4;
  } else if (spin < t->max_spin_ns) {
    next = spin + spin / 8 + 1;
  }
  if (next > t->max_spin_ns) next = t->max_spin_ns;
  if (next != spin) atomic_store_explicit(&t->spin_ns, next, memory_order_relaxed);
}

void ifl_barrier(ifl_pool *t) {
  const uint32_t active = (uint32_t)t->active; /* read before arriving: the caller may change it once all workers have left */
  if (active == 1) return;
  uint32_t phase = atomic_load_explicit(&t->phase.value, memory_order_relaxed);
  if (atomic_fetch_add(&t->arrived, 1) + 1 == active) {
    atomic_store_explicit(&t->arrived, 0, memory_order_relaxed); /* no worker arrives again before the release below */
    release(t, &t->phase);
  } else {
    wait_phase(t, phase);
  }
}

static void *worker_main(void *p) {
  worker *m = p;
  ifl_pool *t = m->pool;
  int64_t spin = t->max_spin_ns;
  for (uint32_t seen = 0;;) {
    const int64_t slept = wait_for(t, &t->epoch, seen, spin);
    seen = atomic_load(&t->epoch.value);
    if (t->closing) return NULL;
    const int active = (int)(seen & ((1u << WORKER_BITS) - 1));
    /* A worker that is left out does not spin. Neither does one that slept before this run: the caller probably works as
     * long between the next two runs, and may need the core. */
    spin = m->tid < active && slept <= t->max_spin_ns ? t->max_spin_ns : 0;
    if (m->tid >= active) continue;
    /* A woken worker preempts threads that started on its core meanwhile. They finish soon, but without sched_yield would
     * wait for the next scheduler tick: 4 ms at 250 Hz. */
    if (slept) sched_yield();
    leave_shared_core(t, m->tid);
    t->fn(t->arg, m->tid, active);
    ifl_barrier(t);
  }
}

/* Shares of work are equal, so a worker whose core other programs use delays all workers, and fewer workers are faster.
 * adapt sums the time that a window of runs lost to long waits. If the loss exceeds one worker's share of the work, and at
 * least a third of the time, it leaves one worker out for a while. That time doubles with every retry that shows no
 * change. The window must be longer than a burst of a server's other work: with a window of 100 ms, simultaneous requests
 * left a SmolLM2 server on one of two cores for 300 ms, which cost a tenth of its tok/s. */
static void adapt(ifl_pool *t, int64_t took) {
  enum { WINDOW = 500000000, FIRST = 300000000, MOST = 8 };
  t->run_ns += took;
  t->lost_ns += atomic_exchange(&t->long_ns, 0);
  if (t->active < t->threads) {
    t->apart_ns += took;
    if (t->apart_ns >= t->retry_ns) {
      t->active = t->threads;
      t->apart_ns = t->run_ns = t->lost_ns = 0;
      return;
    }
  }
  if (t->run_ns < WINDOW || t->active == 1) return;
  if (t->lost_ns / (t->active - 1) > t->run_ns / (t->active < 3 ? t->active : 3)) {
    if (t->active == t->threads) {
      t->retry_ns = t->retry_ns < FIRST ? FIRST : t->retry_ns < (int64_t)MOST * FIRST ? 2 * t->retry_ns : t->retry_ns;
    }
    t->active--;
    t->apart_ns = 0;
  } else if (t->active == t->threads) {
    t->retry_ns = 0;
  }
  t->run_ns = t->lost_ns = 0;
}

#ifdef __linux__
static int pinned_mask(int32_t cpu, cpu_mask *m) {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return 0;
  CPU_ZERO(m);
  CPU_SET(cpu, m);
  return 1;
}
static int usable_cpus(void) {
  cpu_mask m;
  return keep_mask(&m) ? CPU_COUNT(&m) : 1;
}
static int start_thread(worker *m, int32_t cpu) {
  pthread_attr_t attr;
  cpu_mask mask;
  if (pthread_attr_init(&attr)) return -1;
  if (pinned_mask(cpu, &mask)) pthread_attr_setaffinity_np(&attr, sizeof mask, &mask);
  int rc = pthread_create(&m->thread, &attr, worker_main, m);
  pthread_attr_destroy(&attr);
  return rc ? pthread_create(&m->thread, NULL, worker_main, m) : 0; /* the CPU is not in the affinity mask: run unpinned */
}
#else
typedef int cpu_mask;
static int keep_mask(cpu_mask *m) { (void)m; return 0; }
static void set_mask(const cpu_mask *m) { (void)m; }
static int pinned_mask(int32_t cpu, cpu_mask *m) { (void)cpu; (void)m; return 0; }
static int usable_cpus(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (int)n : 1;
}
static int start_thread(worker *m, int32_t cpu) { (void)cpu; return pthread_create(&m->thread, NULL, worker_main, m); }
#endif

/* Starts workers 1…threads-1 with all signals blocked, because a signal must be delivered to a thread of the Go runtime.
 * Returns the number of workers, including the caller. */
static int start_workers(ifl_pool *t, const int32_t *cpus) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int n = 1;
  for (; n < t->threads; n++) {
    t->workers[n].pool = t;
    t->workers[n].tid = n;
    if (start_thread(&t->workers[n], cpus ? cpus[n] : -1)) break;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return n;
}

static void stop(ifl_pool *t, int started) {
  t->closing = 1;
  start_run(t, 0);
  for (int i = 1; i < started; i++) pthread_join(t->workers[i].thread, NULL);
#ifndef __linux__
  pthread_cond_destroy(&t->changed);
  pthread_mutex_destroy(&t->lock);
#endif
  free(t->workers);
  free(t);
}

ifl_pool *ifl_pool_open(int threads, const int32_t *cpus) {
  if (threads < 1 || threads > IFL_MAX_THREADS) return NULL;
  ifl_pool *t = aligned_alloc(128, sizeof *t);
  if (!t) return NULL;
  memset(t, 0, sizeof *t);
  t->threads = t->active = threads;
  t->cpu0 = cpus ? cpus[0] : -1;
  t->pinned = t->cpu0 >= 0;
  /* With more workers than CPUs, a spinning worker delays one that has work. */
  t->max_spin_ns = threads <= usable_cpus() ? IFL_SPIN_NS : 0;
  t->spin_ns = t->max_spin_ns;
  t->workers = aligned_alloc(64, (size_t)threads * sizeof *t->workers);
  if (!t->workers) {
    free(t);
    return NULL;
  }
  memset(t->workers, 0, (size_t)threads * sizeof *t->workers);
  for (int i = 0; i < threads; i++) t->workers[i].cpu = -1;
#ifndef __linux__
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->changed, NULL);
#endif
  int started = start_workers(t, cpus);
  if (started == threads) return t;
  stop(t, started);
  return NULL;
}

void ifl_pool_run(ifl_pool *t, ifl_pool_fn fn, void *arg) {
  if (t->threads == 1 && t->cpu0 < 0) {
    fn(arg, 0, 1);
    return;
  }
  cpu_mask own, pinned;
  int pin = pinned_mask(t->cpu0, &pinned) && keep_mask(&own);
  if (pin) set_mask(&pinned);
  t->fn = fn;
  t->arg = arg;
  const int64_t start = t->adaptive ? now_ns() : 0;
  if (t->active > 1) {
    leave_shared_core(t, 0);
    start_run(t, t->active);
  }
  fn(arg, 0, t->active);
  ifl_barrier(t);
  if (t->adaptive) adapt(t, now_ns() - start);
  if (pin) set_mask(&own);
}

int ifl_pool_active(const ifl_pool *t) { return t->active; }

void ifl_pool_adapt(ifl_pool *t) { t->adaptive = t->threads > 1; }

void ifl_pool_close(ifl_pool *t) {
  if (t) stop(t, t->threads);
}
