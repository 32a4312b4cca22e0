//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/passes/cost"
	"golang.org/x/tools/txtar"
)

// libraryDir has the IR of the model library at real sizes.
const libraryDir = "models/testdata/library"

// costsOf returns the costs of a library model, or of an IR file, and its ranks'
// exchanges.
func costsOf(dir, name string) (*cost.Model, error) {
	path, text, err := irOf(dir, name)
	if err != nil {
		return nil, err
	}
	m, err := ir.Parse(path, text, ops.Table)
	if err != nil {
		return nil, err
	}
	split := func(n int) (*ir.Module, error) {
		c := m.Clone()
		group := make([]passes.Device, n)
		for i := range group {
			group[i].Name = fmt.Sprintf("dev%d", i)
		}
		env := &passes.Env{Ops: ops.Table, Devices: [][]passes.Device{group}}
		return c, passes.Run(env, c, passes.Pipeline, passes.Options{Limit: -1, After: "partition"})
	}
	return cost.Of(m, split)
}

// irOf returns the IR of a library model or in a file.
func irOf(dir, name string) (path string, text []byte, err error) {
	if strings.HasSuffix(name, ".ir") {
		text, err = os.ReadFile(name)
		return name, text, err
	}
	path = filepath.Join(dir, name+".txtar")
	data, err := os.ReadFile(path)
	if err != nil {
		return "", nil, fmt.Errorf("%w; run this in the repository's root", err)
	}
	for _, f := range txtar.Parse(data).Files {
		if f.Name == "out.ir" {
			return path, f.Data, nil
		}
	}
	return "", nil, fmt.Errorf("%s holds no IR", path)
}
