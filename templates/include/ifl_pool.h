/* The thread pool of a compiled model: the caller and threads-1 workers that run one function SPMD.
 *
 * A step is one ifl_pool_run; inside it the workers meet at ifl_barrier (ifl_kernel.h) and never leave C. A worker that
 * waits spins for IFL_SPIN_NS and then sleeps in the kernel, so a step costs nanoseconds a barrier on idle cores, and a
 * worker whose core is taken away holds the others up only for as long as the scheduler does.
 *
 * Measured on two cores with steps of 150 regions of 20 µs a worker, unpinned, in steps a second. Nothing else running:
 * 305-311 whatever the spin (one thread: 163); with 40 µs of one worker in every tenth region: this 174-243, a fixed spin
 * of 100 µs 217-274, of 2-10 µs 90-185, since most such waits end in sleep. One busy loop besides: this 104-117, fixed
 * 50 µs 94-109, 100 µs 94-125, 200 µs 75-125, 10 µs 105-134, sched_yield after 5 µs 70-75; one thread 157. So with a core
 * taken away two workers are slower than one, and no way of waiting changes that: equal shares end with the slower worker.
 * What does is to leave a worker out (ifl_pool_adapt): SmolLM2 decodes 243 tokens/s alone, with one busy loop 194 (before: 93).
 * Spinning without end and pinning were far worse (2-4 and 17-24 where this had 50-97): pin only where nothing else runs. */
#pragma once
#include "ifl_kernel.h"
#include <stdatomic.h>

/* How long a waiting worker spins before it sleeps: longer than any region of a decode step and than the engine's work
 * between two steps, much shorter than a scheduler's slice. */
#define IFL_SPIN_NS 100000
#define IFL_MAX_THREADS 1024

typedef void (*ifl_pool_fn)(void *arg, int tid, int threads);

/* Starts threads-1 workers. cpus is [threads] processor numbers, or NULL; an entry below 0 leaves that worker unpinned.
 * Returns NULL when threads is outside 1…IFL_MAX_THREADS or when the system refuses a thread. */
ifl_pool *ifl_pool_open(int threads, const int32_t *cpus);

/* Calls fn(arg, tid, threads) on every worker; the calling thread is worker 0. It is pinned to cpus[0] only while fn
 * runs, because it belongs to the caller. Returns when all workers have returned. Not reentrant. */
void ifl_pool_run(ifl_pool *pool, ifl_pool_fn fn, void *arg);

/* Lets the pool leave workers out of runs while other programs take their cores; what a run computes must then not
 * depend on the number of workers. ifl_pool_active is how many the next run will have. */
void ifl_pool_adapt(ifl_pool *pool);
int ifl_pool_active(const ifl_pool *pool);

/* A thread's columns of a matmul, in groups. Three quarters of an equal share are its own, so that it reads their weights as one
 * stream; the rest is claimed in pieces by whoever is done, so that a thread whose core is slower for a moment is not waited
 * for. (docs/decisions/031-claim-the-last-quarter.md has what other ways cost.) */
typedef struct {
  int from, to;             /* what to do now */
  int own, rest;            /* where its own share ends, and where begins what is claimed */
  int groups, most, each;   /* all there are, the most a call takes, those of a piece */
  uint32_t before;          /* what had been claimed in the step when the region began */
} ifl_columns;

static inline ifl_columns ifl_columns_of(int groups, int tid, int threads, int most, uint32_t before) {
  const int own = threads == 1 ? groups : groups * 3 / (4 * threads), rest = own * threads;
  const int each = (groups - rest + 4 * threads - 1) / (4 * threads);
  return (ifl_columns){tid * own, tid * own, (tid + 1) * own, rest, groups, most, each < 1 ? 1 : each < most ? each : most, before};
}

/* Whether there are more; then they are at from … to−1. */
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

/* What will have been claimed when all threads have found nothing left. */
static inline uint32_t ifl_claimed_by(const ifl_columns *c, int threads) {
  return c->before + (uint32_t)((c->groups - c->rest + c->each - 1) / c->each + threads);
}

/* Stops and joins the workers. pool may be NULL. */
void ifl_pool_close(ifl_pool *pool);
