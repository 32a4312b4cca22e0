package passes

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/templates"
)

// A Pass is one rewrite of a module.
type Pass struct {
	Name      string  // "merge-projections": flag, dump name and testdata folder
	Brief     string  // "joins matmuls of one input": for the picture of the pipeline
	Doc       string  // for docs/passes.md
	Tolerance float64 // change of meaning allowed, relative; 0 for all but quantize
	Run       func(*Env, *ir.Module) error
}

// Env is what passes may consult.
type Env struct {
	Ops     ir.OpSet
	Kernels *templates.Catalog
	Profile Profile                          // nil: the roofline default
	Types   TypeRules                        // weight and state types
	Devices [][]Device                       // groups of layers, each a list of ranks; nil: one device
	Notice  func(format string, args ...any) // tells the user of a choice; may be nil
}

// A Device is one rank of a device group.
type Device struct {
	Name  string
	Share int // relative share of layers; 0 means 1
}

// A Profile says which implementation of a matmul was measured to be fastest.
type Profile interface {
	// Choose gives from how many rows on each implementation wins, in
	// ascending order of rows, or false when it has no measurement.
	Choose(n, k int, dt tensor.DType, impls []string) ([]Case, bool)
}

// A Case says that from Rows rows on Impl is used.
type Case struct {
	Rows int
	Impl string
}

func (e *Env) notice(format string, args ...any) {
	if e.Notice != nil {
		e.Notice(format, args...)
	}
}

// Options steer the manager.
type Options struct {
	After  string                                     // stop after this pass; "lower": run none
	Skip   map[string]bool                            // passes to leave out
	Limit  int                                        // run only so many passes, to find the one that breaks a model; <0: all
	Dump   func(stage int, name string, m *ir.Module) // sees the module as lowered (stage 0) and after each pass
	Report func(name string, took time.Duration)
}

// Run applies the pipeline to the module, in place. After each pass it removes
// dead ops and verifies; an error names the pass.
func Run(env *Env, m *ir.Module, list []*Pass, opt Options) error {
	if err := ir.Verify(m); err != nil {
		return fmt.Errorf("before any pass: %w", err)
	}
	if opt.Dump != nil {
		opt.Dump(0, "lower", m)
	}
	if opt.After == "lower" {
		return nil
	}
	for i, p := range list {
		if opt.Limit >= 0 && i >= opt.Limit {
			return nil
		}
		if opt.Skip[p.Name] {
			continue
		}
		start := time.Now()
		if err := runOne(env, m, p); err != nil {
			return err
		}
		if opt.Report != nil {
			opt.Report(p.Name, time.Since(start))
		}
		if opt.Dump != nil {
			opt.Dump(i+1, p.Name, m)
		}
		if opt.After == p.Name {
			return nil
		}
	}
	return nil
}

// runOne runs, cleans and verifies; a panic of the pass becomes an error that
// names it and has the stack.
func runOne(env *Env, m *ir.Module, p *Pass) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("pass %s on module %s: bug: %v\n%s", p.Name, m.Name, r, debug.Stack())
		}
	}()
	if err := p.Run(env, m); err != nil {
		return fmt.Errorf("pass %s: %w", p.Name, err)
	}
	ir.DCE(m)
	if err := ir.Verify(m); err != nil {
		return fmt.Errorf("pass %s left a broken module: %w", p.Name, err)
	}
	return nil
}
