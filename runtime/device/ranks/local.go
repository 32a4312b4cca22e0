//go:build unix

package ranks

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// A member is a rank that runs in this process.
type member struct {
	rank int
	ctx  *device.Context
	end  end
	jobs chan func() // in order
	busy atomic.Int64
}

// work runs the member's jobs on a thread of its own, which ends with them.
func (m *member) work() {
	runtime.LockOSThread()
	for f := range m.jobs {
		f()
	}
}

// step runs one step; the time in which it waits for earlier stages is not work.
func (m *member) step(v *device.View, results bool) error {
	start, before := time.Now(), m.end.Counts().Waited()
	err := m.ctx.RunView(v, results)
	m.busy.Add(int64(time.Since(start) - (m.end.Counts().Waited() - before)))
	if errors.Is(err, device.ErrComm) && m.end.Failed() >= 0 {
		return &comm.RankError{Rank: m.end.Failed()}
	}
	if err != nil {
		return fmt.Errorf("rank %d of the model: %w", m.rank, err)
	}
	return nil
}

// local is a model whose ranks are all in this process.
type local struct {
	*Ensemble
	out     int // the rank with the results
	hub     *comm.Hub
	members []*member
	running sync.WaitGroup
	closed  bool
}

// A flight is a step under way.
type flight struct {
	view device.View
	left atomic.Int32
	done chan struct{}

	mu  sync.Mutex
	err error
}

func newFlight(c *device.Context, s device.DeviceStep, parts int) *flight {
	f := &flight{view: c.View(s), done: make(chan struct{})}
	f.left.Store(int32(parts))
	return f
}

// land notes that one part of the step has ended. What stopped a rank itself
// says more than that others could not reach it.
func (f *flight) land(err error) {
	if err != nil {
		f.mu.Lock()
		var unreached *comm.RankError
		if f.err == nil || errors.As(f.err, &unreached) && unreached.Err == nil {
			f.err = err
		}
		f.mu.Unlock()
	}
	if f.left.Add(-1) == 0 {
		close(f.done)
	}
}

// wait waits for a step's end. When a rank is lost, it may never end: then there
// is no other step, and why says which rank.
func (f *flight) wait(broken <-chan struct{}, why func() error) error {
	select {
	case <-f.done:
		return f.err
	case <-broken:
		return why()
	}
}

// failed ends the work of the ranks where one of them could not be reached.
func (b *breakage) failed(err error) error {
	var unreached *comm.RankError
	if errors.As(err, &unreached) {
		return b.fail(err)
	}
	return err
}

// Begin queues a step on every rank that takes part in it.
func (l *local) Begin(c *device.Context, s device.DeviceStep) (func() error, error) {
	if err := l.Why(); err != nil {
		return nil, err
	}
	members, out := l.members, l.out
	if l.program.Manifest().Graphs[s.Entry].Follows() {
		members, out = members[:1], 0
	}
	f := newFlight(c, s, len(members))
	for _, m := range members {
		m.jobs <- func() { f.land(l.failed(m.step(&f.view, m.rank == out))) }
	}
	return func() error { return f.wait(l.broken, l.Why) }, nil
}

// Run computes a step on every rank.
func (l *local) Run(c *device.Context, s device.DeviceStep) error {
	wait, err := l.Begin(c, s)
	if err != nil {
		return err
	}
	return wait()
}

// CopyPage copies a page on every rank, behind the steps that have begun.
func (l *local) CopyPage(to, from int32) error {
	for _, m := range l.members {
		m.jobs <- func() { m.ctx.CopyPage(to, from) }
	}
	return nil
}

// MoveRow moves a row on every rank, behind the steps that have begun.
func (l *local) MoveRow(toPage, toRow, fromPage, fromRow int) error {
	for _, m := range l.members {
		m.jobs <- func() { m.move(toPage, toRow, fromPage, fromRow) }
	}
	return nil
}

func (m *member) move(toPage, toRow, fromPage, fromRow int) {
	pages := []int32{int32(toPage), int32(fromPage)}
	m.ctx.MoveRow(pages, toRow, device.PageRows+fromRow)
}

// Stages is the number of groups of layers.
func (l *local) Stages() int { return l.part.Stages() }

// Busy is how long the first rank of each stage has computed.
func (l *local) Busy() []time.Duration {
	busy := make([]time.Duration, l.part.Stages())
	for _, m := range l.members {
		if r := l.part.Ranks[m.rank]; r.Member == 0 {
			busy[r.Stage] = time.Duration(m.busy.Load())
		}
	}
	return busy
}

// Close waits for the steps under way and ends the ranks. A rank that was lost
// may still be at work in memory that is then kept.
func (l *local) Close() {
	if l.closed {
		return
	}
	l.closed = true
	l.open.Store(nil)
	if l.Why() != nil {
		return
	}
	for _, m := range l.members {
		close(m.jobs)
	}
	l.running.Wait()
	for _, m := range l.members {
		if m.ctx != nil {
			m.ctx.Close()
		}
	}
	l.hub.Close()
}

func (l *local) counts() (list []comm.Counts) {
	for _, m := range l.members {
		list = append(list, m.end.Counts())
	}
	return list
}
