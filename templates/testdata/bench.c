/* Times a matmul kernel on cold weights, with pinned threads that share its panels; and the memory's read bandwidth. */
#define _GNU_SOURCE
#include "ifl_kernel.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MAX_THREADS = 64 };

typedef struct {
  ifl_mm mm; /* NULL: read the weights and do nothing */
  const uint8_t *weights;
  int64_t copy_bytes;
  int copies, k, panels, rows, reps, threads;
  const uint8_t *act;
  float *y;
  double *seconds; /* of each repetition */
  uint64_t sink;
  uint32_t arrived, generation;
} job;

typedef struct {
  job *j;
  int tid;
} worker;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void meet(job *j) {
  const uint32_t g = __atomic_load_n(&j->generation, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&j->arrived, 1, __ATOMIC_ACQ_REL) == (uint32_t)j->threads) {
    __atomic_store_n(&j->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&j->generation, g + 1, __ATOMIC_RELEASE);
  } else {
    while (__atomic_load_n(&j->generation, __ATOMIC_ACQUIRE) == g) {
    }
  }
}

static uint64_t read_all(const uint8_t *p, int64_t n) {
  typedef uint64_t v8 __attribute__((vector_size(64)));
  v8 a = {0}, b = {0}, c = {0}, d = {0};
  for (int64_t i = 0; i + 256 <= n; i += 256) {
    const v8 *v = (const v8 *)(p + i);
    a ^= v[0], b ^= v[1], c ^= v[2], d ^= v[3];
  }
  a ^= b ^ c ^ d;
  return a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
}

static void *work(void *arg) {
  const worker *me = arg;
  job *j = me->j;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)me->tid, &set);
  if (j->threads > 1) pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  uint8_t *scratch = aligned_alloc(64, (size_t)ifl_round64((int64_t)IFL_MM_SCRATCH_PER_K * (j->k < 16 ? 16 : j->k)));
  const int from = (int)((int64_t)j->panels * me->tid / j->threads), to = (int)((int64_t)j->panels * (me->tid + 1) / j->threads);
  const int64_t panel = j->copy_bytes / j->panels;
  for (int r = 0; r < j->reps; r++) {
    meet(j);
    const double start = now();
    const uint8_t *w = j->weights + (r % j->copies) * j->copy_bytes + from * panel;
    if (j->mm)
      j->mm(w, j->k, to - from, j->act, j->rows, j->y + 16 * from, 16 * j->panels, scratch);
    else
      __atomic_fetch_xor(&j->sink, read_all(w, (to - from) * panel), __ATOMIC_RELAXED);
    meet(j);
    if (me->tid == 0) j->seconds[r] = now() - start;
  }
  free(scratch);
  return NULL;
}

/* Fills seconds[0…reps-1]; returns 0, or -1 when threads could not be started. */
int bench_run(ifl_mm mm, const uint8_t *weights, int64_t copy_bytes, int copies, int k, int panels, int rows, const uint8_t *act, float *y, int threads, int reps, double *seconds);
int bench_run(ifl_mm mm, const uint8_t *weights, int64_t copy_bytes, int copies, int k, int panels, int rows, const uint8_t *act, float *y, int threads, int reps, double *seconds) {
  job j = {.mm = mm, .weights = weights, .copy_bytes = copy_bytes, .copies = copies, .k = k, .panels = panels, .rows = rows,
           .act = act, .y = y, .threads = threads, .reps = reps, .seconds = seconds};
  pthread_t t[MAX_THREADS];
  worker m[MAX_THREADS];
  if (threads > MAX_THREADS) return -1;
  for (int i = 0; i < threads; i++) {
    m[i] = (worker){&j, i};
    if (pthread_create(&t[i], NULL, work, &m[i])) return -1;
  }
  for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
  return 0;
}

/* n bytes in huge pages where the system has them; NULL when there is no room. Filled with numbers that are small and
 * normal as f16, as bf16 and as float. */
uint8_t *bench_alloc(int64_t n);
uint8_t *bench_alloc(int64_t n) {
  const int64_t huge = 2 << 20;
  n = (n + huge - 1) / huge * huge;
  uint8_t *p = mmap(NULL, (size_t)(n + huge), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  p = (uint8_t *)(((uintptr_t)p + (uintptr_t)huge - 1) & ~((uintptr_t)huge - 1));
  madvise(p, (size_t)n, MADV_HUGEPAGE);
  uint64_t s = 88172645463325252u;
  for (int64_t i = 0; i < n; i += 8) {
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    const uint64_t v = (s & 0x03ff03ff03ff03ffu) | 0x2c002c002c002c00u;
    memcpy(p + i, &v, 8);
  }
  return p;
}
