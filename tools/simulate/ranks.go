//go:build unix

package main

import (
	"errors"
	"sync"
	"time"

	"github.com/iflowc/iflowc/passes/cost"
	"github.com/iflowc/iflowc/runtime/device"
)

// Ranks is a device whose stages wait as long as a model would compute. Its
// logits select a next token that depends only on the token and its position.
type ranks struct {
	model   *cost.Model
	machine *cost.Machine
	plan    cost.Plan
	vocab   int
}

// Info has as many steps in flight as there are stages.
func (r *ranks) Info() device.Info {
	return device.Info{Name: "simulated", InFlight: len(r.plan), PageBytes: 1}
}

func (r *ranks) ScratchBytes(*device.Config) int64 { return 64 }

func (r *ranks) Peak(device.Arithmetic, int, time.Duration) float64 { return 0 }

// Start starts the ranks of all stages.
func (r *ranks) Start(*device.Config) (device.Context, error) {
	m := &running{ranks: r, busy: make([]time.Duration, len(r.plan))}
	for range len(r.plan) {
		m.queues = append(m.queues, make(chan *step, len(r.plan)))
	}
	for i, s := range r.plan {
		g := newGroup(r.machine.Group, len(s.Ranks))
		var others []chan *step
		for j := range s.Ranks[1:] {
			ch := make(chan *step, 1)
			others = append(others, ch)
			m.ended.Go(func() {
				var c clock
				for s := range ch {
					m.rank(i, j+1, &c, g, s)
					s.ranks.Done()
				}
			})
		}
		m.ended.Go(func() { m.stage(i, g, others) })
	}
	return m, nil
}

// A running is a set of running ranks.
type running struct {
	device.Uninstrumented
	device.NoAdapters
	*ranks
	queues []chan *step
	ended  sync.WaitGroup
	failed error // of the engine, which must not ask for everything

	mu   sync.Mutex
	busy []time.Duration
}

// A step is a step in the pipeline.
type step struct {
	s     *device.Step
	at    time.Time // arrival time at the next stage
	ranks sync.WaitGroup
	done  chan struct{}
}

// stage runs the first rank of a stage: it receives each step, passes it to the
// other ranks of the stage, and then to the next stage.
func (m *running) stage(i int, g *group, others []chan *step) {
	var c clock
	for s := range m.queues[i] {
		c.waitFor(s.at)
		begun := c.at
		s.ranks.Add(len(others))
		for _, ch := range others {
			ch <- s
		}
		m.rank(i, 0, &c, g, s)
		s.ranks.Wait()
		m.mu.Lock()
		m.busy[i] += c.at.Sub(begun)
		m.mu.Unlock()
		s.at = c.at
		if i+1 < len(m.queues) {
			m.queues[i+1] <- s
			continue
		}
		c.wait()
		m.answer(s)
		close(s.done)
	}
	for _, ch := range others {
		close(ch)
	}
	if i+1 < len(m.queues) {
		close(m.queues[i+1])
	}
}

// rank waits for the time of a step's layers on one rank.
func (m *running) rank(i, j int, c *clock, g *group, s *step) {
	c.waitFor(s.at)
	st, rows := m.plan[i], float64(s.s.Tokens)
	for _, l := range m.model.Layers[st.Lo:st.Hi] {
		gives := l.Gives
		l.Gives = nil
		c.spend(m.model.Layer(m.machine, st, l, rows, int(s.s.Past[0]), 0))
		for _, floats := range gives {
			g.exchange(j, c, rows*float64(floats*m.machine.Group.Float))
		}
	}
	if i == len(m.plan)-1 {
		c.spend(m.model.Layer(m.machine, st, m.model.Head, rows, 0, 0))
	} else {
		b := m.machine.Border
		c.spend(b.Latency.Mid + rows*float64(m.model.Hidden*b.Float)/b.Bandwidth)
	}
}

// answer writes the logits.
func (m *running) answer(s *step) {
	for r, t := range s.s.OutRow[:s.s.OutRows] {
		row := s.s.Out[0][r*m.vocab:][:m.vocab]
		clear(row)
		row[next(s.s.ID[t], s.s.Pos[t], m.vocab)] = 1
	}
}

// next returns the token that follows a token at a position.
func next(id, pos int32, vocab int) int32 { return (id*31 + pos*17 + 7) % int32(vocab) }

func (m *running) Counters() device.Counters {
	m.mu.Lock()
	defer m.mu.Unlock()
	return device.Counters{Busy: append([]time.Duration(nil), m.busy...)}
}

func (m *running) Submit(s *device.Step) func() error {
	x := &step{s: s, at: time.Now(), done: make(chan struct{})}
	m.queues[0] <- x
	return func() error { <-x.done; return m.failed }
}

var errFixed = errors.New("bug: a simulation neither forks sequences nor drafts")

func (m *running) CopyPage(int32, int32)          { m.failed = errFixed }
func (m *running) MoveRow(device.Row, device.Row) { m.failed = errFixed }
func (m *running) CopyCell(int32, int32)          { m.failed = errFixed }

func (m *running) MoveInCells(device.CellRow, device.CellRow) { m.failed = errFixed }

func (m *running) Close() {
	close(m.queues[0])
	m.ended.Wait()
}
