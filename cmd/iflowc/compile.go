package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/iflowc/iflowc/codegen/compiler"
)

type compileCmd struct {
	compileFlags
	Calibrate string `help:"Text to calibrate on first: quantizing then spares the columns that matter to it." type:"path" placeholder:"TEXT"`
	Feedback  bool   `help:"With --calibrate: let later columns of a row make up for the rounding of earlier ones (GPTQ); takes minutes and the memory of products of columns."`
	Out       string `short:"o" help:"The binary to make (default: the model's name)." type:"path" placeholder:"BIN"`
	Emit      string `help:"What to make: a binary, a shared library with a C header (lib), a Go package to import, or the generated C and IR (sources)." enum:"binary,lib,package,sources" default:"binary"`
	JSON      bool   `name:"json" help:"Print the summary as JSON."`
}

// Run compiles a model.
func (c *compileCmd) Run(ctx context.Context) error {
	o := c.options()
	o.Calibrate, o.Feedback, o.Out, o.Emit = c.Calibrate, c.Feedback, c.Out, c.Emit
	bar := newProgress()
	o.Progress = bar.build
	r, err := compiler.Compile(ctx, c.Spec, o)
	bar.done()
	if err != nil || c.Emit == "sources" {
		return err
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	_, err = fmt.Print(describe(r))
	return err
}

// describe is a result for people.
func describe(s *compiler.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %.1f MB, weights %.1f MB, %d regions a layer, %.1f s\n", s.Binary, float64(s.BinaryBytes)/1e6, float64(s.WeightBytes)/1e6, s.Regions, s.Seconds)
	fmt.Fprintf(&b, "memory for one sequence of the whole context: %.1f MB", float64(s.MemoryBytes)/1e6)
	if s.BoundTokS > 0 {
		fmt.Fprintf(&b, "; at most %.0f tokens/s one by one, by the %.0f GB/s of this machine's profile", s.BoundTokS, s.BoundGBS)
	}
	b.WriteByte('\n')
	return b.String()
}
