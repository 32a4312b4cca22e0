//go:build unix

package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// Reasons why a sequence ended (finish_reason).
const (
	FinishStop   = "stop"   // an EOS token, complete structured output, or Stream.Stop
	FinishLength = "length" // Generation.Max tokens, or the context is full
)

// A Generation requests continuations of a prompt.
type Generation struct {
	Job
	Prompt   []int32
	Source   []int32           // encoder-decoders only
	Samplers []*decode.Sampler // one per continuation
	Max      int               // maximum tokens of each continuation; 0: only the prompt is computed
	EOS      []int32           // tokens that end a continuation
	Logprobs int               // number of most probable tokens to report with each token; -1: no log-probabilities
	Echo     bool              // also report log-probabilities of the prompt's tokens

	Ended   func()                   // called by the scheduler when the generation has ended; must not block; may be nil
	Drafter func() speculate.Drafter // returns the drafter of a continuation; nil: no speculative decoding
}

// An Event is a token of a continuation or of the prompt.
type Event struct {
	Index  int // of the continuation; -1: of the prompt
	Token  int32
	Finish string // FinishStop or FinishLength in the last event of a continuation, else ""
	End    bool   // the token is in EOS

	Logprob float64         // if requested
	Top     []decode.Ranked // most probable first
	First   bool            // of the prompt: its first token, which has no probability
	Cached  int             // with the first event: prompt tokens found in the prefix cache

	Drafted, Accepted int // with the last event of a step: drafted tokens computed, and accepted
}

// A Stream receives the events of a generation.
type Stream struct {
	box  *mailbox[Event]
	task *generate
	s    *Scheduler
}

// Generate starts a generation, which ends when ctx is done.
func (s *Scheduler) Generate(ctx context.Context, g Generation) (*Stream, error) {
	t := &generate{Generation: g, s: s, box: newMailbox[Event](), span: span{arrived: time.Now()}, stops: make([]atomic.Bool, len(g.Samplers))}
	if s.out < 0 {
		return nil, errors.New("the model has no logits output, so it cannot generate")
	}
	if err := s.submit(ctx, g.Job, t); err != nil {
		return nil, err
	}
	return &Stream{t.box, t, s}, nil
}

// Next waits for events and returns all that are there; none: the generation has ended.
func (s *Stream) Next(ctx context.Context) ([]Event, error) { return s.box.get(ctx) }

// Stop ends one continuation before its next token.
func (s *Stream) Stop(index int) { s.task.stops[index].Store(true) }

// generate is the task of a Generation.
type generate struct {
	Generation
	s   *Scheduler
	box *mailbox[Event]
	span
	stops []atomic.Bool

	prefix     engine.ID
	branches   []branch // empty until the prompt is computed
	fresh      bool     // the branches were created in this step
	events     []Event
	cached     int
	cachedSent bool // an event with cached was sent
	last       time.Time
}

// A branch is a continuation.
type branch struct {
	id        engine.ID
	history   []int32 // prompt and continuation
	step      []int32 // tokens chosen in this step
	path      []int   // accepted nodes of its draft in this step
	ended     bool
	count     int
	drafter   speculate.Drafter   // or nil
	draft     speculate.Draft     // for the next step
	observed  int                 // tokens of history that the drafter has observed
	draftFrom *engine.Result      // the result to draft from; nil: no draft
	row       []float32           // logits of its last token, while it waits for a token mask
	late      bool                // it waits for a token mask
	top       []decode.TokenLogit // scratch
}

func (g *generate) slots() int  { return max(1, len(g.Samplers)) }
func (g *generate) tokens() int { return len(g.Prompt) + len(g.Source) }

func (g *generate) start(x *access) (err error) {
	g.begun, g.prompt = time.Now(), g.tokens()
	q := engine.Query{Tokens: g.Prompt, Source: g.Source, TopK: g.topK()}
	if g.Echo {
		q.Last = -1
	}
	if len(g.Samplers) == 1 && g.chooses() {
		q.Choice = g.Samplers[0].Choice
	}
	g.prefix, err = x.add(q)
	return err
}

func (g *generate) end(err error) {
	g.finished(err)
	g.box.close(err)
	if g.Ended != nil {
		g.Ended()
	}
}

// take chooses the next tokens of the branch that a result belongs to.
func (g *generate) take(r engine.Result) error {
	if len(g.branches) == 0 {
		return g.takePrompt(r)
	}
	for i := range g.branches {
		b := &g.branches[i]
		if b.id == r.ID && !b.ended && r.Ready && r.Rows > 0 {
			return g.follow(i, b, r)
		}
	}
	return nil
}

// row returns output row i without logits that stand for no token.
func (g *generate) row(r engine.Result, i int) []float32 { return r.Row(g.s.out, i)[:g.vocab()] }

// vocab returns the number of logits that stand for a token.
func (g *generate) vocab() int { return min(g.s.opt.Vocab, g.s.eng.Graph().Outputs[g.s.out].Used) }

// takePrompt reads results of the prompt and, after the last one, starts the branches.
func (g *generate) takePrompt(r engine.Result) error {
	g.cached = r.Cached
	if g.Echo {
		if err := g.echo(r); err != nil {
			return err
		}
	}
	if !r.Ready {
		return nil
	}
	g.fresh = true
	g.branches = make([]branch, len(g.Samplers))
	now := time.Now()
	g.s.opt.Metrics.observeTTFT(now.Sub(g.arrived))
	g.first, g.last = now, now
	for i := range g.branches {
		b := &g.branches[i]
		b.history = append(make([]int32, 0, len(g.Prompt)+min(g.Max, 1024)), g.Prompt...)
		if g.Max == 0 {
			b.ended = true
			g.events = append(g.events, Event{Index: i, Token: -1, Finish: FinishLength})
			continue
		}
		if g.Drafter != nil {
			b.drafter, b.observed = g.Drafter(), len(g.Prompt)
			if draw := g.Samplers[i].Draws(); draw != nil {
				speculate.DrawBy(b.drafter, draw)
			}
		}
		if err := g.follow(i, b, r); err != nil {
			return err
		}
	}
	return nil
}

// follow chooses a branch's next tokens, along its draft as far as they agree. A branch
// that waits for its next token mask skips steps. If the mask is for the token after
// its last one, the branch keeps the row of logits. If it is for the token after a
// drafted one, it drops the row, and the step that follows computes it again.
func (g *generate) follow(i int, b *branch, r engine.Result) (err error) {
	r = r.SelectPath(g.s.out, g.vocab(), g.Samplers[i].Path)
	b.late = false
	parked := -2 // the node after which the mask is missing; -2: none
	b.path, err = r.Walk(b.draft.From, func(node int, drafted int32, from []decode.TokenProb) (int32, bool, error) {
		row := r.RowOf(g.s.out, node, g.vocab(), b.top[:0])
		if !g.Samplers[i].Ready(g.s.notify) {
			if parked = node; node < 0 {
				b.row, b.late = append(b.row[:0], row.Logits()...), true
			}
			return -1, false, nil
		}
		b.top = row.Top
		err := g.choose(i, b, row, drafted, from)
		return b.history[len(b.history)-1], !b.ended, err
	})
	if n := len(g.events); n > 0 && err == nil {
		g.events[n-1].Drafted, g.events[n-1].Accepted = r.Drafted, len(b.path)
	}
	if parked != -2 {
		b.path, b.draft = b.path[:max(0, len(b.path)-1)], speculate.Draft{}
		return err
	}
	if err != nil || b.ended || b.drafter == nil {
		return err
	}
	if r.Undrafted(b.drafter) {
		b.draft = speculate.Draft{}
	} else {
		b.draftFrom = &r
	}
	return nil
}

// late reports whether a branch waits for its token mask.
func (g *generate) late() bool {
	return slices.ContainsFunc(g.branches, func(b branch) bool { return b.late && !b.ended })
}

// catchUp chooses the next tokens of the branches with masks that have arrived; picked
// reports whether there were any.
func (g *generate) catchUp() (picked bool, err error) {
	for i := range g.branches {
		b := &g.branches[i]
		if !b.late || b.ended || !g.Samplers[i].Ready(g.s.notify) {
			continue
		}
		picked = true
		b.late, b.path, b.draft = false, nil, speculate.Draft{}
		if err := g.choose(i, b, decode.Row{Logits: func() []float32 { return b.row }}, -1, nil); err != nil {
			return picked, err
		}
	}
	return picked, nil
}

// drafts reports whether a branch needs a draft.
func (g *generate) drafts() bool {
	return slices.ContainsFunc(g.branches, func(b branch) bool { return b.draftFrom != nil })
}

// draft drafts for the branches, one after another.
func (g *generate) draft() {
	for i := range g.branches {
		if b := &g.branches[i]; b.draftFrom != nil {
			b.draft = b.draftFrom.Draft(b.drafter, b.path, b.history[b.observed:], b.history, g.Max-b.count)
			b.draftFrom, b.observed = nil, len(b.history)
		}
	}
}

// choose picks a branch's next token from a row of logits and adds its event.
func (g *generate) choose(i int, b *branch, row decode.Row, drafted int32, from []decode.TokenProb) error {
	token, err := g.Samplers[i].JudgeRow(row, b.history, drafted, from)
	if err != nil {
		return err
	}
	b.history = append(b.history, token)
	b.step = append(b.step, token)
	b.count++
	e := Event{Index: i, Token: token, End: slices.Contains(g.EOS, token)}
	if g.Logprobs >= 0 {
		if err := e.rank(row.Logits(), g.Logprobs); err != nil {
			return err
		}
	}
	switch {
	case e.End || g.Samplers[i].Done():
		e.Finish = FinishStop
	case b.count == g.Max || len(b.history) > g.s.eng.Options().Context:
		e.Finish = FinishLength
	}
	b.ended = e.Finish != ""
	g.events = append(g.events, e)
	return nil
}

// apply commits the chosen tokens, forks the prompt for further continuations, and
// sends the events.
func (g *generate) apply(x *access) (done bool, err error) {
	if g.fresh {
		if err := g.fork(x); err != nil {
			return false, err
		}
	}
	if len(g.branches) > 0 {
		x.s.count(x.e, 0, g.measure())
	}
	done = len(g.branches) > 0
	for i := range g.branches {
		b := &g.branches[i]
		if !b.ended && g.stops[i].Load() {
			b.ended = true
			g.events = append(g.events, Event{Index: i, Token: -1, Finish: FinishStop})
		}
		if len(b.step) > 0 && !b.ended {
			if err := x.advance(b.id, b.path, b.step[len(b.step)-1], b.draft.Tree); errors.Is(err, engine.ErrFull) {
				b.ended = true
				g.events = append(g.events, Event{Index: i, Token: -1, Finish: FinishLength})
			} else if err != nil {
				return false, err
			}
		}
		b.step = b.step[:0]
		if b.ended && b.id >= 0 {
			x.remove(b.id)
			b.id = -1
		}
		done = done && b.ended
	}
	g.publish()
	return done, nil
}

// fork assigns a sequence to every branch: the first continues the prompt's sequence,
// the others are forks of it.
func (g *generate) fork(x *access) (err error) {
	g.fresh = false
	g.branches[0].id = g.prefix
	defer g.setChoices(x)
	for i := range g.branches[1:] {
		b := &g.branches[i+1]
		if b.id = -1; b.ended {
			continue
		}
		if b.id, err = x.fork(g.prefix); err != nil {
			return err
		}
	}
	return nil
}

// measure records the inter-token latency and returns the number of generated tokens.
// Tokens of one step share the time since the previous step.
func (g *generate) measure() (total int) {
	now := time.Now()
	for i := range g.branches {
		b := &g.branches[i]
		n := len(b.step)
		total += n
		if b.count == n && n > 0 {
			n-- // the first token counts as TTFT
		}
		for range n {
			g.s.opt.Metrics.observeITL(now.Sub(g.last) / time.Duration(len(b.step)))
		}
	}
	g.last = now
	return total
}

// publish sends the events of the step.
func (g *generate) publish() {
	if len(g.events) == 0 {
		return
	}
	if !g.cachedSent {
		g.cachedSent, g.events[0].Cached = true, g.cached
	}
	for _, e := range g.events {
		if e.Finish != "" {
			g.s.opt.Metrics.observeFinish(e.Finish, 1)
		}
	}
	g.box.put(g.s.flush, g.events...)
	g.events = g.events[:0]
}
