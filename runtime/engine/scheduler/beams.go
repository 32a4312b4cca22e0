//go:build unix

package scheduler

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// A Search requests the most probable continuations of a prompt, by beam search.
type Search struct {
	Job
	Prompt  []int32
	Source  []int32 // encoder-decoders only
	Options decode.BeamOptions
	Best    int    // maximum number of hypotheses to return
	Ended   func() // as Generation.Ended
}

// Beams runs a beam search and returns the best hypotheses, best first.
func (s *Scheduler) Beams(ctx context.Context, q Search) ([]decode.Hypothesis, error) {
	wait, err := s.StartBeams(ctx, q)
	if err != nil {
		return nil, err
	}
	return wait()
}

// StartBeams queues a beam search, which ends when ctx is done. wait returns the best
// hypotheses, best first.
func (s *Scheduler) StartBeams(ctx context.Context, q Search) (wait func() ([]decode.Hypothesis, error), err error) {
	if s.out < 0 {
		return nil, errors.New("the model has no logits output, so it cannot generate")
	}
	search, err := decode.NewBeamSearch(q.Prompt, q.Options)
	if err != nil {
		return nil, err
	}
	t := &beams{Search: q, s: s, search: search, box: newMailbox[decode.Hypothesis](), span: span{arrived: time.Now()}}
	if err := s.submit(ctx, q.Job, t); err != nil {
		return nil, err
	}
	return func() (all []decode.Hypothesis, err error) {
		for {
			found, err := t.box.get(ctx)
			if err != nil || len(found) == 0 {
				return all, err
			}
			all = append(all, found...)
		}
	}, nil
}

// beams is the task of a Search. Its sequences share their full pages.
type beams struct {
	Search
	s      *Scheduler
	search *decode.BeamSearch
	box    *mailbox[decode.Hypothesis]
	span

	live  []engine.ID
	rows  [][]float32 // logits of each live sequence
	given int         // number of rows that are set
}

func (b *beams) slots() int  { return b.Options.Beams }
func (b *beams) tokens() int { return len(b.Prompt) + len(b.Source) }

func (b *beams) end(err error) {
	b.finished(err)
	b.box.close(err)
	if b.Ended != nil {
		b.Ended()
	}
}

func (b *beams) start(x *access) error {
	b.begun, b.prompt = time.Now(), b.tokens()
	id, err := x.add(engine.Query{Tokens: b.Prompt, Source: b.Source})
	b.live = []engine.ID{id}
	return err
}

// take stores a row. The rows of all beams may take several steps.
func (b *beams) take(r engine.Result) error {
	if at := slices.Index(b.live, r.ID); r.Ready && at >= 0 {
		for len(b.rows) < len(b.live) {
			b.rows = append(b.rows, nil)
		}
		row := r.Row(b.s.out, r.Rows-1)
		b.rows[at] = append(b.rows[at][:0], row[:min(b.s.opt.Vocab, len(row))]...)
		b.given++
	}
	return nil
}

func (b *beams) apply(x *access) (done bool, err error) {
	if b.given < len(b.live) {
		return false, nil
	}
	b.given = 0
	if b.generated == 0 {
		b.first = time.Now()
	}
	b.generated += len(b.live)
	x.s.count(x.e, 0, len(b.live)) // each row chooses a token
	branches, err := b.search.Step(b.rows[:len(b.live)])
	if err != nil {
		return false, err
	}
	if branches == nil {
		b.box.put(b.s.flush, b.search.Best(b.Best)...)
		return true, nil
	}
	return false, b.follow(x, branches)
}

// follow creates the sequences of the next beams: the first branch of a beam continues
// its sequence, further ones continue forks of it.
func (b *beams) follow(x *access, branches []decode.Branch) error {
	used := make([]bool, len(b.live))
	parent := func(br decode.Branch) int { return min(br.Parent, len(b.live)-1) }
	for _, br := range branches {
		used[parent(br)] = true
	}
	for i, id := range b.live {
		if !used[i] {
			x.remove(id)
		}
	}
	clear(used)
	next := make([]engine.ID, len(branches))
	for i, br := range branches {
		p := parent(br)
		if !used[p] {
			used[p], next[i] = true, b.live[p]
			continue
		}
		var err error
		if next[i], err = x.fork(b.live[p]); err != nil {
			return err
		}
	}
	b.live = next
	for i, br := range branches {
		if err := x.commit(next[i], br.Token); err != nil {
			return err
		}
	}
	return nil
}
