package compiler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
	"github.com/iflowc/iflowc/templates"
)

// A Program is a model between IR and files.
type Program struct {
	*Model
	Module *ir.Module // after all passes, on one device

	whole       *Rank      // the code of Module
	ranks       []*Rank    // of a partitioned model: one program per device
	partitioned *ir.Module // the module before its division into ranks
	isas        []templates.ISA
	skip        map[string]bool // passes to skip
	warnings    []string        // about the weight types

	tok     *tokenizer.Tokenizer // nil: the model computes on ids
	tokData []byte               // its serialized form

	// Set during the build.
	cache  *toolchain.Cache
	cc     *toolchain.Builder
	files  map[string][]byte // of the generated Go module, except its Go sources
	result Result
}

// A stage is one step of the compilation. A stage that does not apply to the
// model or the options returns at once.
type stage func(*Program, context.Context) error

// frontEnd leads from an open model to the sources of its program.
var frontEnd = []stage{
	(*Program).check, // conflicting options
	(*Program).readTokenizer,
	(*Program).optimize,     // the module, through all passes
	(*Program).partition,    // a module for each of several ranks
	(*Program).chooseISAs,   // instruction sets to compile for
	(*Program).generateC,    // C code of the step
	(*Program).judgeTypes,   // says what the weight types cost
	(*Program).generateCUDA, // its CUDA C code, for --target cuda
}

// backEnd leads from the sources to the files to ship.
var backEnd = []stage{
	(*Program).prepare,     // compiler, cache, output path
	(*Program).compileC,    // shared libraries, one per instruction set
	(*Program).compileCUDA, // GPU images
	(*Program).packWeights, // packed weights, one file per rank
	(*Program).describe,    // manifests, tokenizer, IR
	(*Program).keepSources, // for --keep-sources
	(*Program).emit,        // link, and put the results in place
	(*Program).estimate,    // expected memory and speed
}

func (p *Program) run(ctx context.Context, stages []stage) error {
	for _, s := range stages {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s(p, ctx); err != nil {
			return err
		}
	}
	return nil
}

// Generate runs the passes and generates the sources of the model's program.
func (m *Model) Generate(ctx context.Context) (*Program, error) {
	p := &Program{Model: m}
	if err := p.run(ctx, frontEnd); err != nil {
		return nil, err
	}
	return p, nil
}

// parts returns the units with their own code and weights: the ranks, or the
// whole model.
func (p *Program) parts() []*Rank {
	if p.ranks != nil {
		return p.ranks
	}
	return []*Rank{p.whole}
}

// check returns an error for options that exclude each other.
func (p *Program) check(context.Context) error {
	o := &p.opt
	var err error
	switch {
	case o.EmbedWeights && o.NoWeights:
		err = errors.New("--embed-weights with --no-weights: one at a time")
	case o.EmbedWeights && p.Partitioned():
		err = errors.New("--embed-weights with --devices: each rank of a partitioned model reads a weights file of its own")
	case o.Emit == "lib" && p.Partitioned():
		err = errors.New("--emit lib with --devices: only a binary or a package runs on several devices")
	case o.EmbedWeights && (o.Emit == "lib" || o.Emit == "package"):
		err = fmt.Errorf("--embed-weights: a %s reads its weights from a file", map[string]string{"lib": "library", "package": "package"}[o.Emit])
	}
	if err != nil {
		return InputError{err}
	}
	if _, err = gpuArchs(o.Arch); err != nil {
		return err
	}
	p.skip, err = SkipPasses(o.Skip)
	return err
}

func (p *Program) readTokenizer(context.Context) (err error) {
	p.tok, p.tokData, err = p.tokenizer()
	return err
}

func (p *Program) optimize(context.Context) (err error) {
	p.Module, err = p.OneDevice(passes.Options{Limit: -1, Skip: p.skip})
	return err
}

func (p *Program) partition(context.Context) (err error) {
	if !p.Partitioned() {
		return nil
	}
	p.ranks, p.partitioned, err = p.Ranks(p.Module, passes.Options{Limit: -1, Skip: p.skip})
	return err
}

func (p *Program) chooseISAs(context.Context) (err error) {
	p.isas, err = pickISAs(p.opt.ISA, p.activations())
	return err
}

func (p *Program) generateC(context.Context) (err error) {
	p.whole = &Rank{}
	if p.whole.CPU, err = p.Code(p.Module); err != nil {
		return err
	}
	act := p.opt.Activations
	if act == "bf16" && !slices.ContainsFunc(p.whole.CPU.Kernels, func(k codegen.Kernel) bool { return k.Act(k.Type) == act }) {
		return InputError{fmt.Errorf("--activations %s: no weight of this model has kernels for them; --quant %s gives it such weights", act, act)}
	}
	return nil
}

// SkipPasses returns the set of passes to skip.
func SkipPasses(names []string) (map[string]bool, error) {
	skip := map[string]bool{}
	for _, name := range names {
		if err := KnownPass(name); err != nil {
			return nil, InputError{fmt.Errorf("--skip %s: %w", name, err)}
		}
		skip[name] = true
	}
	return skip, nil
}

// Manifest returns the part of the binary's manifest that is known before the
// build.
func (p *Program) Manifest() *manifest.Manifest {
	man := p.whole.CPU.Manifest
	p.medusa(&man)
	return &man
}

// KnownPass returns an error with the list of passes if there is no pass of
// that name.
func KnownPass(name string, also ...string) error {
	have := append(also, passes.Names()...)
	if slices.Contains(have, name) {
		return nil
	}
	text := "unknown pass"
	if near := spelling.Nearest(name, have); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Errorf("%s (have: %s)", text, strings.Join(have, ", "))
}
