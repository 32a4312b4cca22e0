//go:build unix

package cli

import (
	"context"
	"fmt"

	"github.com/iflowc/iflowc/runtime/engine"
)

type hiddenCmd struct {
	promptFlags  `embed:""`
	encoderFlags `embed:""`
	engineFlags  `embed:""`
	JSON         bool `name:"json" help:"Accepted for uniformity; the output is always JSON."`
}

// Run prints {"hidden":[[…],…]}, one row per token.
func (c *hiddenCmd) Run(ctx context.Context, m *model) error {
	m.prefetch(&c.engineFlags)
	ids, err := m.prompt(&c.promptFlags)
	if err != nil {
		return err
	}
	if err := m.fits(ids); err != nil {
		return err
	}
	graph, err := m.graphWith("hidden", "hidden")
	if err != nil {
		return err
	}
	eng, err := m.engine(ctx, &c.engineFlags, engine.Options{Graph: graph, Context: len(ids)})
	if err != nil {
		return err
	}
	at := eng.Output("hidden")
	query := engine.Query{Tokens: ids}
	if query.Types, err = m.types(&c.encoderFlags, len(ids)); err != nil {
		return err
	}
	rows := engine.Result.Tokens
	if eng.Graph().Outputs[at].Rows == "out_rows" {
		query.Last = -1
		rows = func(r engine.Result) int { return r.Rows }
	}
	out := newRowWriter(m.Stdout)
	fmt.Fprint(out.w, `{"hidden":[`)
	err = m.each(ctx, query, func(r engine.Result) error {
		for i := range rows(r) {
			if err := out.row(r.Row(at, i)); err != nil {
				return fmt.Errorf("hidden states: %w", err)
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
