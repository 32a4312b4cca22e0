//go:build unix

package cli

import (
	"context"
	"fmt"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/trace"
)

// perOpRow is one test of bench --per-op.
type perOpRow struct {
	Test    string      `json:"test"`
	Batch   int         `json:"batch"`
	Steps   int         `json:"steps"`
	Seconds float64     `json:"seconds"` // of all steps
	ReadGBS float64     `json:"read_gb_s"`
	Regions []trace.Row `json:"regions"`
}

// perOp prints for every test the time of its steps by region, and the
// machine's read bandwidth.
func (c *benchCmd) perOp(ctx context.Context, m *model, b *bench, tests []benchTest) error {
	var sum *trace.Summary
	if err := b.eng.Trace(func(s device.StepTrace) { sum.Step(s) }); err != nil {
		return err
	}
	var out []perOpRow
	for _, batch := range c.Batch {
		for _, t := range tests {
			for i := range c.Reps + 1 {
				if i <= 1 { // the first one is a warm-up
					sum = trace.NewSummary(m.manifest)
				}
				b.meter.read()
				if _, err := t.once(b, ctx, t.n, batch); err != nil {
					return err
				}
			}
			limits := b.meter.limits()
			limit := limits.ReadGBS
			row := perOpRow{fmt.Sprint(t.name, t.n), batch, sum.Steps, float64(sum.NS) / 1e9, limit, sum.Rows()}
			out = append(out, row)
			if c.JSON {
				continue
			}
			fmt.Fprintf(m.Stdout, "%s, batch %d, %d threads, %s%s\n", row.Test, batch, b.eng.Options().Threads, b.eng.Device().Info().Name, limits.text())
			if err := sum.Write(m.Stdout, limit); err != nil {
				return err
			}
			fmt.Fprintln(m.Stdout)
		}
	}
	if c.JSON {
		return writeJSON(m.Stdout, out)
	}
	return nil
}
