package devicetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
)

// A Pipeline is a device of several stages that computes the fake model: each
// step passes through all stages, one goroutine each, in order, and the last one
// computes it. The stages before it hold a step until the next one is free.
type Pipeline struct {
	Lib    *device.Library
	Depth  int
	Stage  func(stage int, s device.DeviceStep) error // what a stage does with a step; nil: nothing
	mu     sync.Mutex
	most   int // steps at once
	flying int
}

// Most is the largest number of steps that were under way at once.
func (p *Pipeline) Most() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

func (p *Pipeline) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flying += n
	p.most = max(p.most, p.flying)
}

// Name, StateBytes, ArenaBytes and Open make it a device.
func (p *Pipeline) Name() string { return "pipeline" }

// StateBytes is the library's.
func (p *Pipeline) StateBytes(pages int) int64 { return p.Lib.StateBytes(pages) }

// ArenaBytes is the library's.
func (p *Pipeline) ArenaBytes(tokens, wanted, seqs int) int64 {
	return p.Lib.ArenaBytes(1, tokens, wanted, seqs)
}

// Open starts the stages.
func (p *Pipeline) Open(cfg *device.Config) (device.DeviceModel, error) {
	inner, err := p.Lib.Start(*cfg)
	if err != nil {
		return nil, err
	}
	m := &pipelined{p: p, inner: inner, busy: make([]time.Duration, p.Depth)}
	for range p.Depth {
		m.queues = append(m.queues, make(chan *passing, p.Depth))
	}
	for i := range p.Depth {
		m.ended.Go(func() { m.stage(i) })
	}
	return m, nil
}

// A pipelined is an opened Pipeline.
type pipelined struct {
	p      *Pipeline
	inner  *device.Context
	order  sync.Mutex // of steps, pages and rows on the inner model
	queues []chan *passing
	ended  sync.WaitGroup

	mu   sync.Mutex
	busy []time.Duration
}

// A passing is a step on its way.
type passing struct {
	c    *device.Context
	s    device.DeviceStep
	err  error
	done chan struct{}
}

func (m *pipelined) stage(i int) {
	for s := range m.queues[i] {
		start := time.Now()
		if m.p.Stage != nil && s.err == nil {
			s.err = m.p.Stage(i, s.s)
		}
		last := i == m.p.Depth-1
		if last && s.err == nil {
			s.err = m.compute(s.c, s.s)
		}
		m.mu.Lock()
		m.busy[i] += time.Since(start)
		m.mu.Unlock()
		if last {
			close(s.done)
		} else {
			m.queues[i+1] <- s
		}
	}
	if i+1 < m.p.Depth {
		close(m.queues[i+1])
	}
}

// compute runs a step on the inner model, with copies of its arrays.
func (m *pipelined) compute(c *device.Context, s device.DeviceStep) error {
	m.order.Lock()
	defer m.order.Unlock()
	in := m.inner
	for _, a := range [][2][]int32{
		{in.ID, c.ID}, {in.Pos, c.Pos}, {in.Seq, c.Seq}, {in.Slot, c.Slot}, {in.Types, c.Types}, {in.Want, c.Want}, {in.First, c.First}, {in.PageAt, c.PageAt},
		{in.Past, c.Past}, {in.Page, c.Page}, {in.XPageAt, c.XPageAt}, {in.XPage, c.XPage}, {in.XRows, c.XRows},
	} {
		copy(a[0], a[1])
	}
	in.Masked(s.MaskWords > 0)
	copy(in.Mask, s.Mask)
	if err := in.Run(s.Entry, s.Tokens, s.Wanted, s.Seqs, s.Types); err != nil {
		return err
	}
	for i := range in.Out {
		copy(c.Out[i], in.Out[i])
	}
	return nil
}

func (m *pipelined) Stages() int { return m.p.Depth }

func (m *pipelined) Busy() []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]time.Duration(nil), m.busy...)
}

func (m *pipelined) Begin(c *device.Context, s device.DeviceStep) (func() error, error) {
	m.p.count(1)
	x := &passing{c: c, s: s, done: make(chan struct{})}
	m.queues[0] <- x
	return func() error {
		<-x.done
		m.p.count(-1)
		return x.err
	}, nil
}

func (m *pipelined) Run(c *device.Context, s device.DeviceStep) error {
	wait, err := m.Begin(c, s)
	return errors.Join(err, wait())
}

func (m *pipelined) CopyPage(to, from int32) error {
	m.order.Lock()
	defer m.order.Unlock()
	m.inner.CopyPage(to, from)
	return nil
}

func (m *pipelined) MoveRow(toPage, toRow, fromPage, fromRow int) error {
	m.order.Lock()
	defer m.order.Unlock()
	pages := []int32{int32(toPage), int32(fromPage)}
	m.inner.MoveRow(pages, toRow, device.PageRows+fromRow)
	return nil
}

func (m *pipelined) Close() {
	close(m.queues[0])
	m.ended.Wait()
	m.inner.Close()
}

// OnPipeline is the fake model on a device of several stages.
func OnPipeline(t testing.TB, lib *device.Library, depth int, stage func(int, device.DeviceStep) error) (*device.Library, *Pipeline) {
	t.Helper()
	p := &Pipeline{Lib: lib, Depth: depth, Stage: stage}
	return device.OnDevice(p), p
}
