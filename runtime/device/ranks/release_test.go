//go:build unix

package ranks

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// A blocked is a control channel and endpoint whose calls do not return, as MPI's.
type blocked struct {
	control
	failed int
}

func (b blocked) Lost() <-chan struct{}    { return nil }
func (b blocked) Failed() int              { return b.failed }
func (b blocked) Table() unsafe.Pointer    { return nil }
func (b blocked) Counts() comm.Counts      { return comm.Counts{} }
func (b blocked) SetTimeout(time.Duration) {}
func (b blocked) ShortenTimeout()          {}

// TestRelease: a step that is blocked in MPI ends soon after the process was asked to exit, and
// not before. Steps that end in time are not given up.
func TestRelease(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ ranks, failed, want int }{{2, -1, 1}, {4, -1, 3}, {4, 2, 2}} {
		synctest.Test(t, func(t *testing.T) {
			b := blocked{failed: x.failed}
			job := &Job{part: &manifest.Partition{Ranks: make([]manifest.Rank, x.ranks)}, control: b, endpoint: b}
			m := &remoteModel{Leader: &Leader{Job: job, breakage: newBreakage()}, ended: make(chan struct{}), stuck: make(chan struct{})}
			go m.release()
			m.steps.begin()
			time.Sleep(time.Minute)
			if m.Why() != nil {
				t.Fatal("a step was given up although nobody asked the process to exit")
			}
			m.steps.end()
			job.ShortenTimeout()
			for range 5 {
				m.steps.begin()
				time.Sleep(exitingLimit - 100*time.Millisecond)
				m.steps.end()
			}
			time.Sleep(time.Minute) // no step is in flight
			if m.Why() != nil {
				t.Fatal("steps that ended were given up")
			}
			start := time.Now()
			m.steps.begin()
			<-m.stuck
			var lost *comm.RankError
			if took := time.Since(start); took > exitingLimit+100*time.Millisecond || !errors.As(m.Why(), &lost) || lost.Rank != x.want {
				t.Errorf("%d ranks: %v after %v, expected the loss of rank %d", x.ranks, m.Why(), took, x.want)
			}
		})
	}
}
