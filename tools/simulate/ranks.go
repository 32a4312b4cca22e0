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
		g := newGroup(r.machine, s)
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
	at    time.Time // arrival time at the next stage, and at last at rank 0
	begun time.Time // start on rank 0
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
		if i == 0 {
			s.begun = begun
		}
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
			_, delay := m.handOn(i, s)
			s.at = s.at.Add(seconds(delay))
			m.queues[i+1] <- s
			continue
		}
		c.wait()
		m.answer(s)
		s.at = s.at.Add(seconds(m.machine.Answer(m.plan, float64(s.s.OutRows), 0)))
		close(s.done)
	}
	for _, ch := range others {
		close(ch)
	}
	if i+1 < len(m.queues) {
		close(m.queues[i+1])
	}
}

// handOn returns what it takes to send a step to the stage after stage i.
func (m *running) handOn(i int, s *step) (busy, delay float64) {
	return m.machine.HandOn(m.plan, i, float64(s.s.Tokens*m.model.Hidden*m.machine.Border.Float), 0)
}

// rank waits for the time of a step's layers on one rank. A rank in another host
// than rank 0 waits for the step's message, too.
func (m *running) rank(i, j int, c *clock, g *group, s *step) {
	c.waitFor(s.at)
	st, rows, past := m.plan[i], float64(s.s.Tokens), int(s.s.Past[0])
	if m.machine.Devices[st.Ranks[j]].Host != m.machine.Devices[m.plan[0].Ranks[0]].Host {
		c.waitFor(s.begun.Add(seconds(m.machine.Told(m.plan, i, rows, past, 0))))
	}
	for _, l := range m.model.Layers[st.Lo:st.Hi] {
		m.layer(st, l, j, c, g, rows, past)
	}
	if i == len(m.plan)-1 {
		m.layer(st, m.model.Head, j, c, g, rows, 0)
	} else {
		busy, _ := m.handOn(i, s)
		c.spend(busy)
	}
}

// layer waits for the time of a layer, or of the head, on rank j of a stage.
func (m *running) layer(st cost.Stage, l cost.Part, j int, c *clock, g *group, rows float64, past int) {
	gives, gathers := l.Gives, l.Gathers
	l.Gives, l.Gathers = nil, nil
	c.spend(m.model.Layer(m.machine, st, l, rows, past, 0))
	for _, floats := range gives {
		g.exchange(j, c, rows*float64(floats))
	}
	for _, floats := range gathers {
		g.gather(j, c, rows*float64(floats)/float64(len(st.Ranks)))
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
	return func() error {
		<-x.done
		time.Sleep(time.Until(x.at))
		return m.failed
	}
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
