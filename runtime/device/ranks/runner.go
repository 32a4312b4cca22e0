//go:build unix

package ranks

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// A runner runs one rank in this process.
type runner struct {
	rank     int
	ctx      device.Context
	own      *device.Step // arrays of the rank's own: for a step that came from another process, and for outputs that another rank gives
	view     device.Step  // the step that runs: the group's, but for those outputs
	endpoint endpoint
	jobs     chan func() // in order
	busy     atomic.Int64
}

// work runs the jobs on a thread of its own, which ends with them.
func (m *runner) work() {
	runtime.LockOSThread()
	for f := range m.jobs {
		f()
	}
}

// start maps the memory of a rank and starts its threads, which stay on the set
// of cores that this thread is then confined to.
func (m *runner) start(k *Rank, cfg device.Config, weights []byte, cores []int) (err error) {
	cfg.Weights, cfg.Dispatch, cfg.PageBytes, cfg.Comm = weights, k.Dispatch, k.pageBytes(), m.endpoint.Table()
	if m.own, err = device.NewStep(&cfg); err != nil {
		return err
	}
	cpu.Confine(cores)
	if m.ctx, err = k.Device.Start(&cfg); err != nil {
		m.own.Free()
	}
	return err
}

// begin is start on the runner's own thread.
func (m *runner) begin(k *Rank, cfg device.Config, weights []byte, cores []int) error {
	done := make(chan error, 1)
	m.jobs <- func() { done <- m.start(k, cfg, weights, cores) }
	return <-done
}

// step runs one step. Its outputs go to the step's arrays where this rank gives
// the results, else to the rank's own. The time in which it waits for earlier
// stages is not work.
func (m *runner) step(s *device.Step, results bool) error {
	m.view = *s
	m.view.Greedy = m.own.Greedy // of a part of the columns
	if !results {
		m.view.Out = m.own.Out
	}
	start, before := time.Now(), m.endpoint.Counts().Waited()
	err := m.ctx.Submit(&m.view)()
	m.busy.Add(int64(time.Since(start) - (m.endpoint.Counts().Waited() - before)))
	if errors.Is(err, device.ErrComm) && m.endpoint.Failed() >= 0 {
		return &comm.RankError{Rank: m.endpoint.Failed()}
	}
	if err != nil {
		return fmt.Errorf("rank %d of the model: %w", m.rank, err)
	}
	return nil
}

// close ends a rank that was started.
func (m *runner) close() {
	m.ctx.Close()
	m.own.Free()
}
