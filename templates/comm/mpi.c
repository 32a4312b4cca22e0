/* The transport between processes. It uses MPI's point-to-point calls, so that it can name the rank that does not respond. The
 * library is not linked: the runtime passes the addresses of its functions. All calls come from one thread of the process.
 *
 * A waiting rank spins on MPI_Test, then yields its core, then sleeps. After a while it sends the others the rank that it
 * waits for, so that all ranks report the one that failed and not one that itself waits. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ifl_endpoint.h"
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* The functions of an MPI library. Handles are pointers in some libraries and ints in others; both are passed as uintptr_t. */
typedef struct ifl_mpi_calls {
  int (*isend)(const void *data, int count, uintptr_t type, int to, int tag, uintptr_t comm, void *request);
  int (*irecv)(void *data, int count, uintptr_t type, int from, int tag, uintptr_t comm, void *request);
  int (*test)(void *request, int *flag, void *status);
  int (*iprobe)(int from, int tag, uintptr_t comm, int *flag, void *status);
  int (*get_count)(const void *status, uintptr_t type, int *count);
  uintptr_t comm, byte;
} ifl_mpi_calls;

/* Message tags. The runtime's tags (steps, results) start at IFL_TAG_OWN. */
enum { IFL_TAG_PART = 1, IFL_TAG_STAGE = 2, IFL_TAG_NEWS = 3, IFL_TAG_OWN = 16 };

enum { MAX_TP_SIZE = 64 };
typedef struct {
  _Alignas(16) uint8_t bytes[64]; /* at least as large as any library's MPI_Status */
} status;

typedef union {
  void *pointer;
  int number;
  uint64_t word;
} request;

typedef struct {
  uint8_t *data;
  int64_t room;
} buffer;

/* Messages in flight to a rank: copies, so that the sender can continue while the receiver computes an earlier step. */
enum { QUEUE = 4 };
typedef struct {
  buffer data[QUEUE];
  request on_way[QUEUE];
  uint8_t busy[QUEUE];
  uint32_t sent;
} outbox;

/* A notice from a rank: the rank for which it waits, or the rank that it has declared failed. */
typedef struct {
  int32_t rank, gone;
} news;

/* Notices in flight to a rank; they must not change until they are sent. */
typedef struct {
  news data;
  request on_way;
  uint8_t busy;
} notice;

typedef struct ifl_mpi {
  ifl_endpoint end; /* first: the table's self is this struct */
  ifl_mpi_calls mpi;
  uint32_t calls;
  buffer *slots;      /* [IFL_SLOTS][tp_size] */
  outbox *outboxes;   /* [ranks] */
  int32_t *waits_for; /* [ranks] last notice of each rank, or -1 */
  int64_t *said_ns;   /* [ranks] time of that notice */
  notice *notices;    /* [ranks][2] the rank for which this one waits; the rank that it declared failed, sent once */
} ifl_mpi;

#define NEWS_NS 1000000000 /* interval between the notices of a waiting rank */
#define YIELD_NS 5000000   /* time that it yields before it sleeps */

static int32_t give_up(ifl_mpi *m, int32_t rank);

/* Reports whether a notice has been sent and its buffer is free. */
static int left(ifl_mpi *m, notice *n) {
  int done = 0;
  status st;
  if (n->busy && !m->mpi.test(&n->on_way, &done, &st) && done) n->busy = 0;
  return !n->busy;
}

/* Sends a notice without waiting for delivery. It skips ranks to which the previous notice is still in flight. */
static void tell(ifl_mpi *m, int32_t rank, int32_t gone) {
  for (int32_t r = 0; r < m->end.place.ranks; r++) {
    notice *n = &m->notices[2 * r + gone];
    if (r == m->end.place.rank || r == rank || !left(m, n)) continue;
    n->data = (news){rank, gone};
    n->on_way.word = 0;
    n->busy = !m->mpi.isend(&n->data, sizeof n->data, m->mpi.byte, r, IFL_TAG_NEWS, m->mpi.comm, &n->on_way);
    left(m, n); /* a message this small usually completes at once */
  }
}

/* Receives the notices of other ranks. -1: one of them has declared a rank failed. */
static int32_t listen(ifl_mpi *m) {
  for (int32_t r = 0; r < m->end.place.ranks; r++) {
    for (;;) {
      int there = 0, done = 0;
      status st;
      news n;
      if (r == m->end.place.rank || m->mpi.iprobe(r, IFL_TAG_NEWS, m->mpi.comm, &there, &st) || !there) break;
      request q = {.word = 0};
      if (m->mpi.irecv(&n, sizeof n, m->mpi.byte, r, IFL_TAG_NEWS, m->mpi.comm, &q)) break;
      while (!done)
        if (m->mpi.test(&q, &done, &st)) return -1;
      if (n.rank < 0 || n.rank >= m->end.place.ranks) continue;
      if (n.gone) {
        atomic_store(&m->end.failed, n.rank);
        return -1;
      }
      m->waits_for[r] = n.rank;
      m->said_ns[r] = ifl_now_ns();
    }
  }
  return 0;
}

/* Declares a rank that does not respond failed, or the rank for which that one recently reported to wait. Returns -1. */
static int32_t give_up(ifl_mpi *m, int32_t rank) {
  const int64_t now = ifl_now_ns();
  for (int32_t i = 0; i < m->end.place.ranks; i++) {
    if (m->waits_for[rank] < 0 || now - m->said_ns[rank] > 3 * (int64_t)NEWS_NS || m->waits_for[rank] == m->end.place.rank) break;
    rank = m->waits_for[rank];
  }
  int32_t none = -1;
  if (atomic_compare_exchange_strong(&m->end.failed, &none, rank)) tell(m, rank, 1);
  return -1;
}

/* The state of a wait. */
typedef struct {
  ifl_wait time;
  int64_t told_ns;
} wait_state;

/* One iteration of waiting for rank `whom`. -1: the timeout has passed, or a rank has failed. */
static int32_t pause_for(ifl_mpi *m, wait_state *w, int32_t whom) {
  const int64_t waited = ifl_waiting(&w->time);
  if (waited < m->end.spin_ns) {
    ifl_relax();
    return 0;
  }
  if (waited > atomic_load(&m->end.timeout_ns)) return give_up(m, whom);
  if (waited < YIELD_NS) {
    sched_yield();
    return 0;
  }
  if (listen(m)) return -1;
  if (waited - w->told_ns > NEWS_NS) {
    tell(m, whom, 0);
    w->told_ns = waited;
  }
  const struct timespec t = {0, waited < 100000000 ? 50000 : 500000};
  nanosleep(&t, NULL);
  return 0;
}

/* Waits for an operation that depends on rank `whom`. */
static int32_t finish(ifl_mpi *m, request *q, int32_t whom) {
  wait_state w = {{0, 0}, 0};
  for (uint32_t n = 1;; n++) {
    int done = 0;
    status st;
    if (m->mpi.test(q, &done, &st)) return give_up(m, whom);
    if (done) return 0;
    if (n % 16 == 0 && pause_for(m, &w, whom)) return -1;
  }
}

static int32_t usable(const ifl_mpi *m, int32_t rank, int64_t bytes) {
  return rank >= 0 && rank < m->end.place.ranks && rank != m->end.place.rank && bytes >= 0 && bytes <= INT_MAX && atomic_load(&m->end.failed) < 0;
}

static void *room(buffer *b, int64_t bytes) {
  if (bytes > b->room || !b->data) {
    const int64_t n = (bytes + 4096) & ~(int64_t)4095;
    free(b->data);
    b->data = aligned_alloc(64, (size_t)n);
    b->room = b->data ? n : 0;
  }
  return b->data;
}

/* Sends and receives messages with any tag for the runtime, on the rank's thread only. Up to four messages may be in flight
 * to a rank; a fifth send waits until one has left. */
int32_t ifl_mpi_put(const ifl_comm *comm, int32_t to, int32_t tag, const void *data, int64_t bytes) {
  ifl_mpi *m = comm->self;
  if (!usable(m, to, bytes)) return -1;
  outbox *o = &m->outboxes[to];
  const int at = (int)(o->sent % QUEUE);
  if (o->busy[at] && finish(m, &o->on_way[at], to)) return -1;
  o->busy[at] = 0;
  if (!room(&o->data[at], bytes)) return give_up(m, m->end.place.rank);
  memcpy(o->data[at].data, data, (size_t)bytes);
  o->on_way[at].word = 0;
  if (m->mpi.isend(o->data[at].data, (int)bytes, m->mpi.byte, to, tag, m->mpi.comm, &o->on_way[at])) return give_up(m, to);
  o->busy[at] = 1;
  o->sent++;
  return 0;
}

/* Receives and drops unmatched messages before the end of the job, because MPI libraries warn about them. */
static void drain(ifl_mpi *m) {
  enum { ANY_TAG = -1 }; /* MPI_ANY_TAG of both families */
  buffer rest = {NULL, 0};
  for (int32_t r = 0; r < m->end.place.ranks; r++) {
    for (;;) {
      int there = 0, count = 0, done = 0;
      status st;
      request q = {.word = 0};
      if (r == m->end.place.rank || m->mpi.iprobe(r, ANY_TAG, m->mpi.comm, &there, &st) || !there) break;
      if (m->mpi.get_count(&st, m->mpi.byte, &count) || count < 0 || !room(&rest, count)) break;
      if (m->mpi.irecv(rest.data, count, m->mpi.byte, r, ANY_TAG, m->mpi.comm, &q)) break;
      while (!done && !m->mpi.test(&q, &done, &st)) ifl_relax();
    }
  }
  free(rest.data);
}

/* Ends communication when no rank sends any more: waits for all sends to complete and drops unmatched messages. */
int32_t ifl_mpi_flush(const ifl_comm *comm) {
  ifl_mpi *m = comm->self;
  for (int32_t r = 0; r < m->end.place.ranks; r++) {
    for (int i = 0; i < QUEUE; i++) {
      if (m->outboxes[r].busy[i] && finish(m, &m->outboxes[r].on_way[i], r)) return -1;
      m->outboxes[r].busy[i] = 0;
    }
    for (int i = 0; i < 2; i++) {
      notice *n = &m->notices[2 * r + i];
      if (n->busy && finish(m, &n->on_way, r)) return -1;
      n->busy = 0;
    }
  }
  drain(m);
  return 0;
}

int32_t ifl_mpi_get(const ifl_comm *comm, int32_t from, int32_t tag, void *data, int64_t bytes) {
  ifl_mpi *m = comm->self;
  request q = {.word = 0};
  if (!usable(m, from, bytes)) return -1;
  if (m->mpi.irecv(data, (int)bytes, m->mpi.byte, from, tag, m->mpi.comm, &q)) return give_up(m, from);
  return finish(m, &q, from);
}

/* Returns the size of a pending message; -1: none; -2: a rank has failed. */
int64_t ifl_mpi_look(const ifl_comm *comm, int32_t from, int32_t tag) {
  ifl_mpi *m = comm->self;
  int there = 0, count = 0;
  status st;
  if (!usable(m, from, 0)) return -2;
  if (m->mpi.iprobe(from, tag, m->mpi.comm, &there, &st)) {
    give_up(m, from);
    return -2;
  }
  if (!there) return -1;
  return m->mpi.get_count(&st, m->mpi.byte, &count) ? -2 : count;
}

/* Waits for a message and returns its size; 0: none within patience_ns (the rank is not declared failed); -2: a rank has failed. */
int64_t ifl_mpi_await(const ifl_comm *comm, int32_t from, int32_t tag, int64_t patience_ns) {
  ifl_mpi *m = comm->self;
  ifl_wait w = {0, 0};
  for (;;) {
    const int64_t n = ifl_mpi_look(comm, from, tag);
    if (n != -1) return n;
    const int64_t waited = ifl_waiting(&w);
    if (waited > patience_ns) return 0;
    if (waited < m->end.spin_ns) continue;
    if (waited < YIELD_NS) {
      sched_yield();
      continue;
    }
    if (listen(m)) return -2;
    const struct timespec t = {0, waited < 100000000 ? 100000 : 1000000};
    nanosleep(&t, NULL);
  }
}

/* Declares a rank failed at the runtime's request, or the rank for which it waits, and notifies the others. */
void ifl_mpi_fail(const ifl_comm *comm, int32_t rank) {
  ifl_mpi *m = comm->self;
  if (!listen(m)) give_up(m, rank);
}

static int32_t exchange(void *self, const void *mine, int64_t bytes, const void **parts) {
  ifl_mpi *m = self;
  const ifl_place *p = &m->end.place;
  request in[MAX_TP_SIZE], out[MAX_TP_SIZE];
  buffer *slots = m->slots + (int64_t)(m->calls++ % IFL_SLOTS) * p->tp_size;
  if (bytes > INT_MAX || atomic_load(&m->end.failed) >= 0) return -1;
  for (int32_t i = 0; i < p->tp_size; i++) {
    const int32_t r = p->first + i;
    in[i].word = 0;
    if (!(parts[i] = room(&slots[i], bytes))) return give_up(m, p->rank);
    if (r == p->rank) memcpy(slots[i].data, mine, (size_t)bytes);
    else if (m->mpi.irecv(slots[i].data, (int)bytes, m->mpi.byte, r, IFL_TAG_PART, m->mpi.comm, &in[i])) return give_up(m, r);
  }
  const void *own = parts[p->rank - p->first];
  for (int32_t i = 0; i < p->tp_size; i++) {
    const int32_t r = p->first + i;
    out[i].word = 0;
    if (r != p->rank && m->mpi.isend(own, (int)bytes, m->mpi.byte, r, IFL_TAG_PART, m->mpi.comm, &out[i])) return give_up(m, r);
  }
  for (int32_t i = 0; i < p->tp_size; i++) {
    const int32_t r = p->first + i;
    if (r != p->rank && (finish(m, &in[i], r) || finish(m, &out[i], r))) return -1;
  }
  ifl_count(&m->end, bytes, -1);
  return 0;
}

static int32_t send_to(void *self, int32_t to, const void *data, int64_t bytes) {
  ifl_mpi *m = self;
  if (ifl_mpi_put(&m->end.table, to, IFL_TAG_STAGE, data, bytes)) return -1;
  ifl_count(&m->end, -1, bytes);
  return 0;
}

static int32_t recv_from(void *self, int32_t from, void *data, int64_t bytes) {
  ifl_mpi *m = self;
  const int64_t start = ifl_now_ns();
  const int32_t failed = ifl_mpi_get(&m->end.table, from, IFL_TAG_STAGE, data, bytes);
  ifl_waited(&m->end, start);
  return failed;
}

void ifl_mpi_close(ifl_mpi *m) {
  if (!m) return;
  for (int32_t i = 0; m->slots && i < IFL_SLOTS * m->end.place.tp_size; i++) free(m->slots[i].data);
  for (int32_t r = 0; m->outboxes && r < m->end.place.ranks; r++)
    for (int i = 0; i < QUEUE; i++) free(m->outboxes[r].data[i].data);
  free(m->outboxes);
  free(m->notices);
  free(m->slots);
  free(m->waits_for);
  free(m->said_ns);
  free(m);
}

/* Opens the endpoint of this process. NULL: out of memory, or more ranks than MAX_TP_SIZE. */
ifl_mpi *ifl_mpi_open(const ifl_mpi_calls *calls, const ifl_place *place, int64_t spin_ns, int64_t timeout_ns) {
  if (place->tp_size < 1 || place->tp_size > MAX_TP_SIZE || place->ranks < 1) return NULL;
  ifl_mpi *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->mpi = *calls;
  m->end = (ifl_endpoint){.table = {m, exchange, send_to, recv_from}, .place = *place, .spin_ns = spin_ns, .timeout_ns = timeout_ns, .failed = -1};
  m->slots = calloc((size_t)(IFL_SLOTS * place->tp_size), sizeof *m->slots);
  m->outboxes = calloc((size_t)place->ranks, sizeof *m->outboxes);
  m->notices = calloc((size_t)place->ranks * 2, sizeof *m->notices);
  m->waits_for = malloc((size_t)place->ranks * sizeof *m->waits_for);
  m->said_ns = calloc((size_t)place->ranks, sizeof *m->said_ns);
  if (!m->slots || !m->outboxes || !m->notices || !m->waits_for || !m->said_ns) {
    ifl_mpi_close(m);
    return NULL;
  }
  for (int32_t i = 0; i < place->ranks; i++) m->waits_for[i] = -1;
  return m;
}

const ifl_comm *ifl_mpi_at(const ifl_mpi *m) { return &m->end.table; }
