package compiler

import (
	"context"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/ir/irtest"
)

var agree = flag.String("agree", "", "folder with model folders and files below it: what check accepts must compile; default: some of spec/testdata")

// TestCheckAgrees: whatever check accepts, compile packs and describes. Check runs the front
// end of a compile; what is left besides a C compiler is done here.
func TestCheckAgrees(t *testing.T) {
	t.Parallel()
	var paths []string
	if *agree != "" {
		paths = modelsBelow(t, *agree)
	} else {
		all, err := filepath.Glob("../../spec/testdata/*/*")
		if err != nil {
			t.Fatal(err)
		}
		paths = irtest.Sample(t, 20, slices.DeleteFunc(all, func(p string) bool { return !isModel(p) }))
	}
	if len(paths) == 0 {
		t.Fatal("no models")
	}
	for _, path := range paths {
		t.Run(filepath.ToSlash(path), func(t *testing.T) {
			t.Parallel()
			m, err := Open(context.Background(), path, Options{})
			if err != nil {
				return // both refuse it
			}
			defer m.Close()
			p, err := m.Generate(context.Background())
			if err != nil {
				return
			}
			p.files = map[string][]byte{}
			for _, r := range p.parts() {
				if err := pack.Pack(context.Background(), p.source(), r.CPU.Pack, filepath.Join(t.TempDir(), "weights"), pack.Options{}); err != nil {
					t.Errorf("check accepts it, but its weights cannot be packed: %v", err)
				}
			}
			if err := p.describe(context.Background()); err != nil {
				t.Errorf("check accepts it, but it cannot be described: %v", err)
			}
		})
	}
}

// modelsBelow returns the model folders and single files below a folder.
func modelsBelow(t *testing.T, root string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && isModel(path) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// isModel reports whether a path is a folder with a configuration, or a file that says what it is.
func isModel(path string) bool {
	_, err := os.Stat(filepath.Join(path, "config.json"))
	return err == nil || strings.HasSuffix(path, ".gguf")
}
