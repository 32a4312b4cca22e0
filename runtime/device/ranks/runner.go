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
	own      *device.Step // the rank's own arrays: for steps from another process, and for outputs that another rank returns
	view     device.Step  // the running step: the group's, with own arrays for outputs that another rank returns
	endpoint endpoint
	pages    int32 // of the KV cache
	cells    int32
	jobs     chan func() // executed in order
	busy     atomic.Int64
}

// work executes the jobs on an OS thread of its own, which ends when jobs is closed.
func (m *runner) work() {
	runtime.LockOSThread()
	for f := range m.jobs {
		f()
	}
}

// start maps the rank's memory and starts its threads. It first confines the calling
// thread to the given cores; the rank's threads inherit this affinity.
func (m *runner) start(k *Rank, cfg device.Config, weights []byte, cores []int) (err error) {
	cfg.Weights, cfg.Dispatch, cfg.Comm = weights, k.Dispatch, m.endpoint.Table()
	cfg.Sites, cfg.Orders = k.Manifest.Sites, k.Manifest.RowOrders
	cfg.PageBytes, cfg.CellBytes = k.Manifest.PageBytes(), k.Manifest.CellBytes()
	m.pages, m.cells = int32(cfg.Pages), int32(cfg.Cells)
	if m.own, err = device.NewStep(&cfg); err != nil {
		return err
	}
	cpu.Confine(cores)
	if m.ctx, err = k.Device.Start(&cfg); err != nil {
		m.own.Free()
	}
	return err
}

// begin calls start on the runner's own thread.
func (m *runner) begin(k *Rank, cfg device.Config, weights []byte, cores []int) error {
	done := make(chan error, 1)
	m.jobs <- func() { done <- m.start(k, cfg, weights, cores) }
	return <-done
}

// step runs one step. Its outputs go to the arrays of s if this rank returns the
// results, else to the rank's own arrays. Waiting for earlier stages does not count as
// busy time.
func (m *runner) step(s *device.Step, results bool) error {
	m.view = *s
	m.view.Largest = m.own.Largest // this rank computes only a part of the columns
	m.view.Kept, m.view.InPlace = nil, false
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

// close closes the rank's model, if it was started.
func (m *runner) close() {
	m.ctx.Close()
	m.own.Free()
}
