//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/passes/cost"
	"golang.org/x/tools/txtar"
)

// libraryDir has the IR of the model library at real sizes.
const libraryDir = "models/testdata/library"

// costsOf returns the costs of a library model and its ranks' exchanges.
func costsOf(dir, name string) (*cost.Model, error) {
	path := filepath.Join(dir, name+".txtar")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w; run this in the repository's root", err)
	}
	for _, f := range txtar.Parse(data).Files {
		if f.Name != "out.ir" {
			continue
		}
		m, err := ir.Parse(path, f.Data, ops.Table)
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
	return nil, fmt.Errorf("%s holds no IR", path)
}
