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
func (j *Job) OpenNCCL(file string) (*comm.NCCLGroup, error) {
	n, err := comm.OpenNCCL(file)
	if err != nil {
		return nil, err
	}
	r := n.Group(j.launch.Rank, j.launch.Ranks)
	j.nccl.Store(r)
	return r, nil
}

// do runs f on the thread of the control channel. When a rank is lost, f is not waited for any
// more where it does not end for that: it may be in a library that waits.
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

// withWatchdog runs a step. NCCL's calls wait without end for a rank that is gone, so
// they are ended when the job has lost one, and when the step lasts longer than
// a rank may say nothing.
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
			if j.hurried.Load() {
				limit = min(limit, hurriedStep)
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

// join brings the GPUs of all ranks together; on the thread of the control channel.
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

// join is a worker's part of it.
func (f *worker) join(w []int32) error {
	var id comm.NCCLID
	ring, r := f.nccl.Load(), f.said
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

// findLost finds the rank for which a step was given up that nobody else could name:
// the one that shows no sign of life.
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
	if p.hurried.Load() {
		limit = hurriedSign
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

// takePongs takes the signs of life that a rank has given, and says whether there
// was one.
func (p *stepLoop) takePongs(rank int) (some bool, err error) {
	for {
		n, err := p.control.Probe(rank, comm.Pong)
		if err == nil && n > 0 {
			err = p.control.Recv(rank, comm.Pong, make([]byte, n))
		}
		if err != nil || n < 0 {
			return some, err
		}
		some = true
	}
}

// lostUnnamed says that a step ended because NCCL did not reach a rank, and that
// nobody knows yet which.
func (j *Job) lostUnnamed(err error) bool {
	return errors.Is(err, device.ErrComm) && j.nccl.Load() != nil && j.endpoint.Failed() < 0
}

// release ends the wait for steps in a library that waits for a lost rank.
func (m *remoteModel) release() {
	select {
	case <-m.control.Lost():
	case <-m.ended:
		return
	}
	select {
	case <-time.After(releaseLimit):
		m.fail(&comm.RankError{Rank: m.endpoint.Failed()})
		close(m.stuck)
	case <-m.ended:
	}
}
