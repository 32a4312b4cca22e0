/* The thread team of a compiled model: the caller and threads-1 workers that run one function SPMD.
 *
 * A step is one ifl_team_run; inside it the members meet at ifl_barrier (ifl_kernel.h) and never leave C. A member that
 * waits spins for IFL_SPIN_NS and then sleeps in the kernel, so a step costs nanoseconds a barrier on idle cores, and a
 * member whose core is taken away holds the others up only for as long as the scheduler does.
 *
 * Measured on two cores with steps of 150 regions of 20 µs a member, unpinned, in steps a second. Nothing else running:
 * 305-311 whatever the spin (one thread: 163); with 40 µs of one member in every tenth region: this 174-243, a fixed spin
 * of 100 µs 217-274, of 2-10 µs 90-185, since most such waits end in sleep. One busy loop besides: this 104-117, fixed
 * 50 µs 94-109, 100 µs 94-125, 200 µs 75-125, 10 µs 105-134, sched_yield after 5 µs 70-75; one thread 157. So with a core
 * taken away two members are slower than one, and no way of waiting changes that: equal shares end with the slower member.
 * What does is to leave a member out (ifl_team_adapt): SmolLM2 decodes 243 tokens/s alone, with one busy loop 194 (before: 93).
 * Spinning without end and pinning were far worse (2-4 and 17-24 where this had 50-97): pin only where nothing else runs. */
#pragma once
#include "ifl_kernel.h"
#include <stdatomic.h>

/* How long a waiting member spins before it sleeps: longer than any region of a decode step and than the engine's work
 * between two steps, much shorter than a scheduler's slice. */
#define IFL_SPIN_NS 100000
#define IFL_MAX_THREADS 1024

typedef void (*ifl_team_fn)(void *arg, int tid, int threads);

/* Starts threads-1 workers. cpus is [threads] processor numbers, or NULL; an entry below 0 leaves that member unpinned.
 * Returns NULL when threads is outside 1…IFL_MAX_THREADS or when the system refuses a thread. */
ifl_team *ifl_team_open(int threads, const int32_t *cpus);

/* Calls fn(arg, tid, threads) on every member; the calling thread is member 0. It is pinned to cpus[0] only while fn
 * runs, because it belongs to the caller. Returns when all members have returned. Not reentrant. */
void ifl_team_run(ifl_team *team, ifl_team_fn fn, void *arg);

/* Lets the team leave members out of runs while other programs take their cores; what a run computes must then not
 * depend on the number of members. ifl_team_members is how many the next run will have. */
void ifl_team_adapt(ifl_team *team);
int ifl_team_members(const ifl_team *team);

/* How many groups of columns of a matmul a member takes at once, at most `most`: so few that one whose processor is slower
 * for a moment is not waited for, and so many that a crowd of members does not queue for them. With equal shares the members
 * of a step of 16 tokens waited a fifth of it for each other, on two processors of a machine that others use too. */
static inline int ifl_piece(int groups, int threads, int most) {
  const int pieces = threads * (threads < 8 ? 8 : threads < 64 ? 64 / threads : 1), each = (groups + pieces - 1) / pieces;
  return each < most ? each : most;
}

/* The number of the next piece. A member draws until it gets one beyond the last: `before`, what had been drawn in the step
 * when the region began, grows by the pieces and the members, as all of them know. */
static inline int ifl_draw(_Atomic uint32_t *drawn, uint32_t before) {
  return (int)(atomic_fetch_add_explicit(drawn, 1, memory_order_relaxed) - before);
}

/* Stops and joins the workers. team may be NULL. */
void ifl_team_close(ifl_team *team);
