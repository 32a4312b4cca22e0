//go:build unix

package app

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/engine"
)

type embedCmd struct {
	Text         []string `arg:"" optional:"" help:"The texts."`
	IDs          []string `name:"ids" sep:"none" placeholder:"1,2,3" help:"A text as token ids; may be repeated."`
	encoderFlags `embed:""`
	engineFlags  `embed:""`
	Pooling      string `enum:"mean,cls,last,pooler" default:"mean" help:"What stands for a text: the mean of its tokens, its first or last token, or the model's pooler (${enum})."`
	Normalize    bool   `help:"Scale vectors to length 1."`
	JSON         bool   `name:"json" help:"Accepted for uniformity: the output is always JSON."`
}

// Run prints {"embeddings":[[…],…]}, the texts first, then those given as ids.
func (c *embedCmd) Run(ctx context.Context, m *model) error {
	output := "hidden"
	if c.Pooling == "pooler" {
		output = "pooled"
	}
	graph, err := m.graphWith("embed --pooling "+c.Pooling, output)
	if err != nil {
		return err
	}
	m.prefetch(&c.engineFlags)
	texts, err := m.texts(c.Text, c.IDs)
	if err != nil {
		return err
	}
	queries := make([]engine.Query, len(texts))
	for i, ids := range texts {
		queries[i] = engine.Query{Tokens: ids}
		if queries[i].Types, err = m.types(&c.encoderFlags, len(ids)); err != nil {
			return err
		}
	}
	eng, err := m.engine(ctx, &c.engineFlags, batchOptions(graph, texts))
	if err != nil {
		return err
	}
	at := eng.Output(output)
	wanted := eng.Graph().Outputs[at].Rows == "wanted"
	for i := range queries {
		switch {
		case c.Pooling == "pooler":
			queries[i].Rows = []int{0}
		case wanted && c.Pooling != "last":
			queries[i].Last = -1
		}
	}
	pools := make([]pool, len(texts))
	err = m.batch(ctx, queries, func(i int, r engine.Result) error {
		rows := r.Tokens()
		if wanted {
			rows = r.Rows
		}
		for k := range rows {
			pools[i].add(r.Row(at, k), c.Pooling)
		}
		return nil
	})
	if err != nil {
		return err
	}
	out := newRowWriter(m.Stdout)
	fmt.Fprint(out.w, `{"embeddings":[`)
	for i := range pools {
		if err := out.row(pools[i].vector(c.Pooling, c.Normalize)); err != nil {
			return fmt.Errorf("embedding: %w", err)
		}
	}
	fmt.Fprint(out.w, "]}\n")
	return out.w.Flush()
}

// A pool gathers the rows of one text.
type pool struct {
	first, last []float32
	sum         []float64
	n           int
}

func (p *pool) add(row []float32, pooling string) {
	if p.n == 0 {
		p.first = append(p.first, row...)
		p.sum = make([]float64, len(row))
	}
	p.n++
	switch pooling {
	case "last":
		p.last = append(p.last[:0], row...)
	case "mean":
		for i, v := range row {
			p.sum[i] += float64(v)
		}
	}
}

// vector is the text's vector.
func (p *pool) vector(pooling string, normalize bool) []float32 {
	v := p.first
	switch pooling {
	case "last":
		v = p.last
	case "mean":
		for i := range v {
			v[i] = float32(p.sum[i] / float64(p.n))
		}
	}
	if !normalize {
		return v
	}
	square := 0.0
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	scale := 1 / max(math.Sqrt(square), 1e-12)
	for i := range v {
		v[i] = float32(float64(v[i]) * scale)
	}
	return v
}

// texts gives the ids of texts and of lists of ids, at least one of them.
func (m *model) texts(texts, lists []string) ([][]int32, error) {
	var all [][]int32
	for _, text := range texts {
		ids, err := m.encode(text)
		if err != nil {
			return nil, err
		}
		all = append(all, ids)
	}
	for _, list := range lists {
		ids, err := m.ids(list)
		if err != nil {
			return nil, err
		}
		all = append(all, ids)
	}
	if len(all) == 0 {
		return nil, wrong(errors.New("expected a text, or token ids"))
	}
	for _, ids := range all {
		if err := m.fits(ids); err != nil {
			return nil, err
		}
	}
	return all, nil
}
