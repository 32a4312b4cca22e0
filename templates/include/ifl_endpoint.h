/* One rank's endpoint of a transport: the table that the model's step calls, counters, and the failed rank. The structs of
 * the transports (templates/comm) start with it. */
#pragma once
#include "ifl_comm.h"
#include <stdatomic.h>
#include <time.h>

enum { IFL_SLOTS = 4 }; /* parts are readable until the call after the next, so 3 are in use; a power of two because counters wrap */

/* The place of a rank. The ranks of a TP group are consecutive: first … first + tp_size - 1. */
typedef struct ifl_place {
  int32_t rank, ranks;
  int32_t first, tp_size;
} ifl_place;

/* Traffic of a rank: its own parts of exchanges, and bytes sent to the next PP stage. */
typedef struct ifl_counts {
  int64_t exchanges, exchanged; /* calls; bytes of its parts */
  int64_t sends, sent;
  int64_t waited_ns; /* wait for earlier stages within steps */
} ifl_counts;

typedef struct ifl_endpoint {
  ifl_comm table; /* self is the endpoint */
  ifl_place place;
  int64_t spin_ns;            /* time that a wait spins before it yields the core */
  _Atomic int64_t timeout_ns; /* maximum time without a message from a rank within a step */
  _Atomic int32_t failed;     /* the rank that failed, -1: none */
  _Atomic int64_t exchanges, exchanged, sends, sent, waited_ns;
} ifl_endpoint;

static inline int64_t ifl_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The duration of a wait. An interval in which the waiting thread did not run counts as IFL_LOOK_NS at most, so that
 * stopping the program for a minute does not make its waits time out. */
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

/* Functions for the runtime, callable from any thread. */
void ifl_comm_counts(const ifl_comm *comm, ifl_counts *counts);
int32_t ifl_comm_failed(const ifl_comm *comm);
/* Sets the timeout of waits. */
void ifl_comm_patience(const ifl_comm *comm, int64_t timeout_ns);
