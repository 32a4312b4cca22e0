/* Times implementations of one matmul as the generated step runs them: activations packed into the implementation's
 * tiles, column groups divided among the pool, a barrier at the end. Weights are not cached, because each run reads
 * another copy of them; activations are cached. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RUSAGE_THREAD */
#endif
#include "ifl_pack.h"
#include "ifl_pool.h"
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

/* As in the generated step: each thread packs up to PROBE_PRIVATE_ROWS rows itself; a call computes up to PROBE_CALL floats. */
enum { PROBE_PRIVATE_ROWS = 16, PROBE_CALL = 32768, PROBE_GROUP = 16 };

typedef struct {
  ifl_pool *pool;
  const uint8_t *weights; /* `copies` matrices of copy_bytes */
  uint8_t *arena;         /* ifl_probe_arena bytes, 64-byte aligned */
  int64_t copy_bytes, panel_bytes;
  const ifl_mm *mm;       /* candidates */
  const int32_t *tile;    /* tile rows of each candidate */
  const int32_t *order;   /* [runs] candidate of each run */
  double *seconds;        /* [runs] */
  int32_t *disturbed;     /* [runs] nonzero if a worker was preempted or slept */
  double *busy;           /* [threads][runs] CPU time of a worker between barriers; 0 for short runs */
  int32_t n, k, rows, kind, copies, next, runs, pad;
} ifl_probe;

/* The parts of the arena. */
typedef struct {
  float *x;
  uint8_t *act, *own, *mm;
  float *y;
  int64_t own_bytes, act_bytes, y_bytes, mm_bytes, total;
} probe_arena;

static int64_t tiles_bytes(ifl_act_kind kind, int k, int rows) {
  const int64_t one = ifl_tile_bytes(kind, k, 1) * rows, wide = ifl_tile_bytes(kind, k, 16) * ((rows + 15) / 16);
  return one > wide ? one : wide;
}

static probe_arena lay(uint8_t *at, ifl_act_kind kind, int k, int rows, int threads) {
  probe_arena a;
  const int64_t x = ifl_round64((int64_t)k * rows * 4), act = tiles_bytes(kind, k, rows);
  const int columns = PROBE_CALL / PROBE_GROUP / rows > 1 ? PROBE_CALL / PROBE_GROUP / rows : 1;
  a.act_bytes = tiles_bytes(kind, k, PROBE_PRIVATE_ROWS);
  a.y_bytes = ifl_round64(((int64_t)rows * columns * PROBE_GROUP + 16) * 4);
  a.mm_bytes = ifl_round64((int64_t)(k < 64 ? 64 : k) * IFL_MM_SCRATCH_PER_K + 4096);
  a.own_bytes = a.act_bytes + a.y_bytes + a.mm_bytes;
  a.x = (float *)at;
  a.act = at + x;
  a.own = a.act + act;
  a.total = x + act + a.own_bytes * threads;
  a.y = NULL;
  a.mm = NULL;
  return a;
}

EXPORT int64_t ifl_probe_arena(int kind, int k, int rows, int threads);
EXPORT int64_t ifl_probe_arena(int kind, int k, int rows, int threads) {
  return lay(NULL, (ifl_act_kind)kind, k, rows, threads).total;
}

static void pack_row(uint8_t *tile, const float *x, ifl_act_kind kind, int k, int mt, int m) {
  if (kind == IFL_F32)
    ifl_pack_f32(tile, x, k, mt, m);
  else if (kind == IFL_A8_B16)
    ifl_pack_a8_b16(tile, x, k, mt, m);
  else if (kind == IFL_A8_B32)
    ifl_pack_a8_b32(tile, x, k, mt, m);
  else
    ifl_pack_a8_b64(tile, x, k, mt, m);
}

static double clock_of(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static double now(void) { return clock_of(CLOCK_MONOTONIC); }

/* Multiply-adds from which a run is long compared with the system call that reads the CPU time. */
#define PROBE_LONG 2e7

/* Returns the CPU time of this worker's work, without waiting; 0 for a short run. */
static double run_once(const ifl_probe *p, const probe_arena *a, int which, const uint8_t *w, int tid, int threads) {
  const ifl_act_kind kind = (ifl_act_kind)p->kind;
  const int rows = p->rows, tm = p->tile[which], pack_private = rows <= PROBE_PRIVATE_ROWS, tiles = (rows + tm - 1) / tm;
  const int timed = (double)rows * p->n * p->k >= PROBE_LONG;
  double busy = timed ? -clock_of(CLOCK_THREAD_CPUTIME_ID) : 0;
  uint8_t *act = pack_private ? a->own : a->act;
  for (int i = pack_private ? 0 : tid; i < tiles; i += pack_private ? 1 : threads) {
    uint8_t *tile = act + i * ifl_tile_bytes(kind, p->k, tm);
    const int mt = rows - i * tm < tm ? rows - i * tm : tm;
    for (int m = 0; m < mt; m++) pack_row(tile, a->x + (int64_t)(i * tm + m) * p->k, kind, p->k, mt, m);
  }
  if (!pack_private) {
    if (timed) busy += clock_of(CLOCK_THREAD_CPUTIME_ID);
    ifl_barrier(p->pool);
    if (timed) busy -= clock_of(CLOCK_THREAD_CPUTIME_ID);
  }
  const int groups = (p->n + PROBE_GROUP - 1) / PROBE_GROUP, per = PROBE_CALL / (rows * PROBE_GROUP) > 1 ? PROBE_CALL / (rows * PROBE_GROUP) : 1;
  const int g1 = (int)((int64_t)groups * (tid + 1) / threads);
  for (int g = (int)((int64_t)groups * tid / threads); g < g1; g += per) {
    const int panels = g1 - g < per ? g1 - g : per;
    p->mm[which](w + g * p->panel_bytes, p->k, panels, act, rows, a->y, panels * 16, a->mm);
  }
  return timed ? busy + clock_of(CLOCK_THREAD_CPUTIME_ID) : 0;
}

/* Number of context switches of this thread, involuntary and voluntary; 0 if the system does not report them. */
typedef struct { long lost, slept; } switches;
static switches count_switches(void) {
#ifdef RUSAGE_THREAD
  struct rusage u;
  if (!getrusage(RUSAGE_THREAD, &u)) return (switches){u.ru_nivcsw, u.ru_nvcsw};
#endif
  return (switches){0, 0};
}

static void worker(void *arg, int tid, int threads) {
  const ifl_probe *p = arg;
  probe_arena a = lay(p->arena, (ifl_act_kind)p->kind, p->k, p->rows, threads);
  a.own += a.own_bytes * tid;
  a.y = (float *)(a.own + a.act_bytes);
  a.mm = a.own + a.act_bytes + a.y_bytes;
  memset(a.own, 0, (size_t)a.own_bytes); /* first touched by the thread that uses it */
  if (tid == 0)
    for (int64_t i = 0; i < (int64_t)p->k * p->rows; i++) a.x[i] = (float)((i * 2654435761u >> 7) % 2001) * 1e-3f - 1.0f;
  for (int r = 0; r < p->runs; r++) {
    const switches before = count_switches();
    ifl_barrier(p->pool);
    const double start = now();
    p->busy[(int64_t)tid * p->runs + r] = run_once(p, &a, p->order[r], p->weights + (p->next + r) % p->copies * p->copy_bytes, tid, threads);
    ifl_barrier(p->pool);
    if (tid == 0) p->seconds[r] = now() - start;
    const switches after = count_switches();
    if (after.lost != before.lost || after.slept != before.slept) __atomic_store_n(&p->disturbed[r], 1, __ATOMIC_RELAXED);
  }
}

EXPORT void ifl_probe_matmul(ifl_probe *p);
EXPORT void ifl_probe_matmul(ifl_probe *p) { ifl_pool_run(p->pool, worker, p); }

typedef struct {
  ifl_pool *pool;
  const uint8_t *from;
  int64_t bytes;
  double *seconds; /* [runs] */
  uint64_t sink;
  int32_t runs, pad;
} ifl_probe_read_job;

static void reader(void *arg, int tid, int threads) {
  typedef uint64_t v8 __attribute__((vector_size(64)));
  ifl_probe_read_job *p = arg;
  const int64_t blocks = p->bytes / 256, from = blocks * tid / threads, to = blocks * (tid + 1) / threads;
  ifl_barrier(p->pool);
  double start = now();
  for (int r = 0; r < p->runs; r++) {
    v8 a = {0}, b = a, c = a, d = a;
    for (int64_t i = from; i < to; i++) {
      const v8 *v = (const v8 *)(p->from + 256 * i);
      a ^= v[0], b ^= v[1], c ^= v[2], d ^= v[3];
    }
    a ^= b ^ c ^ d;
    __atomic_fetch_xor(&p->sink, a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7], __ATOMIC_RELAXED);
    ifl_barrier(p->pool);
    if (tid == 0) {
      const double end = now();
      p->seconds[r] = end - start;
      start = end;
    }
  }
}

/* Reads memory sequentially with every thread, to measure the bandwidth bound of GEMV. */
EXPORT void ifl_probe_read(ifl_probe_read_job *p);
EXPORT void ifl_probe_read(ifl_probe_read_job *p) { ifl_pool_run(p->pool, reader, p); }

/* Fills memory with small numbers that are normal as f16, bf16 and float: codes do not affect a kernel's time, but
 * denormal scales would slow every kernel. */
EXPORT void ifl_probe_fill(uint8_t *at, int64_t bytes);
EXPORT void ifl_probe_fill(uint8_t *at, int64_t bytes) {
  uint64_t s = 88172645463325252u;
  for (int64_t i = 0; i + 8 <= bytes; i += 8) {
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    const uint64_t v = (s & 0x03ff03ff03ff03ffu) | 0x2c002c002c002c00u;
    memcpy(at + i, &v, 8);
  }
}
