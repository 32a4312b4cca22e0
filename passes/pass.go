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
	Name      string  // such as "merge-projections": in flags and dumps, and of the testdata folder
	Brief     string  // such as "joins matmuls of one input": for the picture of the pipeline
	Doc       string  // for docs/passes.md
	Tolerance float64 // allowed relative change of values; 0 for all but quantize and partition
	Run       func(*Env, *ir.Module) error
}

// Env is the context of a pass.
type Env struct {
	Ops     ir.OpSet
	Kernels *templates.Catalog
	Profile Profile                          // nil: the roofline default
	Types   TypeRules                        // weight and state types
	Devices [][]Device                       // device groups, each a list of ranks; nil: one device
	Notice  func(format string, args ...any) // reports a choice to the user; may be nil

	// Typed is called for each matrix after its type is chosen, with the type that its
	// values were stored in; may be nil.
	Typed func(w *ir.Value, stored tensor.DType)
}

// A Device is one rank of a device group.
type Device struct {
	Name  string
	Share int // relative share of layers; 0 means 1
}

// A Profile selects the fastest implementation of a matmul by measurement.
type Profile interface {
	// Choose returns the fastest implementation from each row count on, in
	// ascending order of rows, or false if nothing was measured.
	Choose(n, k int, dt tensor.DType, impls []string) ([]Case, bool)
}

// A Case uses Impl from Rows rows on.
type Case struct {
	Rows int
	Impl string
}

func (e *Env) notice(format string, args ...any) {
	if e.Notice != nil {
		e.Notice(format, args...)
	}
}

// Options control Run.
type Options struct {
	After  string                                     // stop after this pass; "lower": run none
	Skip   map[string]bool                            // passes to skip
	Limit  int                                        // run only this many passes, to find one that breaks a model; <0: all
	Dump   func(stage int, name string, m *ir.Module) // called with the lowered module (stage 0) and after each pass
	Report func(name string, took time.Duration)
}

// Run applies the pipeline to the module, in place. After each pass it removes
// dead ops and verifies the module. Errors name the pass.
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

// runOne runs a pass, removes dead ops and verifies. A panic of the pass
// becomes an error with the pass's name and the stack.
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
		return fmt.Errorf("pass %s left an invalid module: %w", p.Name, err)
	}
	return nil
}
