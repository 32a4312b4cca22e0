package templates

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// teamShim has every member check, at each barrier, that all others have done
// their part of the round and none is a round ahead.
const teamShim = `
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ifl_team.h"
#ifdef __linux__
#include <sched.h>
#endif
typedef struct { ifl_team *team; int rounds; volatile int32_t *done; volatile int32_t wrong, calls; } job;
static void member(void *p, int tid, int threads) {
  job *j = p;
  __atomic_fetch_add(&j->calls, 1, __ATOMIC_RELAXED);
  for (int r = 1; r <= j->rounds; r++) {
    j->done[16 * tid] = r;
    ifl_barrier(j->team);
    for (int i = 0; i < threads; i++) if (j->done[16 * i] != r) j->wrong = r;
    ifl_barrier(j->team);
  }
}
void shim_rounds(ifl_team *team, job *j);
void shim_rounds(ifl_team *team, job *j) {
  j->team = team;
  ifl_team_run(team, member, j);
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

type teamJob struct {
	team         uintptr
	rounds       int32
	done         *int32
	wrong, calls int32
}

type teamLib struct{ open, close, rounds, processors uintptr }

func openTeam(t *testing.T, cc string) *teamLib {
	lib := library(t, cc, ISAs()[len(ISAs())-1], map[string]string{"team": Team(), "shim": teamShim})
	return &teamLib{symbol(t, lib, "ifl_team_open"), symbol(t, lib, "ifl_team_close"), symbol(t, lib, "shim_rounds"), symbol(t, lib, "shim_processors")}
}

// start opens a team; cpus may be nil.
func (l *teamLib) start(threads int, cpus []int32) uintptr {
	team, _, _ := purego.SyscallN(l.open, uintptr(threads), address(cpus))
	runtime.KeepAlive(cpus)
	return team
}

func (l *teamLib) stop(team uintptr) { purego.SyscallN(l.close, team) }

// check runs rounds on a team and reports members that passed a barrier early
// or were not called once.
func (l *teamLib) check(t *testing.T, team uintptr, threads, rounds int) {
	t.Helper()
	done := make([]int32, 16*threads)
	j := &teamJob{rounds: int32(rounds), done: &done[0]}
	purego.SyscallN(l.rounds, team, uintptr(unsafe.Pointer(j)))
	if j.wrong != 0 || j.calls != int32(threads) {
		t.Fatalf("%d threads, %d rounds: wrong at round %d, %d members called", threads, rounds, j.wrong, j.calls)
	}
}

// TestTeam: barriers hold on teams smaller and larger than the machine, also
// where all members share one processor.
func TestTeam(t *testing.T) {
	t.Parallel()
	for _, cc := range compilers(t) {
		lib := openTeam(t, cc)
		for _, threads := range []int{1, 2, 3, 8} {
			team := lib.start(threads, nil)
			if team == 0 {
				t.Fatalf("a team of %d did not start", threads)
			}
			began := time.Now()
			for range 20 {
				lib.check(t, team, threads, 25)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%d threads: 1000 barriers took %v", threads, took)
			}
			lib.stop(team)
		}
		team := lib.start(4, []int32{0, 0, 0, 0})
		lib.check(t, team, 4, 50)
		lib.stop(team)
	}
}

// TestTeamOpenClose: teams that never run and teams that run once end; sizes
// that are none are refused.
func TestTeamOpenClose(t *testing.T) {
	t.Parallel()
	lib := openTeam(t, compilers(t)[0])
	for i := range 100 {
		team := lib.start(1+i%5, nil)
		if team == 0 {
			t.Fatalf("cycle %d: the team did not start", i)
		}
		if i%2 == 0 {
			lib.check(t, team, 1+i%5, 1)
		}
		lib.stop(team)
	}
	for _, n := range []int{0, -1, 1025} {
		if team := lib.start(n, nil); team != 0 {
			t.Errorf("a team of %d started", n)
		}
	}
	lib.stop(0)
}

// TestTeamPinning: the caller's thread gets its processors back, and a
// processor that does not exist is no obstacle.
func TestTeamPinning(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lib := openTeam(t, compilers(t)[0])
	before, _, _ := purego.SyscallN(lib.processors)
	for _, cpus := range [][]int32{{0, 0}, {-1, 0}, {0, 1000}, {1 << 20, 1 << 20}} {
		team := lib.start(2, cpus)
		if team == 0 {
			t.Fatalf("a team on processors %d did not start", cpus)
		}
		lib.check(t, team, 2, 10)
		lib.stop(team)
	}
	if after, _, _ := purego.SyscallN(lib.processors); after != before {
		t.Errorf("the caller's thread may use %d processors after a run, %d before", int32(after), int32(before))
	}
}
