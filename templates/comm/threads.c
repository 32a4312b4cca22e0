/* The transport between ranks of one process: each rank publishes a copy of its part and a counter, and reads those of the
 * others. A waiting rank spins briefly and then sleeps in the kernel until the counter changes, so that more ranks than CPUs
 * are slower but do not starve each other. A wait for a rank that does not respond ends after the timeout. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ifl_endpoint.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

/* A counter that other ranks wait on, on a cache line pair of its own. */
typedef struct {
  _Alignas(128) _Atomic uint32_t value;
  _Atomic uint32_t sleepers;
} counter;

typedef struct {
  uint8_t *data;
  int64_t bytes, room;
} slot;

/* A bounded queue of messages from one rank to another. */
enum { QUEUE = 4 };
typedef struct {
  counter sent, taken;
  slot slots[QUEUE];
} pipe_to;

typedef struct ifl_hub ifl_hub;

typedef struct {
  ifl_endpoint end; /* first: the table's self is this struct */
  ifl_hub *hub;
  counter calls; /* exchange calls; incremented when the part is in its slot */
  slot slots[IFL_SLOTS];
  _Atomic int32_t waits_for; /* a rank, or -1 */
} hub_end;

struct ifl_hub {
  int32_t ranks;
  hub_end *ends;  /* [ranks] */
  pipe_to *pipes; /* [ranks][ranks] from, to */
};

/* Sleep interval: long enough that wake-ups cost nothing, short enough to detect a failure soon. */
#define SLEEP_NS 20000000

static void sleep_on(counter *c, uint32_t last) {
#ifdef __linux__
  const struct timespec t = {0, SLEEP_NS};
  atomic_fetch_add(&c->sleepers, 1);
  syscall(SYS_futex, &c->value, FUTEX_WAIT_PRIVATE, last, &t, NULL, 0);
  atomic_fetch_sub(&c->sleepers, 1);
#else
  (void)c, (void)last;
  const struct timespec t = {0, 50000};
  nanosleep(&t, NULL);
#endif
}

static void wake(counter *c) {
#ifdef __linux__
  if (atomic_load(&c->sleepers)) syscall(SYS_futex, &c->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
#else
  (void)c;
#endif
}

static void publish(counter *c, uint32_t value) {
  atomic_store(&c->value, value);
  wake(c);
}

void ifl_hub_fail(ifl_hub *h, int32_t rank) {
  for (int32_t i = 0; i < h->ranks; i++) {
    int32_t none = -1;
    atomic_compare_exchange_strong(&h->ends[i].end.failed, &none, rank);
  }
  for (int32_t i = 0; i < h->ranks; i++) wake(&h->ends[i].calls);
  for (int32_t i = 0; i < h->ranks * h->ranks; i++) {
    wake(&h->pipes[i].sent);
    wake(&h->pipes[i].taken);
  }
}

/* The rank that failed when `rank` does not respond: the end of the chain of ranks that wait for each other. */
static int32_t blame(const ifl_hub *h, int32_t rank) {
  for (int32_t i = 0; i < h->ranks; i++) {
    const int32_t next = atomic_load(&h->ends[rank].waits_for);
    if (next < 0) break;
    rank = next;
  }
  return rank;
}

/* Waits until rank `whom` has raised the counter to value. Returns 0 on success. */
static int32_t wait_for(hub_end *e, counter *c, uint32_t value, int32_t whom) {
  const _Atomic int32_t *failed = &e->end.failed;
  ifl_wait w = {0, 0};
  for (uint32_t n = 1;; n++) {
    const uint32_t last = atomic_load_explicit(&c->value, memory_order_acquire);
    if ((int32_t)(last - value) >= 0) break;
    if (atomic_load_explicit(failed, memory_order_relaxed) >= 0) return -1;
    ifl_relax();
    if (n % 16) continue;
    if (!w.last) atomic_store(&e->waits_for, whom);
    const int64_t waited = ifl_waiting(&w);
    if (waited < e->end.spin_ns) continue;
    if (waited > atomic_load(&e->end.timeout_ns)) {
      ifl_hub_fail(e->hub, blame(e->hub, whom));
      return -1;
    }
    sleep_on(c, last);
  }
  if (w.last) atomic_store(&e->waits_for, -1);
  return 0;
}

static int32_t fill(slot *s, const void *data, int64_t bytes) {
  if (bytes > s->room) {
    const int64_t room = (bytes + 4095) & ~(int64_t)4095;
    uint8_t *fresh = aligned_alloc(64, (size_t)room);
    if (!fresh) return -1;
    free(s->data);
    s->data = fresh;
    s->room = room;
  }
  memcpy(s->data, data, (size_t)bytes);
  s->bytes = bytes;
  return 0;
}

/* A slot is reused after four calls. By then every rank has begun the previous call, so no rank still reads these parts. */
static int32_t exchange(void *self, const void *mine, int64_t bytes, const void **parts) {
  hub_end *e = self;
  const ifl_place *p = &e->end.place;
  const uint32_t call = atomic_load_explicit(&e->calls.value, memory_order_relaxed);
  const int at = (int)(call % IFL_SLOTS);
  if (atomic_load(&e->end.failed) >= 0) return -1;
  if (fill(&e->slots[at], mine, bytes)) {
    ifl_hub_fail(e->hub, p->rank);
    return -1;
  }
  publish(&e->calls, call + 1);
  for (int32_t m = 0; m < p->tp_size; m++) {
    hub_end *other = &e->hub->ends[p->first + m];
    if (other != e && wait_for(e, &other->calls, call + 1, p->first + m)) return -1;
    if (other->slots[at].bytes != bytes) {
      ifl_hub_fail(e->hub, p->first + m);
      return -1;
    }
    parts[m] = other->slots[at].data;
  }
  ifl_count(&e->end, bytes, -1);
  return 0;
}

static int32_t send_to(void *self, int32_t to, const void *data, int64_t bytes) {
  hub_end *e = self;
  if (to < 0 || to >= e->hub->ranks || atomic_load(&e->end.failed) >= 0) return -1;
  pipe_to *q = &e->hub->pipes[e->end.place.rank * e->hub->ranks + to];
  const uint32_t sent = atomic_load_explicit(&q->sent.value, memory_order_relaxed);
  if (wait_for(e, &q->taken, sent + 1 - QUEUE, to)) return -1;
  if (fill(&q->slots[sent % QUEUE], data, bytes)) {
    ifl_hub_fail(e->hub, e->end.place.rank);
    return -1;
  }
  publish(&q->sent, sent + 1);
  ifl_count(&e->end, -1, bytes);
  return 0;
}

static int32_t recv_from(void *self, int32_t from, void *data, int64_t bytes) {
  hub_end *e = self;
  if (from < 0 || from >= e->hub->ranks || atomic_load(&e->end.failed) >= 0) return -1;
  pipe_to *q = &e->hub->pipes[from * e->hub->ranks + e->end.place.rank];
  const uint32_t taken = atomic_load_explicit(&q->taken.value, memory_order_relaxed);
  const int64_t start = ifl_now_ns();
  if (wait_for(e, &q->sent, taken + 1, from)) return -1;
  ifl_waited(&e->end, start);
  const slot *s = &q->slots[taken % QUEUE];
  if (s->bytes != bytes) {
    ifl_hub_fail(e->hub, from);
    return -1;
  }
  memcpy(data, s->data, (size_t)bytes);
  publish(&q->taken, taken + 1);
  return 0;
}

void ifl_hub_close(ifl_hub *h) {
  if (!h) return;
  for (int32_t i = 0; h->ends && i < h->ranks; i++)
    for (int k = 0; k < IFL_SLOTS; k++) free(h->ends[i].slots[k].data);
  for (int32_t i = 0; h->pipes && i < h->ranks * h->ranks; i++)
    for (int k = 0; k < QUEUE; k++) free(h->pipes[i].slots[k].data);
  free(h->ends);
  free(h->pipes);
  free(h);
}

/* Opens the endpoints of all ranks of the process; places is [ranks]. NULL: out of memory. */
ifl_hub *ifl_hub_open(int32_t ranks, const ifl_place *places, int64_t spin_ns, int64_t timeout_ns) {
  if (ranks < 1 || ranks > 1024) return NULL;
  ifl_hub *h = calloc(1, sizeof *h);
  if (!h) return NULL;
  const size_t n = (size_t)ranks;
  h->ranks = ranks;
  h->ends = aligned_alloc(128, n * sizeof *h->ends);
  h->pipes = aligned_alloc(128, n * n * sizeof *h->pipes);
  if (!h->ends || !h->pipes) {
    free(h->ends);
    free(h->pipes);
    free(h);
    return NULL;
  }
  memset(h->ends, 0, n * sizeof *h->ends);
  memset(h->pipes, 0, n * n * sizeof *h->pipes);
  for (int32_t i = 0; i < ranks; i++) {
    hub_end *e = &h->ends[i];
    e->hub = h;
    e->waits_for = -1;
    e->end = (ifl_endpoint){.table = {e, exchange, send_to, recv_from}, .place = places[i], .spin_ns = spin_ns, .timeout_ns = timeout_ns, .failed = -1};
  }
  return h;
}

const ifl_comm *ifl_hub_at(const ifl_hub *h, int32_t rank) { return &h->ends[rank].end.table; }
