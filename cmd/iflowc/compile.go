//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/runtime/kit/printable"
)

type compileCmd struct {
	compileFlags
	Out       string `short:"o" help:"Output file (default: the model's name)." type:"path" placeholder:"BIN"`
	Emit      string `help:"Output: a binary, a shared library with a C header (lib), a Go package, or the generated C and IR (sources)." enum:"binary,lib,package,sources" default:"binary"`
	NoWeights bool   `name:"no-weights" help:"Pack no weights: the binary accepts any file of its shapes, such as one from its subcommand weights."`
	JSON      bool   `name:"json" help:"Print the summary as one JSON document."`
}

// Run compiles a model.
func (c *compileCmd) Run(ctx context.Context) error {
	o := c.options()
	o.Out, o.Emit, o.NoWeights = c.Out, c.Emit, c.NoWeights
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
	_, err = fmt.Print(printable.Text(describe(r, c.Emit)))
	return err
}
