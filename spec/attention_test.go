package spec

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const attentionPage = "../docs/benchmarks/attention.md"

// TestAttentionPaths checks that the benchmark page that compares the two attention
// implementations of transformers lists exactly the models of testdata/families.
// References must be recorded with the default implementation, and the page must state
// why the other differs.
func TestAttentionPaths(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(attentionPage)
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob("testdata/families/*/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var models []string
	for _, file := range folders {
		if readExpected(t, filepath.Dir(file)).Attention == "float64" {
			continue // computed by testdata/combinations/make.py
		}
		models = append(models, filepath.Base(filepath.Dir(file)))
	}
	_, section, _ := strings.Cut(string(raw), "\n## Models of spec/testdata/families\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var named []string
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) < 5 || strings.HasPrefix(line, "| model") {
			continue
		}
		name := strings.TrimPrefix(cells[0], "| ")
		named = append(named, name)
		checkAttentionRow(t, name, cells)
	}
	slices.Sort(models)
	slices.Sort(named)
	if !slices.Equal(models, named) {
		t.Errorf("%s is stale: run tools/gen/reference/attention.py --write\nfolders: %v\npage: %v", attentionPage, models, named)
	}
}

// checkAttentionRow checks "| model | default | difference | largest | what differs |".
func checkAttentionRow(t *testing.T, name string, cells []string) {
	t.Helper()
	standard, why := cells[1], strings.Trim(cells[4], " |")
	difference, err := strconv.ParseFloat(cells[2], 64)
	if err != nil {
		t.Fatalf("%s: difference: %v", name, err)
	}
	largest, err := strconv.ParseFloat(cells[3], 64)
	if err != nil {
		t.Fatalf("%s: largest: %v", name, err)
	}
	if differs := difference > 1e-4*largest; differs != (why != "") {
		t.Errorf("%s: the paths differ by %g of %g, and what differs is %q", name, difference, largest, why)
	}
	if got := readExpected(t, filepath.Join("testdata/families", name)).Attention; got != standard {
		t.Errorf("%s: expected.json was recorded with %q, the page says %q", name, got, standard)
	}
}
