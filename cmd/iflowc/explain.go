//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/kit/destination"
	"github.com/iflowc/iflowc/runtime/kit/plot"
	"github.com/iflowc/iflowc/templates"
)

type explainCmd struct {
	modelFlags
	Target string `help:"Target: cpu, or cuda to choose for the memory of the GPU here with --quant fit." enum:"cpu,cuda" default:"cpu"`
	Plot   string `help:"With a budget in --quant: plot the expected loss over the size of the weights to this file (.svg or .png)." type:"path" placeholder:"FILE"`
	JSON   bool   `name:"json" help:"With a budget in --quant: print only the chosen types, as one JSON document."`
}

// Run prints for each matmul of the step the candidates, their measured times,
// and which one is used for which row count and why; before it, for a budget, the types.
func (c *explainCmd) Run(ctx context.Context) error {
	if c.Plot != "" {
		if err := errors.Join(plot.Check(c.Plot), destination.Check("--plot", c.Plot)); err != nil {
			return usageError{err}
		}
	}
	m, err := c.openFor(ctx, c.Target)
	if err != nil {
		return err
	}
	defer m.Close()
	if m.Choice == nil && (c.Plot != "" || c.JSON) {
		return usageError{errors.New("--plot and --json describe the types for a budget, such as --quant 4.5; the model has none")}
	}
	if c.Plot != "" {
		if err := choiceFigure(m.Spec.Name, m.Choice).Write(c.Plot); err != nil {
			return err
		}
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(m.Choice)
	}
	if m.Choice != nil {
		explainChoice(os.Stdout, m.Choice)
	}
	cpu, err := m.Step()
	if err != nil {
		return err
	}
	cat, err := compiler.Kernels()
	if err != nil {
		return err
	}
	p, origin, err := m.Measurements()
	if err != nil {
		return err
	}
	if m.Placement != "" {
		fmt.Println(m.Placement)
	}
	if p != nil && p.Machine != nil {
		if isa, err := compiler.ISAHere(p.Machine.ISA); err == nil {
			if hash, err := hashKernels(cat, isa); err == nil && hash != p.Machine.Kernels {
				origin += "; the kernels have changed since, iflowc profile measures again"
			}
		}
	}
	return explain(os.Stdout, cpu.Manifest.Matmuls, cat, p, origin)
}

// explain explains the dispatch of matmuls, each shape once. p is nil without
// measurements.
func explain(w io.Writer, matmuls []manifest.Matmul, cat *templates.Catalog, p *dispatch.Profile, origin string) error {
	if p == nil {
		fmt.Fprintln(w, "no profile of this machine: every choice is a roofline estimate; iflowc profile measures")
	} else {
		fmt.Fprintln(w, origin)
		fmt.Fprintln(w, bandwidthText(p.Machine))
	}
	for len(matmuls) > 0 {
		first := matmuls[0]
		same := func(s manifest.Matmul) bool { return s.N == first.N && s.K == first.K && s.DType == first.DType }
		var names []string
		for _, s := range matmuls {
			if same(s) && !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
		matmuls = slices.DeleteFunc(slices.Clone(matmuls), same)
		if err := explainMatmul(w, strings.Join(names, ", "), first, cat, p); err != nil {
			return err
		}
	}
	return nil
}

// explainMatmul explains one shape.
func explainMatmul(w io.Writer, names string, s manifest.Matmul, cat *templates.Catalog, p *dispatch.Profile) error {
	table, err := dispatch.Table([]manifest.Matmul{s}, p)
	if err != nil {
		return usageError{err}
	}
	fmt.Fprintf(w, "\n%s [%d, %d] %s\n", names, s.N, s.K, s.DType)
	fmt.Fprintf(w, "  chosen      %s\n", dispatch.Describe(s, table))
	shape := measuredShape(p, s)
	switch {
	case shape == nil:
		fmt.Fprintln(w, "  why         a roofline estimate, because this shape was not measured: one row costs the bytes of the weights, from two")
		fmt.Fprintln(w, "              rows on flat_gemm reads them once for all, and unpacking them first pays when many rows share it")
	case shape.Measured == nil:
		fmt.Fprintln(w, "  why         rules of the profile, which has no times")
	default:
		m := shape.Measured
		fmt.Fprintf(w, "  why         measured: flat_gemm beats gemv %s, gemm beats flat_gemm %s; these rules cost at most %.1f %%\n",
			from(m.M1), from(m.M2), 100*m.Regret)
		printTimes(w, m)
	}
	explainKernels(w, s, cat)
	return nil
}

// printTimes prints the times of a measurement.
func printTimes(w io.Writer, m *dispatch.Measurement) {
	printColumns(w, "  ", timeTable(m))
	fmt.Fprintln(w, "  (median ± half the 95 % interval; * fastest; – no longer measured)")
}

// explainKernels describes each candidate, and says whether they have different
// orders of summation and therefore cannot be mixed.
func explainKernels(w io.Writer, s manifest.Matmul, cat *templates.Catalog) {
	dt, _ := tensor.ParseDType(s.DType)
	var classes []string
	for _, k := range cat.Candidates("matmul", dt) {
		fmt.Fprintf(w, "  %-10s  %s\n", k.Impl, k.Doc)
		if !slices.Contains(classes, k.Sum) {
			classes = append(classes, k.Sum)
		}
	}
	if len(classes) == 1 {
		fmt.Fprintf(w, "  sums        %s, in every implementation: --order any would change nothing\n", classes[0])
		return
	}
	fmt.Fprintf(w, "  sums        differ (%s): --order any would mix them, and tokens would depend on the batch\n", strings.Join(classes, "; "))
}

// measuredShape returns the profile's entry that decides the rules of a matmul.
func measuredShape(p *dispatch.Profile, s manifest.Matmul) *dispatch.Shape {
	if p == nil {
		return nil
	}
	for i := range p.Shapes {
		if e := &p.Shapes[i]; e.N == s.N && e.K == s.K && e.DType == s.DType && len(e.Rules) > 0 {
			return e
		}
	}
	return nil
}

func from(rows int) string {
	switch rows {
	case 0:
		return "nowhere"
	case 1:
		return "always"
	}
	return fmt.Sprintf("from %d rows on", rows)
}
