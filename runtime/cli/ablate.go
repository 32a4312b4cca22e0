//go:build unix

package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine"
)

// An ablation is a model run without one choice.
type ablation struct {
	Without string `json:"without"`
	engine  *engine.Engine
	weights *device.Region // its own copy of the weights, or nil
}

// ablationRow is the gain of the choices in one test: the time without a choice
// over the time with it, in percent above 100. It has the median and the
// quartiles of the paired repetitions.
type ablationRow struct {
	Without string  `json:"without"`
	Test    string  `json:"test"`
	Batch   int     `json:"batch"`
	Gain    float64 `json:"gain_percent"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
}

// ablate runs every test with and without each choice, interleaved, and prints
// the gain of each. Choices of the compiler are compared between binaries: see
// against.
func (c *benchCmd) ablate(ctx context.Context, m *model, b *bench, tests []benchTest, opt engine.Options) error {
	list, err := c.ablations(m, b.eng, opt)
	defer func() {
		for _, a := range list {
			a.engine.Close()
			a.weights.Free()
		}
	}()
	if err != nil {
		return err
	}
	var rows []ablationRow
	for _, batch := range c.Batch {
		for _, t := range tests {
			got, err := b.compare(ctx, list, t, batch, c.Reps)
			if err != nil {
				return err
			}
			rows = append(rows, got...)
		}
	}
	return c.printAblation(m, rows)
}

func (c *benchCmd) printAblation(m *model, rows []ablationRow) error {
	if c.JSON {
		return writeJSON(m.Stdout, rows)
	}
	fmt.Fprintf(m.Stdout, "%-34s %-8s %6s %8s   %s\n", "without", "test", "batch", "gain", "half of the pairs")
	for _, r := range rows {
		fmt.Fprintf(m.Stdout, "%-34s %-8s %6d %+6.1f %%   %+.1f to %+.1f\n", r.Without, r.Test, r.Batch, r.Gain, r.Low, r.High)
	}
	return nil
}

// compare runs a test with all choices and without each one, interleaved.
func (b *bench) compare(ctx context.Context, list []ablation, t benchTest, batch, reps int) ([]ablationRow, error) {
	whole := b.eng
	defer func() { b.eng = whole }()
	logs := make([][]float64, len(list))
	for i := range reps + 1 {
		for k := range list {
			var took [2]time.Duration
			for j := range took {
				b.eng = whole
				if (i+j)%2 == 1 { // with, without; then without, with
					b.eng = list[k].engine
				}
				d, err := t.once(b, ctx, t.n, batch)
				if err != nil {
					return nil, err
				}
				took[(i+j)%2] = d
			}
			if i > 0 {
				logs[k] = append(logs[k], math.Log(took[1].Seconds()/took[0].Seconds()))
			}
		}
	}
	var rows []ablationRow
	for k, l := range logs {
		rows = append(rows, ablationOf(list[k].Without, fmt.Sprint(t.name, t.n), batch, l))
	}
	return rows, nil
}

// ablations opens the model once for each choice.
func (c *benchCmd) ablations(m *model, whole *engine.Engine, opt engine.Options) (list []ablation, err error) {
	weights, err := m.packed.Load(false)
	if err != nil {
		return nil, err
	}
	table, err := m.dispatchTable(&c.engineFlags)
	if err != nil {
		return nil, err
	}
	add := func(name string, opt engine.Options, table []byte, region *device.Region) error {
		data := weights
		if region != nil {
			data = region.Bytes
		}
		eng, err := engine.Open(engine.Model{Manifest: m.manifest, Device: whole.Device(), Weights: data, Dispatch: table}, opt)
		if err == nil {
			list = append(list, ablation{name, eng, region})
		}
		return err
	}
	opt.Threads, opt.Pin = whole.Options().Threads, c.Pin
	var impls []string
	for _, s := range m.manifest.Matmuls {
		for _, impl := range s.Impls {
			if !slices.Contains(impls, impl) {
				impls = append(impls, impl)
			}
		}
	}
	for _, impl := range impls {
		if err := add("choice of kernels: only "+impl, opt, onlyTable(m.manifest.Matmuls, table, impl), nil); err != nil {
			return list, err
		}
	}
	if opt.Threads > 1 {
		one, other := opt, opt
		one.Threads, other.Pin = 1, !c.Pin
		if err := add("more than one thread", one, table, nil); err != nil {
			return list, err
		}
		name := "free threads: pinned"
		if c.Pin {
			name = "pinned threads: free"
		}
		if err := add(name, other, table, nil); err != nil {
			return list, err
		}
	}
	region, err := smallPages(weights)
	if err != nil {
		return list, err
	}
	return list, add("huge pages", opt, table, region)
}

// onlyTable returns a dispatch table that uses one implementation for all matmuls
// that have it.
func onlyTable(matmuls []manifest.Matmul, table []byte, impl string) []byte {
	out := slices.Clone(table)
	for i, s := range matmuls {
		if j := slices.Index(s.Impls, impl); j >= 0 {
			row := out[i*dispatch.Rows:][:dispatch.Rows]
			for r := range row {
				row[r] = byte(j)
			}
		}
	}
	return out
}

// smallPages copies the weights to memory of ordinary pages.
func smallPages(weights []byte) (*device.Region, error) {
	region, err := device.Map(int64(len(weights)), "weights in small pages")
	if err != nil {
		return nil, err
	}
	region.SmallPages()
	copy(region.Bytes, weights)
	return region, nil
}
