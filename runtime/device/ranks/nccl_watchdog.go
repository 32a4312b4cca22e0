//go:build unix

package ranks

import (
	"errors"
	"fmt"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// What ranks that reach each other by NCCL wait for, after a step was given up:
// rank 0 for a sign of life, the others for what rank 0 makes of it, and all for
// calls that should end with the loss of a rank.
const (
	signLimit    = time.Second
	verdictLimit = 2 * time.Second
	releaseLimit = 3 * time.Second
)

// What they wait for a step and for a sign of life once the process was told to
// end by MPI's launcher: OpenMPI's kills the others two seconds after one has died.
const (
	hurriedStep = time.Second
	hurriedSign = time.Second / 2
)

// OpenNCCL opens NCCL for the ranks' GPUs. They join when all ranks have started:
// one that could not would be waited for without end.
func (j *Job) OpenNCCL(file string) (*comm.Ring, error) {
	n, err := comm.OpenNCCL(file)
	if err != nil {
		return nil, err
	}
	r := n.Ring(j.launch.Rank, j.launch.Ranks)
	j.ring.Store(r)
	return r, nil
}

// do runs f on the world's thread. When a rank is lost, f is not waited for any
// more where it does not end for that: it may be in a library that waits.
func (j *Job) do(f func() error) error {
	done := make(chan error, 1)
	go j.world.Do(func() { done <- f() })
	select {
	case err := <-done:
		return err
	case <-j.world.Lost():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(releaseLimit):
		return &comm.RankError{Rank: j.end.Failed()}
	}
}

// watched runs a step. NCCL's calls wait without end for a rank that is gone, so
// they are ended when the job has lost one, and when the step lasts longer than
// a rank may say nothing.
func (j *Job) watched(limit time.Duration, step func() error) error {
	ring := j.ring.Load()
	if ring == nil {
		return step()
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for w := (comm.Watch{}); w.Look() < limit; {
			if j.hurried.Load() {
				limit = min(limit, hurriedStep)
			}
			select {
			case <-done:
				return
			case <-j.world.Lost():
				ring.Abort()
				return
			case <-tick.C:
			}
		}
		ring.Abort()
	}()
	return step()
}

// join brings the GPUs of all ranks together; on the world's thread.
func (l *Leader) join(o *opening, source string) error {
	ring := l.ring.Load()
	id, err := ring.ID()
	if err != nil {
		return fmt.Errorf("rank 0: %w", err)
	}
	w := append(words(doJoin), make([]int32, len(id)/4)...)
	copy(bytesOf(w[1:]), id[:])
	if err = l.tell(w); err == nil {
		err = ring.Join(id)
	}
	if err != nil {
		return err
	}
	return l.replies(o, source)
}

// join is a worker's part of it.
func (f *worker) join(w []int32) error {
	var id comm.NCCLID
	ring, r := f.ring.Load(), f.said
	switch {
	case copy(id[:], bytesOf(w)) != len(id):
		return fmt.Errorf("bug: rank 0 names a job by %d words", len(w))
	case ring == nil:
		r.Error = "rank 0 reaches the other GPUs by NCCL, this rank does not: set IFLOWC_NCCL alike"
	default:
		if err := ring.Join(id); err != nil {
			r.Error = err.Error()
		}
	}
	return f.answer(&r)
}

// blame finds the rank for which a step was given up that nobody else could name:
// the one that shows no sign of life.
func (p *stepLoop) blame(why error) error {
	for r := 1; r < len(p.part.Ranks); r++ {
		if _, err := p.pongs(r); err != nil {
			return err
		}
	}
	if err := p.tell(words(doPing)); err != nil {
		return err
	}
	limit := signLimit
	if p.hurried.Load() {
		limit = hurriedSign
	}
	for r := 1; r < len(p.part.Ranks); r++ {
		sign, err := p.world.Receive(r, comm.Pong, limit)
		if err == nil && sign == nil {
			p.world.Fail(r)
			err = &comm.RankError{Rank: r}
		}
		if err != nil {
			return err
		}
	}
	return &comm.RankError{Err: why}
}

// pongs takes the signs of life that a rank has given, and says whether there
// was one.
func (p *stepLoop) pongs(rank int) (some bool, err error) {
	for {
		n, err := p.world.Look(rank, comm.Pong)
		if err == nil && n > 0 {
			err = p.world.Get(rank, comm.Pong, make([]byte, n))
		}
		if err != nil || n < 0 {
			return some, err
		}
		some = true
	}
}

// givenUp says that a step ended because NCCL did not reach a rank, and that
// nobody knows yet which.
func (j *Job) givenUp(err error) bool {
	return errors.Is(err, device.ErrComm) && j.ring.Load() != nil && j.end.Failed() < 0
}

// release ends the wait for steps in a library that waits for a lost rank.
func (m *remoteModel) release() {
	select {
	case <-m.world.Lost():
	case <-m.ended:
		return
	}
	select {
	case <-time.After(releaseLimit):
		m.fail(&comm.RankError{Rank: m.end.Failed()})
		close(m.stuck)
	case <-m.ended:
	}
}
