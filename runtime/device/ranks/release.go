//go:build unix

package ranks

import (
	"errors"
	"sync"
	"time"

	"github.com/iflowc/iflowc/runtime/device/comm"
)

// exitingLimit is how long a step may make no progress after the process was asked to exit,
// before its callers are told that a rank is lost. It is longer than the timeouts within the
// step, which name the rank, and OpenMPI kills the process soon after.
const exitingLimit = exitingStep + 700*time.Millisecond

// A progress is when something last happened to the steps in flight.
type progress struct {
	mu       sync.Mutex
	inFlight int
	last     time.Time
}

func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inFlight++; p.inFlight == 1 {
		p.last = time.Now()
	}
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
	p.last = time.Now()
}

// stalled returns how long nothing has happened to the steps in flight.
func (p *progress) stalled() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inFlight == 0 {
		return 0
	}
	return time.Since(p.last)
}

// release ends the wait for steps that are blocked in a library on a lost rank. NCCL waits for
// the rank. OpenMPI 4.1 tells its launcher that a connection has ended and, within the same
// call, waits for the answer. It comes when the launcher has killed the other machine's ranks.
func (m *remoteModel) release() {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-m.control.Lost():
			select {
			case <-time.After(releaseLimit):
				m.abandon(m.endpoint.Failed())
			case <-m.ended:
			}
			return
		case <-m.ended:
			return
		case <-tick.C:
			if m.exiting.Load() && m.steps.stalled() > exitingLimit {
				m.abandon(m.endpoint.Failed())
				return
			}
		}
	}
}

// abandon gives up the steps in flight. rank is the lost rank; -1: it is unknown.
func (m *remoteModel) abandon(rank int) {
	lost := &comm.RankError{Rank: rank}
	if n := len(m.part.Ranks); rank < 0 && n == 2 {
		lost.Rank = 1
	} else if rank < 0 {
		lost = &comm.RankError{Rank: n - 1, Err: errors.New("this rank or one before it does not respond; restart all ranks")}
	}
	m.fail(lost)
	close(m.stuck)
}
