package devicetest

import (
	"sync"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
)

// A Pipeline is a device of several stages that computes the fake model. Each
// step passes through all stages in order, one goroutine each, and the last one
// computes it. An earlier stage keeps a step until the next stage is free.
type Pipeline struct {
	Lib    device.Device
	Depth  int
	Stage  func(stage int, s *device.Step) error // called by a stage with each step; may be nil
	mu     sync.Mutex
	most   int // maximum number of steps in flight
	flying int
}

// Most returns the maximum number of steps that were in flight together.
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

// Info returns the library's properties, with as many steps in flight as
// stages.
func (p *Pipeline) Info() device.Info {
	info := p.Lib.Info()
	info.Name, info.InFlight = "pipeline", p.Depth
	return info
}

// ScratchBytes returns the library's scratch size.
func (p *Pipeline) ScratchBytes(cfg *device.Config) int64 { return p.Lib.ScratchBytes(cfg) }

// Peak is unknown.
func (p *Pipeline) Peak(device.Arithmetic, int, time.Duration) float64 { return 0 }

// Start starts the stages.
func (p *Pipeline) Start(cfg *device.Config) (device.Context, error) {
	inner, err := p.Lib.Start(cfg)
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
	device.Uninstrumented
	device.NoAdapters
	p      *Pipeline
	inner  device.Context
	order  sync.Mutex // held during a step, page copy or row copy of the inner model
	queues []chan *passing
	ended  sync.WaitGroup

	mu   sync.Mutex
	busy []time.Duration
}

// A passing is a step in the pipeline.
type passing struct {
	s    *device.Step
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
			s.err = m.compute(s.s)
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

// compute computes a step on the inner model.
func (m *pipelined) compute(s *device.Step) error {
	m.order.Lock()
	defer m.order.Unlock()
	return m.inner.Submit(s)()
}

func (m *pipelined) Counters() device.Counters {
	m.mu.Lock()
	defer m.mu.Unlock()
	return device.Counters{Busy: append([]time.Duration(nil), m.busy...)}
}

func (m *pipelined) Submit(s *device.Step) func() error {
	m.p.count(1)
	x := &passing{s: s, done: make(chan struct{})}
	m.queues[0] <- x
	return func() error {
		<-x.done
		m.p.count(-1)
		return x.err
	}
}

func (m *pipelined) CopyPage(to, from int32) {
	m.order.Lock()
	defer m.order.Unlock()
	m.inner.CopyPage(to, from)
}

func (m *pipelined) CopyCell(to, from int32) {
	m.order.Lock()
	defer m.order.Unlock()
	m.inner.CopyCell(to, from)
}

func (m *pipelined) MoveInCells(to, from device.CellRow) {
	m.order.Lock()
	defer m.order.Unlock()
	m.inner.MoveInCells(to, from)
}

func (m *pipelined) MoveRow(to, from device.Row) {
	m.order.Lock()
	defer m.order.Unlock()
	m.inner.MoveRow(to, from)
}

func (m *pipelined) Close() {
	close(m.queues[0])
	m.ended.Wait()
	m.inner.Close()
}

// OnPipeline returns the fake model on a device of several stages.
func OnPipeline(t testing.TB, lib device.Device, depth int, stage func(int, *device.Step) error) *Pipeline {
	t.Helper()
	return &Pipeline{Lib: lib, Depth: depth, Stage: stage}
}
