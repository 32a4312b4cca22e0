package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// folders are the top-level folders; a new one needs a place in
// docs/architecture.md first.
var folders = []string{".ci", ".git", ".github", "cmd", "codegen", "deploy", "docs", "ir", "models", "passes", "runtime", "script", "spec", "templates", "tools"}

// ignored are folders that .gitignore names.
var ignored = []string{".venv", ".cuda", "testdata"}

func TestFolders(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() || slices.Contains(ignored, e.Name()) {
			continue
		}
		if !slices.Contains(folders, e.Name()) {
			t.Errorf("folder %s is not in the list", e.Name())
		}
		if !strings.HasPrefix(e.Name(), ".") && !strings.Contains(string(page), e.Name()+"/") {
			t.Errorf("docs/architecture.md does not name the folder %s/", e.Name())
		}
	}
}

// TestNoInit: registration is by explicit lists, so no package has an init
// function.
func TestNoInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init; put a row into a list instead", s.path)
			}
		}
	}
}

// wallClock are the files of the runtime that may ask for the time of day, and what for.
var wallClock = map[string]string{
	"runtime/http/access/watch.go":            "whether a file is the same",
	"runtime/http/server/chat.go":             "created",
	"runtime/http/server/completions.go":      "created",
	"runtime/http/server/rerank.go":           "created",
	"runtime/http/server/responses.go":        "completed_at",
	"runtime/http/server/responses_output.go": "created_at",
	"runtime/http/server/status.go":           "created",
	"runtime/text/jinja/strftime.go":          "strftime_now",
}

// TestWallClock: durations come from the monotonic clock, so that a clock that is set ends no
// request and no limit. What loses it stands only in the files above; C reads CLOCK_MONOTONIC.
func TestWallClock(t *testing.T) {
	loses := []string{"Unix", "UnixMilli", "UnixMicro", "UnixNano", "ModTime"}
	used := map[string]bool{}
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.path, "runtime/") || s.isTest() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(loses, f.Sel.Name) {
				if used[s.path] = true; wallClock[s.path] == "" {
					t.Errorf("%s: %s: is the difference of such times used? If not, add the file to wallClock", s.path, f.Sel.Name)
				}
			}
			return true
		})
	}
	for path := range wallClock {
		if !used[path] {
			t.Errorf("%s does not ask for the time of day: remove it from wallClock", path)
		}
	}
	for _, path := range files(t, func(p string) bool {
		return strings.HasPrefix(p, "templates/") && (strings.HasSuffix(p, ".c") || strings.HasSuffix(p, ".h"))
	}) {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"CLOCK_REALTIME", "gettimeofday", "_timedwait", "_timedlock"} {
			if strings.Contains(string(text), name) {
				t.Errorf("%s: %s depends on the wall clock", path, name)
			}
		}
	}
}

// TestNoCatchAllPackages: a package is named by what it is about.
func TestNoCatchAllPackages(t *testing.T) {
	for _, s := range sources(t) {
		if slices.Contains([]string{"util", "utils", "common", "helpers", "misc", "base"}, s.file.Name.Name) {
			t.Errorf("%s: package %s", s.path, s.file.Name.Name)
		}
	}
}

// TestPackageComments: every package says in one place what it is for.
func TestPackageComments(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if !s.isTest() {
			documented[s.dir()] = documented[s.dir()] || s.file.Doc != nil
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package in %s has no package comment", dir)
		}
	}
}

// families are the names of model families that are data in models/families.
func families(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "models/families/*.yaml"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%d families (%v)", len(found), err)
	}
	var names []string
	for _, f := range found {
		if name := strings.TrimSuffix(filepath.Base(f), ".yaml"); name != "generic" { // for models of no family
			names = append(names, name)
		}
	}
	return names
}

// TestNoFamilyInCode: a model is data; no code asks which family one belongs
// to. Tokenizer files are left out: "llama" and "gpt2" there are names of
// tokenizer kinds in GGUF files.
func TestNoFamilyInCode(t *testing.T) {
	names := families(t)
	for _, s := range sources(t) {
		if s.isTest() || strings.HasPrefix(s.path, "models/") || strings.HasPrefix(s.path, "spec/tokenizerfile/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			var compared []ast.Expr
			switch n := n.(type) {
			case *ast.CaseClause:
				compared = n.List
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					compared = []ast.Expr{n.X, n.Y}
				}
			}
			for _, e := range compared {
				if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil && slices.Contains(names, text) {
						t.Errorf("%s: compares with the family %q", s.fset.Position(lit.Pos()), text)
					}
				}
			}
			return true
		})
	}
}

// TestSelfContained: nothing but the script of all checks looks outside the
// checkout.
func TestSelfContained(t *testing.T) {
	outside := "../" + "shared"
	for _, path := range files(t, isText) {
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if path != ".ci/run" && strings.Contains(string(data), outside) {
			t.Errorf("%s names %s", path, outside)
		}
	}
}

// TestNoUnfinishedWork: what is not done is said in the documentation, not
// marked in code.
func TestNoUnfinishedWork(t *testing.T) {
	marks := []string{"TO" + "DO", "FIX" + "ME", "XX" + "X:"}
	for _, path := range files(t, isText) {
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			for _, m := range marks {
				if strings.Contains(line, m) {
					t.Errorf("%s:%d: %s", path, i+1, m)
				}
			}
		}
	}
}

func isText(path string) bool {
	if strings.HasPrefix(path, "models/demo/") || strings.HasPrefix(path, "codegen/deps/") {
		return false // a vocabulary and other projects' sources
	}
	switch filepath.Ext(path) {
	case ".go", ".md", ".yaml", ".tmpl", ".h", ".py", ".sh", ".mod", "":
		return filepath.Base(path) != "iflowc" // a built program
	}
	return false
}
