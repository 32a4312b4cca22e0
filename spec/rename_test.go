package spec

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/expand"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/models"
)

// TestRenamedModules renames every module of the library and of the families, but for those
// that Go calls and linear, which is a transform too, and expects the same IR: Go and the data know no other by its name.
func TestRenamedModules(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("testdata/families/*/expected.json")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no tiny models: %v", err)
	}
	for _, file := range irtest.Sample(t, 24, dirs) {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			var texts []string
			for _, rename := range []bool{false, true} {
				s, err := Load(dir, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if rename {
					s.Network.lib = renamedLibrary(t, s)
				}
				set, err := s.OpenWeights()
				if err != nil {
					t.Fatal(err)
				}
				defer set.Close()
				m, err := Resolve(s, HeadersOf(set))
				if err != nil {
					t.Fatal(err)
				}
				mod, err := Lower(m)
				if err != nil {
					t.Fatal(err)
				}
				texts = append(texts, mod.String())
			}
			if d := cmp.Diff(texts[0], texts[1]); d != "" {
				t.Errorf("with other names of modules (-own +other):\n%s", d)
			}
		})
	}
}

// renamedLibrary returns the library of a model with other names of modules.
func renamedLibrary(t *testing.T, s *Spec) *expand.Library {
	t.Helper()
	files := [][2]string{}
	arch, _ := s.Config["model_type"].(string)
	f, _ := findFamily(arch)
	for _, g := range f.chain() {
		if text, own := models.FamilyModules()[g.name]; own {
			files = append(files, [2]string{g.name + ".ifl", text})
		}
	}
	names := slices.DeleteFunc(f.modules().Names(), func(name string) bool {
		return slices.Contains([]string{rootModule, tensorNames, sizesModule, vocabularyModule}, name) || ir.IsTransform(name)
	})
	all := map[string]string{}
	for name, text := range models.Modules() {
		all[name] = renamedModules(text, names)
	}
	lib, err := expand.NewLibrary(all)
	for _, file := range files {
		if err == nil {
			lib, err = lib.With(map[string]string{file[0]: renamedModules(file[1], names)})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

var (
	comments  = regexp.MustCompile(`(?m)[ \t]*#.*$`)
	callForm  = regexp.MustCompile(`(module |[^A-Za-z0-9_.%@$]|^)([a-z_][A-Za-z0-9_]*)\(`)
	usedForm  = regexp.MustCompile(`(?m)^  use .* from \w+$`)
	instances = regexp.MustCompile(`^\s+as `)
)

// renamedModules returns a text with other names of modules, whose instances keep theirs.
func renamedModules(text string, names []string) string {
	text = usedForm.ReplaceAllStringFunc(comments.ReplaceAllString(text, ""), func(use string) string {
		if name := use[strings.LastIndexByte(use, ' ')+1:]; !slices.Contains(names, name) {
			return use
		}
		return use + "_renamed"
	})
	var b strings.Builder
	for text != "" {
		at := callForm.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		name, inner := text[at[4]:at[5]], text[at[1]:]
		b.WriteString(text[:at[4]] + name)
		isModule := slices.Contains(names, name)
		if isModule {
			b.WriteString("_renamed")
		}
		n := closing(inner)
		args := renamedModules(inner[:n], names)
		b.WriteString("(" + args + ")")
		text = inner[n+1:]
		if isModule && !strings.HasPrefix(text, " {") && !instances.MatchString(text) {
			b.WriteString(" as " + name)
		}
	}
	return b.String() + text
}

// closing returns the offset of the parenthesis that closes one in front of a text.
func closing(text string) int {
	depth, quoted := 0, false
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')' && depth == 0:
			return i
		case c == ')':
			depth--
		}
	}
	return len(text) - 1
}
