package templates

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// poolShim has every worker check, at each barrier, that all others have done
// their part of the round and none is a round ahead.
const poolShim = `
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ifl_pool.h"
#ifdef __linux__
#include <sched.h>
#endif
typedef struct { ifl_pool *pool; int rounds; volatile int32_t *done; volatile int32_t wrong, calls; } job;
static void worker(void *p, int tid, int threads) {
  job *j = p;
  __atomic_fetch_add(&j->calls, 1, __ATOMIC_RELAXED);
  for (int r = 1; r <= j->rounds; r++) {
    j->done[16 * tid] = r;
    ifl_barrier(j->pool);
    for (int i = 0; i < threads; i++) if (j->done[16 * i] != r) j->wrong = r;
    ifl_barrier(j->pool);
  }
}
void shim_rounds(ifl_pool *pool, job *j);
void shim_rounds(ifl_pool *pool, job *j) {
  j->pool = pool;
  ifl_pool_run(pool, worker, j);
}
int shim_processors(void);
int shim_processors(void) { /* that the calling thread may use */
#ifdef __linux__
  cpu_set_t s;
  return sched_getaffinity(0, sizeof s, &s) ? -1 : CPU_COUNT(&s);
#else
  return 0;
#endif
}
`

type poolJob struct {
	pool         uintptr
	rounds       int32
	done         *int32
	wrong, calls int32
}

type poolLib struct{ open, close, rounds, processors uintptr }

func openPool(t *testing.T, cc string) *poolLib {
	lib := library(t, cc, ISAs()[len(ISAs())-1], map[string]string{"pool": ThreadPool(), "shim": poolShim})
	return &poolLib{symbol(t, lib, "ifl_pool_open"), symbol(t, lib, "ifl_pool_close"), symbol(t, lib, "shim_rounds"), symbol(t, lib, "shim_processors")}
}

// start opens a pool; cpus may be nil.
func (l *poolLib) start(threads int, cpus []int32) uintptr {
	pool, _, _ := purego.SyscallN(l.open, uintptr(threads), address(cpus))
	runtime.KeepAlive(cpus)
	return pool
}

func (l *poolLib) stop(pool uintptr) { purego.SyscallN(l.close, pool) }

// check runs rounds on a pool and reports workers that passed a barrier early
// or were not called once.
func (l *poolLib) check(t *testing.T, pool uintptr, threads, rounds int) {
	t.Helper()
	done := make([]int32, 16*threads)
	j := &poolJob{rounds: int32(rounds), done: &done[0]}
	purego.SyscallN(l.rounds, pool, uintptr(unsafe.Pointer(j)))
	if j.wrong != 0 || j.calls != int32(threads) {
		t.Fatalf("%d threads, %d rounds: wrong at round %d, %d workers called", threads, rounds, j.wrong, j.calls)
	}
}

// TestPool: barriers hold on pools smaller and larger than the machine, also
// where all workers share one processor.
func TestPool(t *testing.T) {
	t.Parallel()
	for _, cc := range compilers(t) {
		lib := openPool(t, cc)
		for _, threads := range []int{1, 2, 3, 8} {
			pool := lib.start(threads, nil)
			if pool == 0 {
				t.Fatalf("a pool of %d did not start", threads)
			}
			began := time.Now()
			for range 20 {
				lib.check(t, pool, threads, 25)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%d threads: 1000 barriers took %v", threads, took)
			}
			lib.stop(pool)
		}
		pool := lib.start(4, []int32{0, 0, 0, 0})
		lib.check(t, pool, 4, 50)
		lib.stop(pool)
	}
}

// TestPoolOpenClose: pools that never run and pools that run once end; sizes
// that are none are refused.
func TestPoolOpenClose(t *testing.T) {
	t.Parallel()
	lib := openPool(t, compilers(t)[0])
	for i := range 100 {
		pool := lib.start(1+i%5, nil)
		if pool == 0 {
			t.Fatalf("cycle %d: the pool did not start", i)
		}
		if i%2 == 0 {
			lib.check(t, pool, 1+i%5, 1)
		}
		lib.stop(pool)
	}
	for _, n := range []int{0, -1, 1025} {
		if pool := lib.start(n, nil); pool != 0 {
			t.Errorf("a pool of %d started", n)
		}
	}
	lib.stop(0)
}

// TestPoolPinning: the caller's thread gets its processors back, and a
// processor that does not exist is no obstacle.
func TestPoolPinning(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lib := openPool(t, compilers(t)[0])
	before, _, _ := purego.SyscallN(lib.processors)
	for _, cpus := range [][]int32{{0, 0}, {-1, 0}, {0, 1000}, {1 << 20, 1 << 20}} {
		pool := lib.start(2, cpus)
		if pool == 0 {
			t.Fatalf("a pool on processors %d did not start", cpus)
		}
		lib.check(t, pool, 2, 10)
		lib.stop(pool)
	}
	if after, _, _ := purego.SyscallN(lib.processors); after != before {
		t.Errorf("the caller's thread may use %d processors after a run, %d before", int32(after), int32(before))
	}
}
