package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	root   = "../../.."
	module = "github.com/iflowc/iflowc"
)

// A source is one parsed Go file.
type source struct {
	path  string // from the repository's root, with slashes
	lines int
	fset  *token.FileSet
	file  *ast.File
}

// dir is the package's folder; "." is the root.
func (s *source) dir() string { return filepath.ToSlash(filepath.Dir(s.path)) }

func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// span counts the lines of a node.
func (s *source) span(n ast.Node) int {
	return s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
}

// skipped are folders whose files are not the project's text.
func skipped(name string) bool {
	return name == ".git" || name == "testdata" || name == ".venv" || name == "node_modules"
}

// files lists the paths of all files from the root that keep accepts.
func files(t *testing.T, keep func(path string) bool) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipped(d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if rel = filepath.ToSlash(rel); err == nil && d.Type().IsRegular() && keep(rel) {
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var parsed struct {
	sync.Once
	list []*source
}

// sources parses every hand-written Go file.
func sources(t *testing.T) []*source {
	t.Helper()
	parsed.Do(func() {
		for _, path := range files(t, func(p string) bool { return strings.HasSuffix(p, ".go") }) {
			text, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				t.Fatal(err)
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, path, text, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if ast.IsGenerated(f) {
				continue
			}
			parsed.list = append(parsed.list, &source{path: path, lines: strings.Count(string(text), "\n"), fset: fset, file: f})
		}
	})
	if len(parsed.list) < 100 {
		t.Fatalf("only %d Go files below %s", len(parsed.list), root)
	}
	return parsed.list
}
