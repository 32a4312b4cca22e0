//go:build unix

package ranks

import (
	"cmp"
	"sync"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// A threadModel is an open model with all ranks in this process.
type threadModel struct {
	device.Uninstrumented
	*ThreadGroup
	out     int // index of the rank that returns the results
	hub     *comm.Hub
	runners []*runner
	running sync.WaitGroup
	closed  bool
}

// Submit queues a step on every rank that takes part in it.
func (l *threadModel) Submit(s *device.Step) func() error {
	if err := l.Why(); err != nil {
		return device.Ended(err)
	}
	runners, out := l.runners, l.out
	if l.program.Manifest().Graphs[s.Graph].Follows() {
		runners, out = runners[:1], 0
	}
	f := newPending(s, len(runners))
	for _, m := range runners {
		m.jobs <- func() { f.ended(l.failed(m.step(&f.step, m.rank == out))) }
	}
	return func() error { return f.wait(l.broken, l.Why) }
}

// CopyPage copies a page on every rank, after the steps submitted before.
func (l *threadModel) CopyPage(to, from int32) {
	l.each(func(c device.Context) { c.CopyPage(to, from) })
}

// MoveRow copies a row on every rank, after the steps submitted before.
func (l *threadModel) MoveRow(to, from device.Row) {
	l.each(func(c device.Context) { c.MoveRow(to, from) })
}

// CopyCell copies a cell on every rank, after the steps submitted before.
func (l *threadModel) CopyCell(to, from int32) {
	l.each(func(c device.Context) { c.CopyCell(to, from) })
}

// MoveInCells copies a row on every rank, after the steps submitted before.
func (l *threadModel) MoveInCells(to, from device.CellRow) {
	l.each(func(c device.Context) { c.MoveInCells(to, from) })
}

// PackAdapter packs an adapter for every rank.
func (l *threadModel) PackAdapter(a lora.Packer) (lora.Packer, error) { return packed(l.program, a) }

// SetAdapter loads or frees an adapter on every rank, after the steps submitted before.
func (l *threadModel) SetAdapter(number int32, a lora.Packer) error {
	if err := l.Why(); err != nil {
		return err
	}
	list, err := sharesOf(l.program, a)
	if err != nil {
		return err
	}
	if err = l.setAdapter(number, list); err != nil && a != nil {
		l.setAdapter(number, make(shares, len(l.runners))) // on the ranks that have loaded it
	}
	return err
}

func (l *threadModel) setAdapter(number int32, list shares) error {
	ended := make(chan error, len(l.runners))
	for i, m := range l.runners {
		m.jobs <- func() { ended <- m.setAdapter(number, list[i]) }
	}
	var first error
	for range l.runners {
		select {
		case err := <-ended:
			first = cmp.Or(first, err)
		case <-l.broken:
			return l.Why()
		}
	}
	return first
}

// each calls f with every rank's context, after the steps submitted before.
func (l *threadModel) each(f func(device.Context)) {
	for _, m := range l.runners {
		m.jobs <- func() { f(m.ctx) }
	}
}

// Counters returns how long the first rank of each stage was busy.
func (l *threadModel) Counters() device.Counters {
	busy := make([]time.Duration, l.part.Stages())
	for _, m := range l.runners {
		if r := l.part.Ranks[m.rank]; r.TPRank == 0 {
			busy[r.Stage] = time.Duration(m.busy.Load())
		}
	}
	return device.Counters{Busy: busy}
}

// Close waits for the steps in flight and closes the ranks. After the loss of a rank it
// frees nothing, because the lost rank may still access its memory.
func (l *threadModel) Close() {
	if l.closed {
		return
	}
	l.closed = true
	l.open.Store(nil)
	if l.Why() != nil {
		return
	}
	for _, m := range l.runners {
		close(m.jobs)
	}
	l.running.Wait()
	for _, m := range l.runners {
		m.close()
	}
	l.hub.Close()
}

func (l *threadModel) counts() (list []Counts) {
	for _, m := range l.runners {
		list = append(list, Counts{Counts: m.endpoint.Counts()})
	}
	return list
}
