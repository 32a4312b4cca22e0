package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/spelling"
	"github.com/iflowc/iflowc/passes"
)

type irCmd struct {
	modelFlags
	After string   `help:"Print the IR after this pass (lower: before any)." placeholder:"PASS"`
	All   string   `help:"Write every stage to a file of this folder." type:"path" placeholder:"DIR"`
	Diff  bool     `help:"Print what each pass changed."`
	Skip  []string `help:"Leave passes out." placeholder:"PASS"`
	Rank  *int     `help:"Of a model on several devices: the program of this rank." placeholder:"N"`
	Limit int      `help:"Run only the first N passes, to find the one that breaks a model." default:"-1" placeholder:"N"`
}

// Run prints the IR of a model.
func (c *irCmd) Run() error {
	if c.After != "" && c.After != "lower" && passes.Lookup(c.After) == nil {
		return usageError{fmt.Errorf("--after %s: %s", c.After, unknownPass(c.After, append([]string{"lower"}, passes.Names()...)))}
	}
	m, err := c.open()
	if err != nil {
		return err
	}
	defer m.set.Close()
	skip, err := skipped(c.Skip)
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
		mod, err = c.rankProgram(m, *c.Rank, opt)
	} else {
		mod, _, err = c.module(m, opt)
	}
	if err != nil {
		return err
	}
	if c.All == "" && !c.Diff {
		return mod.Fprint(os.Stdout)
	}
	return stages.err
}

// unknownPass says which passes there are, and which may have been meant.
func unknownPass(name string, have []string) string {
	text := "unknown pass"
	if near := spelling.Nearest(name, have); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return text + " (have: " + strings.Join(have, ", ") + ")"
}

// skipped is the set of passes to leave out.
func skipped(names []string) (map[string]bool, error) {
	skip := map[string]bool{}
	for _, s := range names {
		if passes.Lookup(s) == nil {
			return nil, usageError{fmt.Errorf("--skip %s: %s", s, unknownPass(s, passes.Names()))}
		}
		skip[s] = true
	}
	return skip, nil
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
	if s.err = os.MkdirAll(s.dir, 0o755); s.err == nil {
		s.err = toolchain.WriteFile(filepath.Join(s.dir, fmt.Sprintf("%02d-%s.ir", stage, name)), []byte(text), 0o644)
	}
}

type optCmd struct {
	File   string   `arg:"" help:"IR text." type:"existingfile"`
	Passes []string `help:"Passes to run, in order (default: all)." placeholder:"a,b"`
	Quant  string   `help:"Weight type." placeholder:"TYPE"`
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
	if len(c.Passes) > 0 {
		if list, err = passes.Named(c.Passes); err != nil {
			return usageError{err}
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
