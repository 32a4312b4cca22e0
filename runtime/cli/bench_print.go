//go:build unix

package cli

import "fmt"

// print writes one row of the table.
func (b *bench) print(r benchRow, head bool) {
	w := b.m.Stdout
	if head {
		fmt.Fprintf(w, "%s, %s, %d threads%s", b.m.manifest.Name, r.ISA, r.Threads, r.Limits.text())
		if r.Limits.I8GOPS > 0 {
			fmt.Fprintf(w, ", computes %.0f GOP/s in int8, %.0f in f32", r.Limits.I8GOPS, r.Limits.F32GOPS)
		}
		fmt.Fprintf(w, "\n%-8s %6s %10s %10s %10s %8s %10s %8s %9s\n", "test", "batch", "tok/s min", "median", "max", "GB/s", "bandwidth", "peak", "roofline")
	}
	percent := func(p *float64) string {
		if p == nil {
			return "-"
		}
		return fmt.Sprintf("%.1f %%", *p*100)
	}
	fmt.Fprintf(w, "%-8s %6d %10.1f %10.1f %10.1f %8.2f %10s %8s %9s", r.Test, r.Batch, r.TokS.Min, r.TokS.Median, r.TokS.Max, r.GBS,
		percent(r.Bandwidth), percent(r.Peak), percent(r.Roofline))
	if r.SentS != nil {
		fmt.Fprintf(w, "  %.1f sentences/s (%.1f to %.1f)", r.SentS.Median, r.SentS.Min, r.SentS.Max)
	}
	if r.Stages != nil {
		fmt.Fprintf(w, "  %s", r.Stages)
	}
	fmt.Fprintln(w)
}
