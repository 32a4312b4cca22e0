//go:build unix

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

type fillCmd struct {
	Text        string `arg:"" help:"Text with the model's mask token, [MASK] or <mask> for each token to predict."`
	engineFlags `embed:""`
	TopK        int  `default:"5" placeholder:"5" help:"Tokens to print for each mask."`
	JSON        bool `name:"json" help:"Print one JSON document."`
}

// A guess holds the candidates for one mask.
type guess struct {
	Position   int         `json:"position"` // index of the mask among the tokens
	Candidates []candidate `json:"candidates"`
}

// A candidate is a token with its probability.
type candidate struct {
	ID          int32   `json:"id"`
	Token       string  `json:"token"`
	Text        string  `json:"text"`
	Probability float64 `json:"probability"`
}

// Run prints the most probable tokens of each mask, most probable first.
func (c *fillCmd) Run(ctx context.Context, m *model) error {
	if c.TopK < 1 {
		return wrong(fmt.Errorf("--top-k %d: expected 1 or more", c.TopK))
	}
	m.prefetch(&c.engineFlags)
	t, err := m.tokenizer()
	if err != nil {
		return err
	}
	ids, masks, err := m.masked(t, c.Text)
	if err != nil {
		return err
	}
	eng, err := m.engine(ctx, &c.engineFlags, engine.Options{Graph: encodeGraph, Context: len(ids), MaxOutRows: len(masks)})
	if err != nil {
		return err
	}
	at := eng.Output("logits")
	var out []guess
	err = m.each(ctx, engine.Query{Tokens: ids, Rows: masks}, func(r engine.Result) error {
		for i, mask := range masks {
			row := r.Row(at, i)
			list, err := mostProbable(t, row[:min(m.manifest.Vocab, len(row))], c.TopK)
			if err != nil {
				return err
			}
			out = append(out, guess{mask, list})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(m.Stdout, struct {
			Masks []guess `json:"masks"`
		}{out})
	}
	for i, g := range out {
		if len(out) > 1 {
			fmt.Fprintf(m.Stdout, "mask %d:\n", i+1)
		}
		for _, k := range g.Candidates {
			fmt.Fprintf(m.Stdout, "%7.4f  %s\n", k.Probability, k.Text)
		}
	}
	return nil
}

// masked encodes a text and finds its masks, at least one.
func (m *model) masked(t *tokenizer.Tokenizer, text string) (ids []int32, masks []int, err error) {
	mask, ok := t.Mask()
	if !ok {
		return nil, nil, wrong(fmt.Errorf("the tokenizer of %s has no mask token", m.manifest.Name))
	}
	spelling := t.Token(mask)
	for _, other := range []string{"[MASK]", "<mask>"} {
		text = strings.ReplaceAll(text, other, spelling)
	}
	if ids, err = m.encode(text); err != nil {
		return nil, nil, err
	}
	for i, id := range ids {
		if id == mask {
			masks = append(masks, i)
		}
	}
	if len(masks) == 0 {
		return nil, nil, wrong(errors.New("the text has no mask; write " + spelling + " for each token to predict"))
	}
	return ids, masks, m.fits(ids)
}

// mostProbable returns the k largest logits of a row with their probabilities.
func mostProbable(t *tokenizer.Tokenizer, logits []float32, k int) ([]candidate, error) {
	logs, err := decode.LogSoftmax(nil, logits)
	if err != nil {
		return nil, err
	}
	order := make([]int32, len(logs))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(logs[b], logs[a]) })
	out := make([]candidate, min(k, len(order)))
	for i := range out {
		id := order[i]
		out[i] = candidate{id, t.Token(id), t.Decode([]int32{id}, false), math.Exp(float64(logs[id]))}
	}
	return out, nil
}
