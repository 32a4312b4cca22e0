//go:build unix

package app

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/iflowc/iflowc/runtime/decode"
	"github.com/iflowc/iflowc/runtime/engine"
)

// A translator runs one source through the engine.
type translator struct {
	m        *model
	settings *settings
	output   int
	rows     [][]float32 // copies of the logits after each beam
}

// beams searches with several beams.
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

// fill makes the results of a source as long as the longest where the padding
// token is 0: transformers then takes the end token for padding, which its
// callers do not cut, and the same ids are promised.
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

// follow makes the sequences of the next beams from those of the last: the
// first branch of a beam goes on in its sequence, others in forks of it.
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

// greedy takes the likeliest token that the rules allow, until an end or the
// length.
func (t *translator) greedy(ctx context.Context, source []int32) ([]translation, error) {
	s := t.settings
	tokens := []int32{s.start}
	id, err := t.m.eng.AddQuery(engine.Query{Tokens: tokens, Source: source})
	if err != nil {
		return nil, err
	}
	defer t.m.eng.Remove(id)
	var logs []float32
	sum := 0.0
	for len(tokens) < s.options.MaxLength {
		if err := t.step(ctx, []engine.ID{id}); err != nil {
			return nil, err
		}
		if logs, err = decode.LogSoftmax(logs, t.rows[0]); err != nil {
			return nil, err
		}
		s.options.Rules.Apply(t.rows[0], tokens)
		best := 0
		for i, l := range t.rows[0] {
			if l > t.rows[0][best] {
				best = i
			}
		}
		sum += float64(logs[best])
		tokens = append(tokens, int32(best))
		if slices.Contains(s.options.Rules.EOS, int32(best)) {
			break
		}
		if err := t.m.eng.Commit(id, int32(best)); errors.Is(err, engine.ErrFull) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	score := sum / math.Pow(float64(max(1, len(tokens)-1)), s.options.LengthPenalty)
	return []translation{{Tokens: tokens, Score: float32(score)}}, nil
}
