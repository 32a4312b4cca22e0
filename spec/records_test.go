package spec

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/models"
	"golang.org/x/tools/txtar"
)

// recordFile holds what every model of the tests becomes, as a txtar archive: the canonical
// form of its module and what other parts of iflowc learn about its weights.
const recordFile = "testdata/records.txtar.gz"

// TestRecords compares what every model becomes with the record. A change of names, loops
// or the order of independent ops is none.
func TestRecords(t *testing.T) {
	t.Parallel()
	recorded := readRecords(t)
	cases := recordCases(t)
	if !*update {
		cases = irtest.SampleBy(t, 150, cases, func(c recordCase) string { return c.name })
	}
	var mu sync.Mutex
	got := map[string]string{}
	t.Run("models", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				text := record(t, &c)
				mu.Lock()
				got[c.name] = text
				mu.Unlock()
				if *update {
					return
				}
				want, ok := recorded[c.name]
				if !ok {
					t.Fatal("no record; run go test ./spec -run TestRecords -update")
				}
				if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(text, "\n")); d != "" {
					t.Errorf("the model becomes something else (-recorded +now); -update records it:\n%s", d)
				}
			})
		}
	})
	if *update && !t.Failed() {
		writeRecords(t, got)
	}
}

// TestRecordsAreComplete checks that every record is that of a model.
func TestRecordsAreComplete(t *testing.T) {
	t.Parallel()
	recorded := readRecords(t)
	for _, c := range recordCases(t) {
		delete(recorded, c.name)
	}
	for name := range recorded {
		t.Errorf("the record of %s belongs to no model; -update removes it", name)
	}
}

// A recordCase is a model whose module is recorded.
type recordCase struct {
	name    string
	resolve func(t *testing.T) *Model
	hashed  bool // its module and names are too large to record more than a hash; another test has its text
}

// recordCases returns all models of the tests: the tiny ones of all families, variants,
// combinations, graphs, GGUF files and drafts, those of the library at their real sizes,
// and Inferflow's.
func recordCases(t *testing.T) []recordCase {
	t.Helper()
	var out []recordCase
	stored := func(pattern string, opt Options) {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no models match %s: %v", pattern, err)
		}
		for _, file := range files {
			if base := filepath.Base(file); base == "config.json" || base == "model.gguf" {
				file = filepath.Dir(file)
			}
			name := strings.TrimPrefix(filepath.ToSlash(file), "testdata/")
			out = append(out, recordCase{name, func(t *testing.T) *Model {
				m, _ := resolved(t, file, opt)
				return m
			}, false})
		}
	}
	for _, pattern := range []string{"families/*/config.json", "gguf/*/model.gguf", "graphs/*.yaml", "combinations/*.yaml", "variants/*.yaml"} {
		stored("testdata/"+pattern, Options{Quant: "f32"})
	}
	stored("../models/demo.yaml", Options{})
	for name, section := range draftCases {
		out = append(out, recordCase{"draft/" + name, func(t *testing.T) *Model {
			dir, err := filepath.Abs("testdata/draft/" + name)
			if err != nil {
				t.Fatal(err)
			}
			m, _ := resolved(t, draftSpec(t, dir, section), Options{})
			return m
		}, false})
	}
	for _, section := range []string{"{file: DIR/own.pt}", "{file: DIR/shared.safetensors, vocab: 30}", "{file: DIR/square.safetensors, vocab: 32}"} {
		out = append(out, recordCase{"medusa/" + section, func(t *testing.T) *Model {
			m, _, _, err := medusaModule(t, "  "+section)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}, false})
	}
	return append(out, fakeCases(t)...)
}

// fakeCases returns the models of which only sizes and headers are here.
func fakeCases(t *testing.T) []recordCase {
	t.Helper()
	var out []recordCase
	files, err := filepath.Glob("../models/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		out = append(out, recordCase{"golden/" + name, func(t *testing.T) *Model {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{}
			for _, f := range ar.Files {
				parts[f.Name] = string(f.Data)
			}
			return fakeModel(t, name, parts["spec.yaml"], parts["config.json"], parts["headers.txt"])
		}, true})
	}
	for _, name := range models.Names() {
		if !inTree[name] {
			out = append(out, recordCase{"library/" + name, func(t *testing.T) *Model {
				src, p := librarySpec(t, name)
				return fakeModel(t, name, src, p.config, p.tensor)
			}, true})
		}
	}
	if files, err = filepath.Glob(filepath.Join(*inferflowSpecs, "*__*.json")); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		out = append(out, recordCase{"inferflow/" + name, func(t *testing.T) *Model {
			m, _ := inferflowModel(t, file)
			return m
		}, true})
	}
	return out
}

// canonical returns the canonical form of a model's module, which it verifies.
func canonical(t *testing.T, m *Model) string {
	t.Helper()
	mod, err := Lower(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(mod); err != nil {
		t.Fatal(err)
	}
	c, err := irtest.Canonical(mod)
	if err != nil {
		t.Fatal(err)
	}
	return c.String()
}

// record returns the text that is recorded of a model.
func record(t *testing.T, which *recordCase) string {
	t.Helper()
	m := which.resolve(t)
	if err := m.Spec.checkStandard(); err != nil {
		t.Error(err)
	}
	var b strings.Builder
	fmt.Fprintln(&b, canonical(t, m))
	for _, name := range slices.Sorted(slices.Values(m.Unused)) {
		fmt.Fprintln(&b, "unused:", name)
	}
	aliases := m.AdapterNames()
	for _, name := range slices.Sorted(maps.Keys(aliases)) {
		fmt.Fprintf(&b, "alias: %s = %v\n", name, aliases[name])
	}
	if which.hashed {
		sum := sha256.Sum256([]byte(b.String()))
		b.Reset()
		fmt.Fprintf(&b, "%x\n", sum)
	}
	keys := map[string]bool{}
	for _, d := range m.declared {
		keys[fmt.Sprintf("types: %s = %s", d.base, d.std)] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintln(&b, key)
	}
	fmt.Fprintln(&b, m.Parameters(), "parameters")
	return b.String()
}

func readRecords(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	raw, err := os.ReadFile(recordFile)
	if os.IsNotExist(err) && *update {
		return out
	}
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse(text).Files {
		out[f.Name] = string(f.Data)
	}
	return out
}

func writeRecords(t *testing.T, records map[string]string) {
	t.Helper()
	var ar txtar.Archive
	for _, name := range slices.Sorted(maps.Keys(records)) {
		ar.Files = append(ar.Files, txtar.File{Name: name, Data: []byte(records[name])})
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(txtar.Format(&ar)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recordFile, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
