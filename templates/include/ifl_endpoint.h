/* One rank's end of a transport: the table that the model's step calls, what it counts, and who could not be reached. The
 * transports (templates/comm) begin their own structs with it. */
#pragma once
#include "ifl_comm.h"
#include <stdatomic.h>
#include <time.h>

enum { IFL_SLOTS = 4 }; /* parts of a call are read until the call after the next: three calls' parts; counts wrap at a power of two */

/* Where a rank stands. Ranks of a tensor group follow each other: first … first + tp_size - 1. */
typedef struct ifl_place {
  int32_t rank, ranks;
  int32_t first, tp_size;
} ifl_place;

/* What a rank has said so far: its own parts of exchanges, and what it sent to a next stage. */
typedef struct ifl_counts {
  int64_t exchanges, exchanged; /* calls, and bytes of its parts */
  int64_t sends, sent;
  int64_t waited_ns; /* for earlier stages, within steps */
} ifl_counts;

typedef struct ifl_endpoint {
  ifl_comm table; /* self is the endpoint */
  ifl_place place;
  int64_t spin_ns;            /* how long a wait spins before it yields the processor */
  _Atomic int64_t timeout_ns; /* how long a rank may say nothing in a step */
  _Atomic int32_t failed;     /* the rank that could not be reached, -1: none */
  _Atomic int64_t exchanges, exchanged, sends, sent, waited_ns;
} ifl_endpoint;

static inline int64_t ifl_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* How long a wait has lasted. An interval in which the waiting thread itself did not run counts as IFL_LOOK_NS: a program
 * that was stopped for a minute, with all its ranks or alone, has not heard nothing for a minute. */
#define IFL_LOOK_NS 100000000
typedef struct ifl_wait {
  int64_t last, waited;
} ifl_wait;

static inline int64_t ifl_waiting(ifl_wait *w) {
  const int64_t now = ifl_now_ns();
  if (w->last) w->waited += now - w->last < IFL_LOOK_NS ? now - w->last : IFL_LOOK_NS;
  w->last = now;
  return w->waited;
}

static inline void ifl_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

static inline void ifl_count(ifl_endpoint *e, int64_t exchanged, int64_t sent) {
  if (exchanged >= 0) {
    atomic_fetch_add_explicit(&e->exchanges, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->exchanged, exchanged, memory_order_relaxed);
  }
  if (sent >= 0) {
    atomic_fetch_add_explicit(&e->sends, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->sent, sent, memory_order_relaxed);
  }
}

static inline void ifl_waited(ifl_endpoint *e, int64_t since_ns) {
  atomic_fetch_add_explicit(&e->waited_ns, ifl_now_ns() - since_ns, memory_order_relaxed);
}

/* What the runtime asks of an endpoint, from any thread. */
void ifl_comm_counts(const ifl_comm *comm, ifl_counts *counts);
int32_t ifl_comm_failed(const ifl_comm *comm);
/* Changes how long a silent rank is waited for. */
void ifl_comm_patience(const ifl_comm *comm, int64_t timeout_ns);
