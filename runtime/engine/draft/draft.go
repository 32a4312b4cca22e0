//go:build unix

// Package draft implements speculative decoding with a draft model: a small model of
// the same vocabulary drafts tokens for a larger one (Leviathan et al. 2023,
// arXiv:2211.17192; algorithm 1 of Inferflow's report).
package draft

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// chunk is the number of prompt tokens that the model prefills between two steps of
// other sequences.
const chunk = 128

// A Model drafts for the sequences of another model. Its drafters may be used by
// several goroutines; a mutex serializes them.
type Model struct {
	mu     sync.Mutex
	eng    *engine.Engine // index of the logits among the outputs
	logits int            // index of the output
	vocab  int
	users  []*drafter // drafters with a sequence, most recently used last

	each   float64 // seconds to draft one token; 0: unknown
	record [len(marginPriors)]speculate.Rate
}

// New returns a draft model that owns eng from now on. The engine must compute logits
// and have no prefix cache; vocab is the size of its vocabulary.
func New(eng *engine.Engine, vocab int) (*Model, error) {
	m := &Model{eng: eng, logits: eng.Output("logits"), vocab: vocab}
	if m.logits < 0 || eng.Options().Prefix {
		return nil, fmt.Errorf("bug: an engine without logits, or with prefix caching, cannot draft")
	}
	for i := range m.record {
		m.record[i] = speculate.NewRate(marginPriors[i])
	}
	return m, nil
}

// Stats returns the engine's counters.
func (m *Model) Stats() engine.Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.eng.Stats()
}

// Drafter returns a drafter for one sequence.
func (m *Model) Drafter() speculate.Drafter {
	return &drafter{m: m, id: -1}
}

// margins classify drafted tokens by the distance between their two largest logits;
// marginPriors are the assumed acceptance rates of the classes before any are measured.
var (
	margins      = [...]float32{0.25, 0.5, 1, 1.5, 2.5, 4, 6}
	marginPriors = [len(margins) + 1]float64{0.35, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95}
)

// Constants of the back-off. A draft that is not expected to pay is reconsidered after
// pause tokens; then the measured time of a drafted token is multiplied by hope,
// because it is measured only while drafting. Drafts that lost time back off
// exponentially (speculate.Backoff).
const (
	pause = 8

	patience = 2 // plain steps that drafts may lose before they back off

	hope = 0.97
)

// A drafter drafts for one sequence of the target model. It mirrors it with a sequence
// of the draft model.
type drafter struct {
	m      *Model
	id     engine.ID // -1: no sequence
	tokens []int32   // of the sequence
	row    []float32 // scratch

	draw func(logits []float32) (int32, []decode.TokenProb, error) // samples a token; nil: argmax

	guess   []int32           // last draft
	class   []int             // margin class of each token
	backoff speculate.Backoff // counts tokens

	cost  float64 // duration of the last step with its draft, in plain steps; 0: nothing was drafted
	saved float64 // plain steps that drafts saved, as a decaying sum
}

// Observe implements speculate.Drafter.
func (d *drafter) Observe(tokens []int32) {
	for range tokens {
		d.backoff.Step()
	}
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	for i := 0; i < min(len(tokens), len(d.guess)); i++ {
		right := tokens[i] == d.guess[i]
		d.m.record[d.class[i]].Observe(right)
		if !right {
			break
		}
	}
	d.evaluate(len(tokens))
}

// evaluate compares the cost of the last draft with the number of tokens that the step
// added.
func (d *drafter) evaluate(tokens int) {
	if d.cost == 0 {
		return
	}
	d.saved = d.saved*3/4 + float64(tokens) - d.cost
	d.cost = 0
	if d.saved >= 0 {
		d.backoff.Reset()
	}
	if d.saved >= -patience {
		return
	}
	d.saved = 0
	d.backoff.Start()
}

// DrawBy implements speculate.Drawer.
func (d *drafter) DrawBy(draw func(logits []float32) (int32, []decode.TokenProb, error)) {
	d.draw = draw
}

// Propose implements speculate.Drafter. It drafts the model's greedy or sampled tokens
// as long as the next one is expected to pay for its own step and for its place in the
// step that verifies it.
func (d *drafter) Propose(history []int32, room speculate.Room) speculate.Draft {
	d.guess, d.class = d.guess[:0], d.class[:0]
	var from [][]decode.TokenProb
	if d.backoff.Active() || room.Open().Nodes < 1 {
		return speculate.Draft{}
	}
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	begin := time.Now()
	each := d.m.each * max(1, room.Alike) // the drafters of a step run one after another
	if d.worthwhile(room, each) == 0 {
		d.backoff.Pause(pause)
		d.m.each *= hope
		return speculate.Draft{}
	}
	fresh := d.id < 0
	if err := d.follow(history); err != nil {
		d.m.leave(d)
		return speculate.Draft{}
	}
	accepted, reach, rate := 0.0, 1.0, room.Rate(0, 0, 0)
	for n := 1; n <= room.Nodes; n++ {
		start := time.Now()
		ready, err := d.step(room.Others == 0 && n == 1)
		if err != nil || !ready {
			break // a longer prompt: prefill continues with the next call
		}
		token, margin := top(d.row)
		if n > 1 {
			d.m.took(time.Since(start))
		}
		class := classOf(margin)
		reach *= d.m.record[class].Value
		accepted += reach
		next := room.Rate(accepted, n, each*float64(n))
		if next <= rate && n > 1 {
			break
		}
		rate = max(rate, next)
		if d.draw != nil {
			drawn, probs, err := d.draw(d.row)
			if err != nil {
				break
			}
			token, from = drawn, append(from, probs)
		}
		d.guess, d.class = append(d.guess, token), append(d.class, class)
		if n == room.Nodes || d.m.commit(d, token) != nil {
			break
		}
	}
	if n := len(d.guess); n > 0 && room.Time != nil && !fresh { // prefill does not count
		d.cost = (room.Time(n) + time.Since(begin).Seconds()) / room.Time(0)
	}
	return speculate.Draft{Tree: speculate.Path(d.guess...), From: from}
}

// worthwhile returns how many tokens are worth drafting at the average acceptance rate.
func (d *drafter) worthwhile(room speculate.Room, each float64) int {
	p, weight := 0.0, 0.0
	for i := range d.m.record {
		p += d.m.record[i].Value * d.m.record[i].Weight
		weight += d.m.record[i].Weight
	}
	return room.Length(func(int) float64 { return p / weight }, room.Nodes, each)
}

// follow makes the drafter's sequence equal to history; it rewinds tokens that differ.
func (d *drafter) follow(history []int32) error {
	same := 0
	for same < min(len(d.tokens), len(history)-1) && d.tokens[same] == history[same] {
		same++
	}
	if d.id < 0 || same == 0 {
		return d.m.enter(d, history)
	}
	d.m.touch(d)
	if err := d.m.eng.Rewind(d.id, same); err != nil {
		return err
	}
	d.tokens = d.tokens[:same]
	for _, token := range history[same:] {
		if err := d.m.commit(d, token); err != nil {
			return err
		}
	}
	return nil
}

// step runs the engine until the sequence's last row of logits is computed, and copies
// it to d.row. If all is false, it runs only one step. It reports whether the row is
// computed.
func (d *drafter) step(all bool) (ready bool, err error) {
	for {
		results, err := d.m.eng.Infer(context.Background())
		if err != nil || len(results) == 0 {
			return false, err
		}
		for _, r := range results {
			if r.ID == d.id && r.Ready {
				d.row = append(d.row[:0], r.Row(d.m.logits, r.Rows-1)[:d.m.vocab]...)
				return true, nil
			}
		}
		if !all {
			return false, nil
		}
	}
}

// enter adds a new sequence for a drafter. If the engine is full, it removes that of
// the least recently used drafter.
func (m *Model) enter(d *drafter, history []int32) error {
	m.leave(d)
	for {
		id, err := m.eng.AddQuery(engine.Query{Tokens: history})
		if err == nil {
			d.id, d.tokens = id, append(d.tokens[:0], history...)
			m.users = append(m.users, d)
			return nil
		}
		if err != engine.ErrBusy || len(m.users) == 0 {
			return err
		}
		m.leave(m.users[0])
	}
}

// leave removes a drafter's sequence.
func (m *Model) leave(d *drafter) {
	for i, u := range m.users {
		if u == d {
			m.users = append(m.users[:i], m.users[i+1:]...)
			m.eng.Remove(d.id)
			break
		}
	}
	d.id, d.tokens = -1, d.tokens[:0]
}

// touch marks a drafter as the most recently used.
func (m *Model) touch(d *drafter) {
	for i, u := range m.users {
		if u == d {
			m.users = append(append(m.users[:i], m.users[i+1:]...), d)
			return
		}
	}
}

// took updates the time to draft a token: a faster one replaces it, a slower one is
// blended in.
func (m *Model) took(t time.Duration) {
	if s := t.Seconds(); m.each == 0 || s < m.each {
		m.each = s
	} else {
		m.each += (s - m.each) / 10
	}
}

func (m *Model) commit(d *drafter, token int32) error {
	err := m.eng.Commit(d.id, token)
	if err == nil {
		d.tokens = append(d.tokens, token)
	}
	return err
}

// Options returns the options of a draft model's engine for a target engine's options.
func Options(target engine.Options) engine.Options {
	return engine.Options{Threads: target.Threads, MaxSeqs: target.MaxSeqs, Context: target.Context, MaxTokens: chunk, Rewind: target.Draft}
}

// top returns the argmax and the distance of its logit to the second largest.
func top(row []float32) (token int32, margin float32) {
	first, second := float32(math.Inf(-1)), float32(math.Inf(-1))
	for i, l := range row {
		if l > second {
			if l > first {
				first, second, token = l, first, int32(i)
			} else {
				second = l
			}
		}
	}
	return token, first - second
}

func classOf(margin float32) int {
	for i, m := range margins {
		if margin < m {
			return i
		}
	}
	return len(margins)
}
