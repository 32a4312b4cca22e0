//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/runtime/kit/destination"
)

type irCmd struct {
	modelFlags
	After string   `help:"Print the IR after this pass; lower prints it before any." placeholder:"PASS"`
	All   string   `help:"Write each stage to a file in this folder." type:"path" placeholder:"DIR"`
	Diff  bool     `help:"Print what each pass changes."`
	Skip  []string `help:"Passes to skip." placeholder:"PASS"`
	Rank  *int     `help:"Print the IR of this rank of a partitioned model." placeholder:"N"`
	Limit int      `help:"Run only the first N passes, to find one that breaks a model (default: all)." default:"-1" placeholder:"N"`
}

// Run prints the IR of a model.
func (c *irCmd) Run(ctx context.Context) error {
	if c.After != "" {
		if err := compiler.KnownPass(c.After, "lower"); err != nil {
			return usageError{fmt.Errorf("--after %s: %w", c.After, err)}
		}
	}
	if c.All != "" {
		if err := destination.CheckFolder("--all", c.All); err != nil {
			return usageError{err}
		}
	}
	m, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	if c.All != "" {
		if err := os.MkdirAll(c.All, 0o755); err != nil {
			return err
		}
	}
	skip, err := compiler.SkipPasses(c.Skip)
	if err != nil {
		return err
	}
	opt := passes.Options{After: c.After, Limit: c.Limit, Skip: skip}
	if c.After == "" && c.All == "" && !c.Diff && c.Limit < 0 {
		opt.After = "lower"
	}
	stages := stages{dir: c.All, diff: c.Diff}
	opt.Dump = stages.see
	var mod *ir.Module
	if c.Rank != nil {
		mod, err = m.RankModule(*c.Rank, opt)
	} else {
		mod, err = m.Module(opt)
	}
	if err != nil {
		return err
	}
	if c.All == "" && !c.Diff {
		return mod.Fprint(os.Stdout)
	}
	return stages.err
}

// stages writes or compares the IR after each pass.
type stages struct {
	dir  string
	diff bool
	last string
	err  error
}

func (s *stages) see(stage int, name string, m *ir.Module) {
	text := m.String()
	if s.diff {
		if stage == 0 {
			fmt.Printf("== %s\n", name)
		} else {
			fmt.Printf("== after %s\n%s", name, lineDiff(s.last, text))
		}
	}
	s.last = text
	if s.dir == "" || s.err != nil {
		return
	}
	s.err = toolchain.WriteFile(filepath.Join(s.dir, fmt.Sprintf("%02d-%s.ir", stage, name)), []byte(text), 0o644)
}

type optCmd struct {
	File   string  `arg:"" help:"File with IR text." type:"existingfile"`
	Passes *string `help:"Passes to run, in order; an empty list runs none (default: all)." placeholder:"a,b"`
	Quant  string  `help:"Weight size (${sizes}) or type." placeholder:"q4|TYPE"`
}

// Run applies passes to IR text and prints the result.
func (c *optCmd) Run() error {
	src, err := os.ReadFile(c.File)
	if err != nil {
		return usageError{err}
	}
	m, err := ir.Parse(c.File, src, ops.Table)
	if err != nil {
		return usageError{err}
	}
	list := passes.Pipeline
	if c.Passes != nil {
		if list, err = passes.Named(listOf(*c.Passes)); err != nil {
			return usageError{fmt.Errorf("--passes: %w", err)}
		}
	}
	env, err := optEnv(c.Quant)
	if err != nil {
		return err
	}
	if err := passes.Run(env, m, list, passes.Options{Limit: -1}); err != nil {
		return err
	}
	return m.Fprint(os.Stdout)
}

// listOf reads a list with commas; an empty text is an empty list.
func listOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}
