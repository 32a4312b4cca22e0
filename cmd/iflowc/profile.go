//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/device/tune"
	"github.com/iflowc/iflowc/runtime/kit/destination"
	"github.com/iflowc/iflowc/runtime/kit/plot"
	"github.com/iflowc/iflowc/spec"
	"github.com/iflowc/iflowc/templates"
)

type profileCmd struct {
	modelFlags
	Target  string        `help:"Device to measure: cpu, cuda, or cuda-emu (emulated GPU, for tests)." enum:"cpu,cuda,cuda-emu" default:"cpu"`
	Out     string        `short:"o" help:"Output file (default: the model's name with .profile, or .cuda.profile for a GPU)." type:"path" placeholder:"FILE"`
	Plot    string        `help:"Also plot the times and crossover points." type:"path" placeholder:"FILE.svg|.png"`
	Rows    string        `help:"Row counts and ranges to measure, such as 1-16,32 (default: 1-64,96,128,192,256,384,512)." placeholder:"LIST"`
	Types   string        `help:"Weight types to measure (default: the model's own)." placeholder:"LIST"`
	Budget  time.Duration `help:"Time to spend on samples; the first round always completes." default:"60s"`
	Threads int           `help:"Threads (default: one per physical core)." placeholder:"N"`
	ISA     string        `name:"isa" help:"Instruction set (default: the best of this CPU)." placeholder:"NAME"`
	CC      string        `name:"cc" help:"C compiler (default: the first of cc, gcc, clang)." placeholder:"PATH"`
	JSON    bool          `name:"json" help:"Print the profile as one JSON document."`
}

// Run measures the implementations of the model's matmuls and writes the
// profile.
func (c *profileCmd) Run(ctx context.Context) error {
	rows, err := tune.ParseRows(c.Rows)
	if err != nil {
		return usageError{err}
	}
	if c.Plot != "" {
		if err := plot.Check(c.Plot); err != nil {
			return usageError{fmt.Errorf("--plot %w", err)}
		}
		if err := destination.Check("--plot", c.Plot); err != nil {
			return usageError{err}
		}
	}
	if c.Target == "cuda" || c.Target == "cuda-emu" {
		return c.runOnGPU(ctx)
	}
	if c.Threads == 0 {
		c.Threads = cpu.DefaultThreads()
	}
	if c.Threads < 1 || c.Threads > 1024 {
		return usageError{fmt.Errorf("--threads %d: must be between 1 and 1024", c.Threads)}
	}
	m, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	if c.Out == "" {
		c.Out = m.Spec.Name + ".profile"
	}
	if err := destination.Check("-o", c.Out); err != nil {
		return usageError{err}
	}
	cpu, err := m.Step()
	if err != nil {
		return err
	}
	cat, err := compiler.Kernels()
	if err != nil {
		return err
	}
	shapes, kernels, err := probeShapes(cat, cpu.Manifest.Matmuls, c.Types)
	if err != nil {
		return usageError{err}
	}
	p, err := c.measure(ctx, cat, shapes, kernels, rows)
	if err != nil {
		return err
	}
	return c.deliver(p)
}

// measure compiles the kernels with the driver and times them.
func (c *profileCmd) measure(ctx context.Context, cat *templates.Catalog, shapes []tune.Shape, kernels []probeKernel, rows []int) (*dispatch.Profile, error) {
	bar := newProgress()
	defer bar.done()
	machine := tune.ThisMachine()
	machine.Threads = c.Threads
	slab, err := tune.Slab(shapes, machine)
	if err != nil {
		return nil, err
	}
	path, err := c.library(ctx, bar, cat, kernels, &machine)
	if err != nil {
		return nil, err
	}
	d, err := tune.Open(path, c.Threads, slab)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	before := d.ReadGBs()
	cells, err := tune.Measure(ctx, d, shapes, tune.Options{Rows: rows, Budget: c.Budget, Progress: bar.cells})
	if err != nil {
		return nil, err
	}
	machine.ReadGBs = []float64{tenth(before), tenth(d.ReadGBs())}
	p := &dispatch.Profile{Format: dispatch.Format, Device: tune.Describe(machine), Order: c.Order, Machine: &machine}
	for i, s := range shapes {
		p.Shapes = append(p.Shapes, tune.Summarize(s, cells[i]))
	}
	return p, nil
}

// joined adds the shapes of an older file of that name to the profile, if it
// was measured on such a machine with the same kernels: one file can serve
// several models.
func (c *profileCmd) joined(p *dispatch.Profile) (*dispatch.Profile, error) {
	old, err := dispatch.ReadBeside(c.Out)
	if err != nil {
		return nil, usageError{fmt.Errorf("%w; -o must name a profile or a new file", err)}
	}
	if old == nil {
		return p, nil
	}
	m := old.Machine
	if m == nil || !tune.Matches(*m, *p.Machine) || m.Kernels != p.Machine.Kernels || m.CC != p.Machine.CC || old.Order != p.Order {
		notice("%s was measured on another machine or with other kernels: replaced", c.Out)
		return p, nil
	}
	whole, machine := *p, *p.Machine
	machine.ReadGBs = slices.Concat(m.ReadGBs, machine.ReadGBs)
	whole.Machine = &machine
	for _, s := range old.Shapes {
		if !slices.ContainsFunc(p.Shapes, func(n dispatch.Shape) bool { return n.N == s.N && n.K == s.K && n.DType == s.DType }) {
			whole.Shapes = append(whole.Shapes, s)
		}
	}
	return &whole, nil
}

func tenth(x float64) float64 { return float64(int(10*x+0.5)) / 10 }

// deliver writes the files and prints the summary.
func (c *profileCmd) deliver(p *dispatch.Profile) error {
	whole, err := c.joined(p)
	if err != nil {
		return err
	}
	if err := whole.Write(c.Out); err != nil {
		return err
	}
	if c.Plot != "" {
		if err := profileFigure(p).Write(c.Plot); err != nil {
			return err
		}
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(p)
	}
	fmt.Printf("%s\n%s\n", p.Device, bandwidthText(p.Machine))
	for i := range p.Shapes {
		printShape(os.Stdout, &p.Shapes[i])
	}
	for _, s := range p.Splits {
		fmt.Println(s)
	}
	fmt.Printf("written to %s\n", c.Out)
	return nil
}

// A probeKernel is a kernel at one weight type.
type probeKernel struct {
	*templates.Kernel
	dtype tensor.DType
}

// probeShapes lists the distinct shapes of the matmuls, in the given types if
// there are any, and their kernels.
func probeShapes(cat *templates.Catalog, matmuls []manifest.Matmul, list string) ([]tune.Shape, []probeKernel, error) {
	var shapes []tune.Shape
	var kernels []probeKernel
	seen, have := map[string]bool{}, map[tensor.DType]bool{}
	for _, types := range typeLists(matmuls, list) {
		for i, s := range matmuls {
			dt, err := spec.ParseType(types[i])
			if err != nil {
				return nil, nil, fmt.Errorf("--types: %w", err)
			}
			cands := cat.Candidates("matmul", dt)
			if len(cands) == 0 {
				return nil, nil, fmt.Errorf("--types: there is no matmul for weights of type %s", dt)
			}
			shape := probeShape(cands, s.N, s.K, dt)
			if seen[shape.String()] {
				continue
			}
			seen[shape.String()] = true
			shapes = append(shapes, shape)
			for _, k := range cands {
				if !have[dt] {
					kernels = append(kernels, probeKernel{k, dt})
				}
			}
			have[dt] = true
		}
	}
	return shapes, kernels, nil
}

// typeLists returns the types of the matmuls, once for each type of a list, or
// once unchanged.
func typeLists(matmuls []manifest.Matmul, list string) [][]string {
	var out [][]string
	if list == "" {
		var own []string
		for _, s := range matmuls {
			own = append(own, s.DType)
		}
		return [][]string{own}
	}
	for _, t := range strings.Split(list, ",") {
		out = append(out, slices.Repeat([]string{strings.TrimSpace(t)}, len(matmuls)))
	}
	return out
}

func probeShape(cands []*templates.Kernel, n, k int, dt tensor.DType) tune.Shape {
	s := tune.Shape{N: n, K: k, DType: dt.String(), PanelBytes: packed.PanelStride(dt, k)}
	s.Act = slices.Index(tune.ActKinds, templates.Act(dt))
	for _, c := range cands {
		s.Candidates = append(s.Candidates, tune.Candidate{Impl: c.Impl, Symbol: c.Symbol(dt), Tile: c.Tile})
	}
	return s
}
