package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"golang.org/x/tools/txtar"
)

// The model in pictures of the compiler, at its real size.
const (
	modelName  = "smollm2-135m-instruct"
	modelTitle = "SmolLM2-135M-Instruct"
	modelQuant = "q4_b64"
	modelMost  = 8192 // context
)

// readModel reads the IR of the model library's spec, with f16 weights as
// published.
func readModel() (*ir.Module, error) {
	path := filepath.Join(root, "models/testdata/library", modelName+".txtar")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, f := range txtar.Parse(data).Files {
		if f.Name == "out.ir" {
			return ir.Parse(path, f.Data, ops.Table)
		}
	}
	return nil, fmt.Errorf("%s holds no IR", path)
}

// weightBytes returns the bytes of the weights that a module's ops read. Other
// weights are parts of those.
func weightBytes(m *ir.Module) (total int) {
	read := map[*ir.Value]bool{}
	for _, g := range m.Graphs {
		for o := range g.All() {
			for _, a := range o.Args {
				read[a.Value] = true
			}
		}
	}
	for _, w := range m.Weights {
		if !read[w] {
			continue
		}
		n := w.Type.Elem.RowBytes(w.Type.Cols())
		for _, size := range w.Type.Shape[:len(w.Type.Shape)-1] {
			n *= size.N
		}
		for _, r := range w.Count {
			n *= r.Len()
		}
		total += n
	}
	return total
}
