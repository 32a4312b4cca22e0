package archtest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// leaves are the packages of the runtime that the compiler may use too: they
// read files and know nothing of running a model.
var leaves = []string{"runtime/weights", "runtime/artifact/...", "runtime/text/tokenizer"}

// layers says what each folder's packages may import of this module; "x/..."
// also allows what is below x. Imports go one way: later rows use earlier ones.
var layers = []struct {
	folder string
	may    []string
}{
	{"ir/tensor", nil},
	{"ir/spelling", nil},
	{"ir", []string{"ir/spelling", "ir/tensor"}},
	{"ir/ops", []string{"ir", "ir/tensor"}},
	{"ir/interp", []string{"ir", "ir/ops", "ir/tensor"}},
	{"ir/irtest", []string{"ir/..."}},
	{"models", nil},
	{"templates", []string{"ir", "ir/tensor"}},
	{"spec", append([]string{"ir", "ir/ops", "ir/spelling", "ir/tensor", "models"}, leaves...)},
	{"passes", append([]string{"ir", "ir/ops", "ir/tensor", "templates"}, leaves...)},
	// The runtime's groups, lowest first: packages of one group may import each other. Nothing here is the compiler's.
	{"runtime/kit", group("kit")},
	{"runtime/artifact", group("artifact")},
	{"runtime/text", group("text", "artifact", "kit")},
	{"runtime/sampling", group("sampling", "artifact")},
	{"runtime/device", group("device", "artifact", "kit")},
	{"runtime/binary", group("binary", "device", "text", "artifact")},
	{"runtime/engine", group("engine", "binary", "device", "sampling", "artifact", "kit")},
	{"runtime/http", group("http", "engine", "device", "sampling", "text", "artifact", "kit")},
	{"runtime/api", group("api", "engine", "binary", "device", "sampling", "text", "artifact")},
	{"runtime/cli", []string{"runtime/..."}},
	{"runtime/weights", group("artifact")},
	{"codegen/layout", []string{"ir", "ir/ops", "ir/tensor", "templates", "runtime/artifact/...", "runtime/weights"}},
	{"codegen/ctext", []string{"codegen/layout", "ir", "ir/ops", "ir/tensor", "templates"}},
	// The emitters stand side by side.
	{"codegen/cpu", []string{"codegen/layout", "codegen/ctext", "ir", "ir/tensor", "templates", "runtime/artifact/..."}},
	{"codegen/cuda", []string{"codegen/layout", "codegen/ctext", "ir", "ir/tensor", "templates", "runtime/artifact/..."}},
	{"codegen", []string{".", "codegen/...", "ir", "ir/ops", "ir/tensor", "templates", "runtime/..."}},
	{".", nil},
	{"cmd/hub", nil},
	{"cmd", []string{".", "cmd/hub", "ir/...", "models", "templates", "spec", "passes/...", "codegen/...", "runtime/..."}},
	{"tools", []string{".", "ir/...", "models", "templates", "spec", "passes/...", "codegen/...", "runtime/..."}},
}

// group gives the rules of a group of the runtime's packages: they may import
// each other, packages of the groups named, and what the runtime shares with
// the compiler.
func group(names ...string) []string {
	may := []string{"ir/spelling", "ir/tensor", "runtime/weights"}
	for _, n := range names {
		may = append(may, "runtime/"+n, "runtime/"+n+"/...")
	}
	return may
}

// mayImport are the rules of a folder: those of the longest row that holds it.
func mayImport(dir string) (may []string, known bool) {
	best := -1
	for _, l := range layers {
		if (dir == l.folder || strings.HasPrefix(dir, l.folder+"/")) && len(l.folder) > best {
			best, may, known = len(l.folder), l.may, true
		}
	}
	return may, known
}

func allowed(may []string, imported string) bool {
	return slices.ContainsFunc(may, func(m string) bool {
		prefix, below := strings.CutSuffix(m, "/...")
		return imported == prefix || below && strings.HasPrefix(imported, prefix+"/")
	})
}

// TestImports: packages import only from the layers below. Tests may compare
// with any package.
func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		may, known := mayImport(s.dir())
		if !known {
			t.Errorf("%s: folder %s has no row in the table of layers", s.path, s.dir())
		}
		for _, im := range s.file.Imports {
			path, err := strconv.Unquote(im.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if im.Name != nil && (im.Name.Name == "_" && path != "embed" || im.Name.Name == ".") {
				t.Errorf("%s imports %s as %s: no registration by import, no dot imports", s.path, path, im.Name.Name)
			}
			inside, ours := strings.CutPrefix(path, module)
			if !ours || s.isTest() {
				continue
			}
			if inside = strings.TrimPrefix(inside, "/"); inside == "" {
				inside = "."
			}
			if inside != s.dir() && !allowed(may, inside) {
				t.Errorf("%s imports %s; packages below %s may import only %v", s.path, inside, s.dir(), may)
			}
		}
	}
}
