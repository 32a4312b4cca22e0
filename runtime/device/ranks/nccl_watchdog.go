//go:build unix

package ranks

import (
	"errors"
	"fmt"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// Timeouts after an aborted step of ranks that communicate by NCCL: rank 0 waits for a
// sign of life, workers wait for rank 0's verdict, and all wait for calls that should
// return when a rank is lost.
const (
	signLimit    = time.Second
	verdictLimit = 2 * time.Second
	releaseLimit = 3 * time.Second
)

// Timeouts for a step or the end of the job, and for a sign of life, after the process was
// asked to exit by MPI's launcher. OpenMPI kills the other ranks two seconds after one has died.
const (
	exitingStep = time.Second
	exitingSign = time.Second / 2
)

// OpenNCCL loads NCCL for the ranks' GPUs. They join the group only when all ranks have
// started, because NCCL would wait forever for a missing rank.
func (j *Job) OpenNCCL(file string) (*comm.NCCLGroup, error) {
	n, err := comm.OpenNCCL(file)
	if err != nil {
		return nil, err
	}
	own := j.program.Manifest().Partition.Ranks[j.launch.Rank]
	r := n.Group(j.launch.Rank, j.launch.Ranks, j.launch.Rank-own.TPRank, own.TPSize)
	j.nccl.Store(r)
	return r, nil
}

// do runs f on the control channel's thread. If a rank is lost and f does not return
// soon, do returns without it: f may be blocked in a library.
func (j *Job) do(f func() error) error {
	done := make(chan error, 1)
	go j.control.Do(func() { done <- f() })
	select {
	case err := <-done:
		return err
	case <-j.control.Lost():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(releaseLimit):
		return &comm.RankError{Rank: j.endpoint.Failed()}
	}
}

// withWatchdog calls step with a timeout. NCCL calls wait forever for a lost rank, so
// the watchdog aborts them when the job has lost a rank or when the step exceeds limit.
func (j *Job) withWatchdog(limit time.Duration, step func() error) error {
	ring := j.nccl.Load()
	if ring == nil {
		return step()
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for w := (comm.Stopwatch{}); w.Elapsed() < limit; {
			if j.exiting.Load() {
				limit = min(limit, exitingStep)
			}
			select {
			case <-done:
				return
			case <-j.control.Lost():
				ring.Abort()
				return
			case <-tick.C:
			}
		}
		ring.Abort()
	}()
	return step()
}

// join creates the group of all ranks' GPUs. It must run on the control channel's
// thread.
func (l *Leader) join(o *opening, source string) error {
	ring := l.nccl.Load()
	id, err := ring.ID()
	if err != nil {
		return fmt.Errorf("rank 0: %w", err)
	}
	w := append(words(msgJoin), make([]int32, len(id)/4)...)
	copy(bytesOf(w[1:]), id[:])
	if err = l.broadcast(w); err == nil {
		err = ring.Join(id)
	}
	if err != nil {
		return err
	}
	return l.replies(o, source)
}

// join joins the group on a worker.
func (f *worker) join(w []int32) error {
	var id comm.NCCLID
	ring, r := f.nccl.Load(), f.status
	switch {
	case copy(id[:], bytesOf(w)) != len(id):
		return fmt.Errorf("bug: rank 0 sent an NCCL id of %d words", len(w))
	case ring == nil:
		r.Error = "rank 0 reaches the other GPUs by NCCL, this rank does not: set IFLOWC_NCCL alike"
	default:
		if err := ring.Join(id); err != nil {
			r.Error = err.Error()
		}
	}
	return f.answer(&r)
}

// findLost finds the lost rank after an aborted step that does not identify it: the
// rank that shows no sign of life.
func (p *stepLoop) findLost(why error) error {
	for r := 1; r < len(p.part.Ranks); r++ {
		if _, err := p.takePongs(r); err != nil {
			return err
		}
	}
	if err := p.broadcast(words(msgPing)); err != nil {
		return err
	}
	limit := signLimit
	if p.exiting.Load() {
		limit = exitingSign
	}
	for r := 1; r < len(p.part.Ranks); r++ {
		sign, err := p.control.Await(r, comm.Pong, limit)
		if err == nil && sign == nil {
			p.control.Fail(r)
			err = &comm.RankError{Rank: r}
		}
		if err != nil {
			return err
		}
	}
	return &comm.RankError{Err: why}
}

// takePongs receives a rank's pending pongs, as many as it may owe, and reports whether there
// were any.
func (p *stepLoop) takePongs(rank int) (some bool, err error) {
	for range 256 {
		n, err := p.control.Probe(rank, comm.Pong)
		if err == nil && n > 0 {
			err = p.control.Recv(rank, comm.Pong, make([]byte, n))
		}
		if err != nil || n < 0 {
			return some, err
		}
		some = true
	}
	return some, nil
}

// lostUnnamed reports whether err means that NCCL lost a rank that is not yet
// identified.
func (j *Job) lostUnnamed(err error) bool {
	return errors.Is(err, device.ErrComm) && j.nccl.Load() != nil && j.endpoint.Failed() < 0
}
