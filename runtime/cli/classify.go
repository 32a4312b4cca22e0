//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
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
	graph, err := m.graphWith("classify", m.judged())
	if err != nil {
		return err
	}
	m.prefetch(&c.engineFlags)
	queries, texts, err := c.queries(m)
	if err != nil {
		return err
	}
	if graph != encodeGraph { // a decoder's last token has read the text
		for i := range queries {
			queries[i].Rows, queries[i].Last = nil, 1
		}
	}
	eng, err := m.engine(ctx, &c.engineFlags, batchOptions(graph, texts))
	if err != nil {
		return err
	}
	at := eng.Output(m.judged())
	out := make([]verdict, len(queries))
	err = m.batch(ctx, queries, func(i int, r engine.Result) (err error) {
		out[i], err = m.judge(m.scored(r.Row(at, 0)))
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

// judged returns the name of the output that classify reads: the classifier's, or the
// logits of the next token if the model's files say that these score a text.
func (m *model) judged() string {
	if m.manifest.Score != nil {
		return "logits"
	}
	return "classes"
}

// scored returns the row itself, or the score that its logits of tokens give.
func (m *model) scored(row []float32) []float32 {
	s := m.manifest.Score
	if s == nil {
		return row
	}
	x := row[s.True]
	if s.False != nil {
		x -= row[*s.False]
	}
	return []float32{x}
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
	encoder, err := m.pairs()
	if err != nil {
		return nil, nil, err
	}
	for _, text := range c.Text {
		ids, types, err := encoder.encode(text, c.Pair, tokenizer.PairLimit{})
		if err != nil {
			return nil, nil, err
		}
		if err := m.fits(ids); err != nil {
			return nil, nil, err
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
	case len(row) == 1:
		score, err := m.relevance(row[0])
		v.Scores[0] = score
		return v, err
	case problem == "multi_label_classification":
		for i, x := range row {
			v.Scores[i] = sigmoid(float64(x))
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
