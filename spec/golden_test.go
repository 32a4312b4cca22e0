package spec

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files; read the difference")

// fakeHeaders are headers without files, one tensor per line: name type sizes…;
// {0..4} in a name expands to 0, 1, 2 and 3.
type fakeHeaders struct {
	dtypes map[string]tensor.DType
	shapes map[string][]int
}

func parseHeaders(t testing.TB, text string) *fakeHeaders {
	h := &fakeHeaders{map[string]tensor.DType{}, map[string][]int{}}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.Fields(line)
		if len(f) < 2 {
			t.Fatalf("headers: %q", line)
		}
		dt, ok := tensor.ParseDType(f[1])
		if !ok {
			t.Fatalf("headers: type of %q", line)
		}
		var shape []int
		for _, s := range f[2:] {
			n, err := strconv.Atoi(s)
			if err != nil {
				t.Fatalf("headers: %q: %v", line, err)
			}
			shape = append(shape, n)
		}
		for _, name := range expandRange(f[0]) {
			h.dtypes[name], h.shapes[name] = dt, shape
		}
	}
	return h
}

func expandRange(s string) []string {
	head, rest, ok := strings.Cut(s, "{")
	inside, tail, ok2 := strings.Cut(rest, "}")
	if !ok || !ok2 {
		return []string{s}
	}
	var lo, hi int
	if n, err := fmt.Sscanf(inside, "%d..%d", &lo, &hi); n != 2 || err != nil {
		return []string{s}
	}
	var out []string
	for i := lo; i < hi; i++ {
		out = append(out, expandRange(head+strconv.Itoa(i)+tail)...)
	}
	return out
}

func (h *fakeHeaders) Lookup(name string) (tensor.DType, []int, bool) {
	s, ok := h.shapes[name]
	return h.dtypes[name], s, ok
}

func (h *fakeHeaders) Names() []string {
	var out []string
	for n := range h.shapes {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

func (h *fakeHeaders) Meta() map[string]any { return nil }

// fakeSpec parses a model spec with a config.json. If src is empty, the model spec
// is derived from config.json.
func fakeSpec(t testing.TB, name, src, config string, opt Options) (*Spec, error) {
	t.Helper()
	c := map[string]any{}
	if config != "" {
		if err := json.Unmarshal([]byte(config), &c); err != nil {
			t.Fatal(err)
		}
	}
	if src == "" {
		src = "iflow: 1\nconfig_file: config.json\nname: " + name + "\n"
	}
	return Parse(name+".yaml", []byte(src), textConfig(c), opt)
}

// fakeModel resolves a model spec with a config.json and headers without files.
func fakeModel(t testing.TB, name, src, config, headers string) *Model {
	t.Helper()
	s, err := fakeSpec(t, name, src, config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Resolve(s, parseHeaders(t, headers))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLower lowers each family's example and compares the IR with the golden
// text. Run with -update to rewrite it.
func TestLower(t *testing.T) {
	files, err := filepath.Glob("../models/testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{}
			for _, f := range ar.Files {
				parts[f.Name] = string(f.Data)
			}
			name := strings.TrimSuffix(filepath.Base(file), ".txtar")
			m := fakeModel(t, name, parts["spec.yaml"], parts["config.json"], parts["headers.txt"])
			got := loweredModel(t, m)
			if *update {
				writeGolden(t, file, ar, got)
				return
			}
			if d := cmp.Diff(parts["out.ir"], got); d != "" {
				t.Errorf("lowered IR (-want +got); -update rewrites it:\n%s", d)
			}
			roundTrip(t, m.Spec, parts, got)
		})
	}
}

func lowered(t *testing.T, s *Spec, h Headers) string {
	t.Helper()
	m, err := Resolve(s, h)
	if err != nil {
		t.Fatal(err)
	}
	return loweredModel(t, m)
}

func loweredModel(t *testing.T, m *Model) string {
	t.Helper()
	mod, err := Lower(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(mod); err != nil {
		t.Fatalf("the verifier refuses it: %v", err)
	}
	return mod.String()
}

// roundTrip prints the derived model spec, parses the result and lowers it.
func roundTrip(t *testing.T, s *Spec, parts map[string]string, want string) {
	t.Helper()
	y, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	back, err := fakeSpec(t, s.Name, string(y), parts["config.json"], Options{})
	if err != nil {
		t.Fatalf("printed model spec: %v\n%s", err, y)
	}
	if d := cmp.Diff(want, lowered(t, back, parseHeaders(t, parts["headers.txt"]))); d != "" {
		t.Errorf("the printed model spec lowers to something else:\n%s\n%s", d, y)
	}
}

func writeGolden(t *testing.T, file string, ar *txtar.Archive, got string) {
	t.Helper()
	var keep []txtar.File
	for _, f := range ar.Files {
		if f.Name != "out.ir" {
			keep = append(keep, f)
		}
	}
	ar.Files = append(keep, txtar.File{Name: "out.ir", Data: []byte(got)})
	if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
		t.Fatal(err)
	}
}
