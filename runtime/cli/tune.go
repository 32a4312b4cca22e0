//go:build unix

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/device/tune"
	"github.com/iflowc/iflowc/runtime/kit/destination"
)

type tuneCmd struct {
	Out     string        `short:"o" type:"path" placeholder:"FILE" help:"Output file (default: this program's name with .profile, or .cuda.profile for a GPU)."`
	Budget  time.Duration `default:"60s" help:"Time to spend on samples; the first round always completes."`
	Rows    string        `placeholder:"LIST" help:"Row counts and ranges to measure, such as 1-16,32 (default: 1-64,96,128,192,256,384,512)."`
	Device  string        `placeholder:"cuda" help:"Measure a GPU: cuda or cuda:N (default: the CPU)."`
	Threads int           `placeholder:"N" help:"Threads (default: one per physical core)."`
	ISA     string        `name:"isa" placeholder:"NAME" help:"Instruction set (default: the best of this CPU)."`
	JSON    bool          `name:"json" help:"Print the profile as one JSON document."`
}

// Run measures the binary's own kernels on its own shapes and writes the
// profile, which later starts use.
func (c *tuneCmd) Run(ctx context.Context, m *model) error {
	if c.Threads < 0 || c.Threads > 4096 {
		return wrong(fmt.Errorf("--threads %d: expected a number between 1 and 4096", c.Threads))
	}
	rows, err := tune.ParseRows(c.Rows)
	if err != nil {
		return wrong(err)
	}
	if c.Device == "cpu" {
		c.Device = ""
	}
	out := c.place(m.Program)
	if err := destination.Check("-o", out); err != nil {
		return wrong(err)
	}
	measure := c.measure
	if c.Device != "" {
		measure = c.measureGPU
	}
	p, err := measure(ctx, m, rows)
	if err != nil {
		return err
	}
	if err := p.Write(out); err != nil {
		return wrong(err)
	}
	if c.JSON {
		return writeJSON(m.Stdout, p)
	}
	fmt.Fprintf(m.Stdout, "%s\nread bandwidth %.1f GB/s before, %.1f after\n", p.Device, p.Machine.ReadGBs[0], p.Machine.ReadGBs[1])
	for _, s := range p.Shapes {
		fmt.Fprintf(m.Stdout, "[%d, %d] %s: %s; regret %.1f %%\n", s.N, s.K, s.DType, s.Choice(), 100*s.Measured.Regret)
	}
	for _, s := range p.Splits {
		fmt.Fprintln(m.Stdout, s)
	}
	fmt.Fprintf(m.Stdout, "written to %s\n", out)
	return nil
}

func (c *tuneCmd) measure(ctx context.Context, m *model, rows []int) (*dispatch.Profile, error) {
	lib, err := m.bin.CPU(c.ISA)
	if err != nil {
		return nil, err
	}
	shapes, err := tune.MatmulShapes(m.manifest.Matmuls)
	if err != nil {
		return nil, err
	}
	machine := tune.ThisMachine()
	machine.ISA, machine.Threads, machine.Kernels = lib.ISA, c.Threads, m.manifest.Hash
	if machine.Threads == 0 {
		machine.Threads = cpu.DefaultThreads()
	}
	slab, err := tune.Slab(shapes, machine)
	if err != nil {
		return nil, err
	}
	d, err := tune.OpenLibrary(lib, machine.Threads, slab)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	bar := newProgress(m.Stderr, "measured", 0)
	defer bar.end()
	before := d.ReadGBs()
	cells, err := tune.Measure(ctx, d, shapes, tune.Options{Rows: rows, Budget: c.Budget, Progress: func(done, total int, what string) {
		bar.total = total
		bar.step(done)
	}})
	if err != nil {
		return nil, err
	}
	machine.ReadGBs = []float64{before, d.ReadGBs()}
	p := &dispatch.Profile{Format: dispatch.Format, Device: tune.Describe(machine), Order: "class", Machine: &machine}
	for i, s := range shapes {
		p.Shapes = append(p.Shapes, tune.Summarize(s, cells[i]))
	}
	return p, nil
}
