package archtest

import (
	"go/ast"
	"maps"
	"testing"
)

const (
	maxFile     = 400 // lines of a Go file: one purpose
	maxFunction = 60  // lines of a function: one screen
)

// longFiles and longFunctions are what was longer when the rule was made, with
// their lengths then. The lists may only shrink.
var (
	longFiles     = map[string]int{}
	longFunctions = map[string]int{
		"ir/interp/attention_test.go TestAttention":      66,
		"runtime/engine/source_test.go TestEncoder":      61,
		"runtime/engine/source_test.go TestTranslations": 62,
	}
)

// TestSizes: files and functions stay short enough to be read in one go.
func TestSizes(t *testing.T) {
	files, functions := map[string]int{}, map[string]int{}
	for _, s := range sources(t) {
		if s.lines > maxFile {
			files[s.path] = s.lines
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.span(f) > maxFunction {
				functions[s.path+" "+f.Name.Name] = s.span(f)
			}
		}
	}
	ratchet(t, "files", files, longFiles, maxFile)
	ratchet(t, "functions", functions, longFunctions, maxFunction)
}

// ratchet compares what is too long with the list of what may be.
func ratchet(t *testing.T, what string, have, may map[string]int, limit int) {
	t.Helper()
	for name, n := range have {
		if n > may[name] {
			t.Errorf("%s: %d lines, more than %d: split it", name, n, max(limit, may[name]))
		}
	}
	for name := range maps.Keys(may) {
		if have[name] == 0 {
			t.Errorf("%s is short enough now or gone: take it off the list of long %s", name, what)
		}
	}
}
