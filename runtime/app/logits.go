//go:build unix

package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/engine"
)

type logitsCmd struct {
	promptFlags `embed:""`
	engineFlags `embed:""`
	Last        int  `default:"1" placeholder:"1" help:"Of how many of the last tokens."`
	JSON        bool `name:"json" help:"Accepted for uniformity: the output is always JSON."`
}

// Run prints {"ids":[…],"logits":[[…],…]}.
func (c *logitsCmd) Run(ctx context.Context, m *model) error {
	if c.Last < 1 {
		return wrong(fmt.Errorf("--last %d: expected 1 or more", c.Last))
	}
	m.prefetch(&c.engineFlags)
	ids, err := m.prompt(&c.promptFlags)
	if err != nil {
		return err
	}
	if err := m.fits(ids); err != nil {
		return err
	}
	graph, err := m.graphWith("logits")
	if err != nil {
		return err
	}
	eng, err := m.engine(ctx, &c.engineFlags, engine.Options{Graph: graph, Context: len(ids)})
	if err != nil {
		return err
	}
	out := newRowWriter(m.Stdout)
	fmt.Fprintf(out.w, `{"ids":%s,"logits":[`, jsonInts(ids))
	at := eng.Output("logits")
	err = m.each(ctx, engine.Query{Tokens: ids, Last: c.Last}, func(r engine.Result) error {
		for i := range r.Rows {
			if err := out.row(r.Row(at, i)[:m.manifest.Vocab]); err != nil {
				return fmt.Errorf("logits: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprint(out.w, "]}\n")
	return out.w.Flush()
}

// each runs one query to the end of its tokens and hands over every step's
// result.
func (m *model) each(ctx context.Context, q engine.Query, visit func(engine.Result) error) error {
	id, err := m.eng.AddQuery(q)
	if err != nil {
		return err
	}
	defer m.eng.Remove(id)
	for {
		results, err := m.eng.Infer(ctx)
		if err != nil {
			return err
		}
		if err := visit(results[0]); err != nil || results[0].Ready {
			return err
		}
	}
}

// graphWith names the first graph that has an output.
func (m *model) graphWith(output string) (string, error) {
	var all []string
	for _, g := range m.manifest.Graphs {
		for _, o := range g.Outputs {
			if o.Name == output {
				return g.Name, nil
			}
			if !slices.Contains(all, o.Name) {
				all = append(all, o.Name)
			}
		}
	}
	return "", wrong(fmt.Errorf("%s has no output %q; it gives %q", m.manifest.Name, output, all))
}

// jsonInts spells ids as a JSON array.
func jsonInts(ids []int32) []byte {
	b := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Append(b, id)
	}
	return append(b, ']')
}
