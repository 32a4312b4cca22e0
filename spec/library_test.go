package spec

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/models"
	"golang.org/x/tools/txtar"
)

const libraryDir = "../models/testdata/library"

// A published model is a file of testdata/library: config.json with the sizes of
// the real model, the headers of its files, and the IR.
type published struct {
	file   string
	ar     *txtar.Archive
	config string
	tensor string // headers
	ir     string
}

func readPublished(t testing.TB, name string) (published, bool) {
	t.Helper()
	p := published{file: filepath.Join(libraryDir, name+".txtar")}
	data, err := os.ReadFile(p.file)
	if err != nil {
		return p, false
	}
	p.ar = txtar.Parse(data)
	for _, f := range p.ar.Files {
		switch f.Name {
		case "config.json":
			p.config = string(f.Data)
		case "headers.txt":
			p.tensor = string(f.Data)
		case "out.ir":
			p.ir = string(f.Data)
		}
	}
	return p, true
}

// inTree lists models of the library with files in the repository; other tests
// run them.
var inTree = map[string]bool{"demo": true}

// TestLibraryModels lowers models of the library at their real sizes. If the
// model spec cites the source of its sizes ("# Sizes: …"), the IR is compared with
// a golden file; otherwise it must only be valid. If it cites a number of
// parameters, the count of the module's tensors must agree.
func TestLibraryModels(t *testing.T) {
	t.Parallel()
	names := models.Names()
	if !*update {
		names = irtest.Sample(t, 40, names)
	}
	for _, name := range names {
		if inTree[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src, p := librarySpec(t, name)
			m := fakeModel(t, name, src, p.config, p.tensor)
			got := loweredModel(t, m)
			cited, parameters := cited(src)
			switch {
			case !cited && p.ir != "":
				t.Errorf("%s has a golden, but models/%s.yaml does not cite its sizes", p.file, name)
			case cited && *update:
				writeGolden(t, p.file, p.ar, got)
			case cited:
				if d := cmp.Diff(p.ir, got); d != "" {
					t.Errorf("lowered IR (-want +got); -update rewrites it:\n%s", d)
				}
			}
			if n := m.Parameters(); n != int64(m.Spec.Parameters) {
				t.Errorf("models/%s.yaml: parameters: have %d, want %d, the elements of the tensors that the model uses", name, m.Spec.Parameters, n)
			}
			if parameters != "" {
				checkParameters(t, m, parameters)
			}
		})
	}
}

// librarySpec returns a model spec of the library and the sizes of its model.
func librarySpec(t testing.TB, name string) (string, published) {
	t.Helper()
	src, err := models.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := readPublished(t, name)
	if !ok {
		t.Fatalf("no %s; tools/gen/reference/headers.py makes its headers", p.file)
	}
	return string(src), p
}

// cited returns the citations in the comments of a model spec.
func cited(src string) (sizes bool, parameters string) {
	for line := range strings.SplitSeq(src, "\n") {
		if strings.HasPrefix(line, "# Sizes: ") {
			sizes = true
		}
		if text, ok := strings.CutPrefix(line, "# Parameters: "); ok {
			parameters = text
		}
	}
	return sizes, parameters
}

var parametersForm = regexp.MustCompile(`^(about )?([0-9.]+)([MB]?)(?: of (\S+))? \(.+\)$`)

// checkParameters compares the number of parameters with the published one:
// exactly, "about" (within 1 %), at the precision of a rounded number ("1.3B"), or
// for the tensors that match a pattern.
func checkParameters(t *testing.T, m *Model, text string) {
	t.Helper()
	f := parametersForm.FindStringSubmatch(text)
	if f == nil {
		t.Fatalf("# Parameters: %s: want NUMBER (SOURCE), about NUMBER (SOURCE), or NUMBER of PATTERN (SOURCE)", text)
	}
	want, err := strconv.ParseFloat(f[2], 64)
	if err != nil {
		t.Fatal(err)
	}
	slack := 0.0
	if unit := map[string]float64{"M": 1e6, "B": 1e9}[f[3]]; unit != 0 {
		_, decimals, _ := strings.Cut(f[2], ".")
		want, slack = want*unit, 0.5*unit*math.Pow(10, -float64(len(decimals)))
	}
	if f[1] != "" {
		slack = want / 100
	}
	if have := m.countParameters(f[4]); math.Abs(float64(have)-want) > slack {
		t.Errorf("%d parameters, published: %s", have, text)
	}
}

// TestGoldensHaveModels checks that every file of testdata/library belongs to a model.
func TestGoldensHaveModels(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(libraryDir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if _, err := models.Lookup(name); err != nil {
			t.Error(fmt.Errorf("%s: %w", file, err))
		}
	}
}
