//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/engine"
)

type classifyCmd struct {
	Text        []string `arg:"" optional:"" help:"Texts."`
	IDs         []string `name:"ids" sep:"none" placeholder:"1,2,3" help:"Text as token ids; repeat the flag for several texts."`
	Pair        string   `placeholder:"TEXT" help:"Second text of each pair, for models that classify pairs."`
	engineFlags `embed:""`
	JSON        bool `name:"json" help:"Print one JSON document."`
}

// A verdict holds the scores of a text's labels.
type verdict struct {
	Label  string    `json:"label"` // the most probable one
	Scores []float64 `json:"scores"`
	Logits []float32 `json:"logits"`
}

// Run prints each text's labels: {"outputs":[{"label":…,"scores":[…],"logits":[…]},…]}.
func (c *classifyCmd) Run(ctx context.Context, m *model) error {
	graph, err := m.graphWith("classify", "classes")
	if err != nil {
		return err
	}
	m.prefetch(&c.engineFlags)
	queries, texts, err := c.queries(m)
	if err != nil {
		return err
	}
	eng, err := m.engine(ctx, &c.engineFlags, batchOptions(graph, texts))
	if err != nil {
		return err
	}
	at := eng.Output("classes")
	out := make([]verdict, len(queries))
	err = m.batch(ctx, queries, func(i int, r engine.Result) (err error) {
		out[i], err = m.judge(r.Row(at, 0))
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(m.Stdout, struct {
			Outputs []verdict `json:"outputs"`
		}{out})
	}
	for _, v := range out {
		for i, s := range v.Scores {
			fmt.Fprintf(m.Stdout, "%7.4f  %s\n", s, m.label(i))
		}
	}
	return nil
}

// queries encodes the texts, or the pairs of texts with their token types.
func (c *classifyCmd) queries(m *model) (queries []engine.Query, texts [][]int32, err error) {
	if c.Pair == "" {
		if texts, err = m.texts(c.Text, c.IDs); err != nil {
			return nil, nil, err
		}
		for _, ids := range texts {
			queries = append(queries, engine.Query{Tokens: ids, Rows: []int{0}})
		}
		return queries, texts, nil
	}
	if len(c.IDs) > 0 || len(c.Text) == 0 {
		return nil, nil, wrong(errors.New("--pair goes with texts, not with ids"))
	}
	t, err := m.tokenizer()
	if err != nil {
		return nil, nil, err
	}
	for _, text := range c.Text {
		ids, types := t.EncodePair(text, c.Pair)
		if err := m.fits(ids); err != nil {
			return nil, nil, err
		}
		if m.tokenTypes() < 2 {
			types = nil
		}
		queries = append(queries, engine.Query{Tokens: ids, Types: types, Rows: []int{0}})
		texts = append(texts, ids)
	}
	return queries, texts, nil
}

// judge converts a row of class logits to scores: probabilities of exclusive
// labels, or of each label if several may hold, or the values themselves if the
// model's task is a regression (problem_type of config.json).
func (m *model) judge(row []float32) (verdict, error) {
	v := verdict{Logits: append([]float32(nil), row...), Scores: make([]float64, len(row))}
	best := 0
	for i, x := range row {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return v, fmt.Errorf("class %d is %v; the weights or the input are damaged", i, x)
		}
		if x > row[best] {
			best = i
		}
	}
	v.Label = m.label(best)
	switch problem := m.manifest.Problem; {
	case problem == "regression":
		for i, x := range row {
			v.Scores[i] = float64(x)
		}
	case problem == "multi_label_classification" || len(row) == 1:
		for i, x := range row {
			v.Scores[i] = 1 / (1 + math.Exp(-float64(x)))
		}
	default:
		softmax(v.Scores, row, row[best])
	}
	return v, nil
}

// softmax writes the probabilities of logits; top is the largest.
func softmax(to []float64, logits []float32, top float32) {
	sum := 0.0
	for i, x := range logits {
		to[i] = math.Exp(float64(x) - float64(top))
		sum += to[i]
	}
	for i := range to {
		to[i] /= sum
	}
}

// label returns a class's name in config.json, or its number.
func (m *model) label(i int) string {
	if i < len(m.manifest.Labels) {
		return m.manifest.Labels[i]
	}
	return fmt.Sprintf("LABEL_%d", i)
}
