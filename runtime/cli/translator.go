//go:build unix

package cli

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A translator runs one source through the engine.
type translator struct {
	m        *model
	settings *translateSettings
	output   int
	drafter  speculate.Drafter // of a single text, or nil
	rows     [][]float32       // copies of the logits after each beam
}

// beams runs a beam search.
func (t *translator) beams(ctx context.Context, source []int32) ([]translation, error) {
	prompt := []int32{t.settings.start}
	search, err := decode.NewBeamSearch(prompt, t.settings.options)
	if err != nil {
		return nil, wrong(err)
	}
	id, err := t.m.eng.AddQuery(engine.Query{Tokens: prompt, Source: source})
	if err != nil {
		return nil, err
	}
	live := []engine.ID{id}
	defer func() {
		for _, id := range live {
			t.m.eng.Remove(id)
		}
	}()
	for {
		if err := t.step(ctx, live); err != nil {
			return nil, err
		}
		branches, err := search.Step(t.rows)
		if err != nil {
			return nil, err
		}
		if branches == nil {
			break
		}
		if live, err = t.follow(live, branches); err != nil {
			return nil, err
		}
	}
	var out []translation
	for _, h := range search.Best(t.settings.best) {
		out = append(out, translation{Tokens: h.Tokens, Score: h.Score})
	}
	t.fill(out)
	return out, nil
}

// fill pads the results of a source to the length of the longest if the padding
// token is 0. transformers then mistakes the end token for padding and callers
// do not cut it, and iflowc promises the same ids.
func (t *translator) fill(out []translation) {
	eos := t.settings.options.Rules.EOS
	if t.m.manifest.Pad != 0 || len(eos) == 0 {
		return
	}
	longest := 0
	for _, o := range out {
		longest = max(longest, len(o.Tokens))
	}
	for i := range out {
		for len(out[i].Tokens) < longest {
			out[i].Tokens = append(out[i].Tokens, eos[0])
		}
	}
}

// step computes the logits after each live sequence, in their order.
func (t *translator) step(ctx context.Context, live []engine.ID) error {
	for len(t.rows) < len(live) {
		t.rows = append(t.rows, nil)
	}
	t.rows = t.rows[:len(live)]
	for given := 0; given < len(live); {
		results, err := t.m.eng.Infer(ctx)
		if err != nil {
			return err
		}
		for _, r := range results {
			if at := slices.Index(live, r.ID); r.Rows > 0 && at >= 0 {
				row := r.Row(t.output, r.Rows-1)
				t.rows[at] = append(t.rows[at][:0], row[:min(t.m.manifest.Vocab, len(row))]...)
				given++
			}
		}
	}
	return nil
}

// follow makes the sequences of the next beams from the current ones: the first
// branch of a beam continues its sequence, others continue forks of it.
func (t *translator) follow(live []engine.ID, branches []decode.Branch) ([]engine.ID, error) {
	eng := t.m.eng
	used := make([]bool, len(live))
	for _, b := range branches {
		used[min(b.Parent, len(live)-1)] = true
	}
	for i, id := range live {
		if !used[i] {
			eng.Remove(id)
		}
	}
	clear(used)
	next := make([]engine.ID, len(branches))
	for i, b := range branches {
		parent := min(b.Parent, len(live)-1)
		if !used[parent] {
			used[parent], next[i] = true, live[parent]
			continue
		}
		var err error
		if next[i], err = eng.Fork(live[parent]); err != nil {
			return live, err
		}
	}
	for i, b := range branches {
		if err := eng.Commit(next[i], b.Token); err != nil {
			return next, err
		}
	}
	return next, nil
}

// single takes one token at a time, until an end token or the maximum length.
func (t *translator) single(ctx context.Context, source []int32) ([]translation, error) {
	s := t.settings
	sampler, err := s.newSampler()
	if err != nil {
		return nil, err
	}
	g := singleText{translator: t, sampler: sampler, tokens: []int32{s.start}}
	id, err := t.m.eng.AddQuery(engine.Query{Tokens: g.tokens, Source: source})
	if err != nil {
		return nil, err
	}
	defer t.m.eng.Remove(id)
	for g.ended = s.options.MaxLength <= 1; !g.ended; {
		results, err := t.m.eng.Infer(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			if r.Ready {
				err = g.take(r)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	score := g.sum / math.Pow(float64(max(1, len(g.tokens)-1)), s.options.LengthPenalty)
	return []translation{{Tokens: g.tokens, Score: float32(score)}}, nil
}

// A singleText is an unfinished text.
type singleText struct {
	*translator
	tokens  []int32 // starts with the start token
	sum     float64 // of their log-probabilities
	ended   bool
	logs    []float32 // scratch
	sampler *decode.Sampler
}

// take continues while the draft matches, and drafts again.
func (g *singleText) take(r engine.Result) error {
	begun := len(g.tokens)
	path, err := r.Walk(nil, func(node int, _ int32, _ []decode.TokenProb) (int32, bool, error) {
		row := r.Node(g.output, node)
		token, err := g.next(row[:min(g.m.manifest.Vocab, len(row))])
		return token, !g.ended, err
	})
	if err != nil || g.ended {
		return err
	}
	var draft speculate.Draft
	if g.drafter != nil {
		draft = r.Draft(g.drafter, path, g.tokens[begun:], g.tokens, g.settings.options.MaxLength-len(g.tokens))
	}
	eng, last := g.m.eng, g.tokens[len(g.tokens)-1]
	if err := eng.Advance(r.ID, path, last); errors.Is(err, engine.ErrFull) {
		g.ended = true
		return nil
	} else if err != nil {
		return err
	}
	return eng.Propose(r.ID, draft.Tree)
}

// next picks the token after a row.
func (g *singleText) next(row []float32) (token int32, err error) {
	if g.logs, err = decode.LogSoftmax(g.logs, row); err != nil {
		return 0, err
	}
	if token, err = g.sampler.Next(row, g.tokens); err != nil {
		return 0, err
	}
	options := &g.settings.options
	g.sum += float64(g.logs[token])
	g.tokens = append(g.tokens, token)
	g.ended = slices.Contains(options.Rules.EOS, token) || len(g.tokens) >= options.MaxLength
	return token, nil
}
