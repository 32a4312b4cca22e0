/* The thread pool of a compiled model: the caller and threads-1 workers that run one function SPMD.
 *
 * A step is one ifl_pool_run; inside it the workers synchronize with ifl_barrier (ifl_kernel.h) and never leave C. A waiting
 * worker spins for IFL_SPIN_NS and then sleeps in the kernel. So a barrier costs nanoseconds on idle cores, and a preempted
 * worker delays the others only until the scheduler runs it again.
 *
 * Measured on two cores, unpinned, in steps per second; a step has 150 regions of 20 µs per worker.
 *   Idle machine: 305-311 for every spin time (one thread: 163).
 *   One worker computes 40 µs longer in every tenth region: this spin time 174-243; fixed 100 µs 217-274; fixed 2-10 µs
 *   90-185, since most such waits end in sleep.
 *   One busy loop on the machine: this spin time 104-117; fixed 10 µs 105-134, 50 µs 94-109, 100 µs 94-125, 200 µs 75-125;
 *   sched_yield after 5 µs 70-75; one thread 157.
 * If another program uses one core, two workers are slower than one for every kind of waiting, because the slower worker
 * determines the time. ifl_pool_adapt leaves a worker out instead: SmolLM2 decodes 243 tok/s alone, and 194 with one busy
 * loop (93 without ifl_pool_adapt). Endless spinning and pinning were far worse (2-4 and 17-24 against 50-97): pin workers
 * only on otherwise idle machines. */
#pragma once
#include "ifl_kernel.h"
#include <stdatomic.h>

/* Time that a waiting worker spins before it sleeps: longer than any region of a decode step and the engine's work
 * between two steps, much shorter than a scheduler time slice. */
#define IFL_SPIN_NS 100000
#define IFL_MAX_THREADS 1024

typedef void (*ifl_pool_fn)(void *arg, int tid, int threads);

/* Starts threads-1 workers. cpus is [threads] CPU numbers, or NULL; an entry below 0 leaves that worker unpinned.
 * Returns NULL when threads is outside 1…IFL_MAX_THREADS or when the system refuses a thread. */
ifl_pool *ifl_pool_open(int threads, const int32_t *cpus);

/* Calls fn(arg, tid, threads) on every worker; the calling thread is worker 0. It is pinned to cpus[0] only while fn
 * runs, because it belongs to the caller. Returns when all workers have returned. Not reentrant. */
void ifl_pool_run(ifl_pool *pool, ifl_pool_fn fn, void *arg);

/* Allows the pool to leave workers out of runs while other programs use their cores; the results of a run must then not
 * depend on the number of workers. ifl_pool_active returns the number of workers of the next run. */
void ifl_pool_adapt(ifl_pool *pool);
int ifl_pool_active(const ifl_pool *pool);

/* A thread's columns of a matmul, in groups. Three quarters of an equal share are its own, so that it reads their weights as one
 * stream. Threads that are done claim the rest in pieces, so that a temporarily slow core does not delay the others.
 * docs/decisions/031-claim-the-last-quarter.md compares the alternatives. */
typedef struct {
  int from, to;             /* current groups: from … to−1 */
  int own, rest;            /* end of its own share; start of the groups to claim */
  int groups, most, each;   /* total, maximum per call, per claimed piece */
  uint32_t before;          /* claims in the step before this region */
} ifl_columns;

static inline ifl_columns ifl_columns_of(int groups, int tid, int threads, int most, uint32_t before) {
  const int own = threads == 1 ? groups : groups * 3 / (4 * threads), rest = own * threads;
  const int each = (groups - rest + 4 * threads - 1) / (4 * threads);
  return (ifl_columns){tid * own, tid * own, (tid + 1) * own, rest, groups, most, each < 1 ? 1 : each < most ? each : most, before};
}

/* Reports whether there are more groups, and sets from and to. */
static inline int ifl_more_columns(ifl_columns *c, _Atomic uint32_t *claimed) {
  if (c->to < c->own) {
    c->from = c->to;
    c->to = c->own - c->from < c->most ? c->own : c->from + c->most;
    return 1;
  }
  c->from = c->rest + (int)(atomic_fetch_add_explicit(claimed, 1, memory_order_relaxed) - c->before) * c->each;
  if (c->from >= c->groups) return 0;
  c->to = c->groups - c->from < c->each ? c->groups : c->from + c->each;
  return 1;
}

/* The number of claims once every thread has found no group left. */
static inline uint32_t ifl_claimed_by(const ifl_columns *c, int threads) {
  return c->before + (uint32_t)((c->groups - c->rest + c->each - 1) / c->each + threads);
}

/* Stops and joins the workers. pool may be NULL. */
void ifl_pool_close(ifl_pool *pool);
