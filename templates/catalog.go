// Package templates is the kernel catalog: C and CUDA templates, and the headers
// that kernels and the generated step include. A template's YAML header states its
// op, weight types and implementation. Adding a file to cpu/ adds a kernel: the
// conformance test and the profiler pick it up.
package templates

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/iflowc/iflowc/ir/tensor"
	"gopkg.in/yaml.v3"
)

//go:embed cpu include
var files embed.FS

// A Catalog holds the kernels of the CPU target.
type Catalog struct {
	kernels []*Kernel
}

var identifier = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Load returns the embedded catalog, parsed on the first call. Callers must not
// modify it. An error names the template and the fault.
func Load() (*Catalog, error) { return embedded() }

var embedded = sync.OnceValues(func() (*Catalog, error) { return load(files) })

func load(fsys fs.FS) (*Catalog, error) {
	formats, err := loadFormats(fsys)
	if err != nil {
		return nil, err
	}
	parts, err := fs.Glob(fsys, "cpu/parts/*.tmpl")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(fsys, "cpu/*.c.tmpl")
	if err != nil {
		return nil, err
	}
	c := &Catalog{}
	for _, name := range names {
		k, err := loadKernel(fsys, name, parts)
		if err != nil {
			return nil, err
		}
		k.formats = formats
		c.kernels = append(c.kernels, k)
	}
	return c, c.check()
}

// check returns an error if two kernels define the same symbol.
func (c *Catalog) check() error {
	seen := map[string]string{}
	for _, k := range c.kernels {
		for _, dt := range k.Types {
			s := k.Symbol(dt)
			if other := seen[s]; other != "" {
				return fmt.Errorf("templates %s and %s both define %s; give one of them another impl or type", other, k.Name, s)
			}
			seen[s] = k.Name
		}
	}
	return nil
}

// Kernels returns all kernels, sorted by name.
func (c *Catalog) Kernels() []*Kernel { return c.kernels }

// Candidates returns the kernels that compute op with weights of type dt on
// activations packed as Act(dt), sorted by From: the best for few rows first
// (FlashDecoding++ §5: ImplA, ImplB, ImplC).
func (c *Catalog) Candidates(op string, dt tensor.DType) []*Kernel {
	return c.CandidatesFor(op, dt, Act(dt))
}

// CandidatesFor is like Candidates for activations packed as act.
func (c *Catalog) CandidatesFor(op string, dt tensor.DType, act string) []*Kernel {
	var out []*Kernel
	for _, k := range c.kernels {
		if k.Op == op && slices.Contains(k.Types, dt) && k.Act(dt) == act {
			out = append(out, k)
		}
	}
	last := func(from int) int { // kernels that only a profile selects come last
		return cmp.Or(from, math.MaxInt)
	}
	slices.SortStableFunc(out, func(a, b *Kernel) int { return cmp.Compare(last(a.From(dt)), last(b.From(dt))) })
	return out
}

// A header is the YAML above the line --- of a kernel template.
type header struct {
	Doc   string   `yaml:"doc"`
	Op    string   `yaml:"op"`
	Impl  string   `yaml:"impl"`
	Types []string `yaml:"types"`
	Act   string   `yaml:"act"` // packing of the activations; empty: that of the weight type
	Tile  int      `yaml:"tile"`
	From  rowsFrom `yaml:"from"`
	Rows  []int    `yaml:"rows"` // numbers of tile rows that have a function of their own; empty: those of the ISA
	Sum   string   `yaml:"sum"`
	When  string   `yaml:"when"`
	ISAs  []string `yaml:"isas"`
}

func loadKernel(fsys fs.FS, name string, parts []string) (*Kernel, error) {
	var h header
	body, err := readTemplate(fsys, name, &h)
	if err != nil {
		return nil, err
	}
	if h.Op == "" || h.Impl == "" || h.Doc == "" || len(h.Types) == 0 {
		return nil, fmt.Errorf("template %s: the header needs doc, op, impl and types", name)
	}
	if !identifier.MatchString(h.Impl) { // it becomes part of a C name and of IR annotations
		return nil, fmt.Errorf("template %s: impl %q: expected lower-case letters, digits and _", name, h.Impl)
	}
	types, err := parseTypes(name, h.Types)
	if err != nil {
		return nil, err
	}
	if err := h.From.check(name, types); err != nil {
		return nil, err
	}
	t, err := parseBody(fsys, name, body, parts...)
	if err != nil {
		return nil, err
	}
	return &Kernel{
		Name: strings.TrimSuffix(path.Base(name), ".c.tmpl"), Op: h.Op, Impl: h.Impl, Doc: strings.TrimSpace(h.Doc),
		Sum: h.Sum, When: h.When, Types: types, Tile: h.Tile, act: h.Act, rows: h.Rows, from: h.From, isas: h.ISAs, body: t,
	}, nil
}

// parseBody parses a template's text; parts are files with templates that it may call.
func parseBody(fsys fs.FS, name, body string, parts ...string) (*template.Template, error) {
	t := template.New(path.Base(name)).Option("missingkey=error").Funcs(funcs)
	var err error
	if len(parts) > 0 {
		t, err = t.ParseFS(fsys, parts...)
	}
	if err == nil {
		t, err = t.Parse(body)
	}
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", name, err)
	}
	return t, nil
}

// openTemplate reads a template without parts: it decodes the header, parses the
// types in list, a field of the header, and parses the body.
func openTemplate(fsys fs.FS, name string, header any, list *[]string) (*template.Template, []tensor.DType, error) {
	body, err := readTemplate(fsys, name, header)
	if err != nil {
		return nil, nil, err
	}
	types, err := parseTypes(name, *list)
	if err != nil {
		return nil, nil, err
	}
	t, err := parseBody(fsys, name, body)
	return t, types, err
}

// readTemplate splits a template file into its YAML header and its body.
func readTemplate(fsys fs.FS, name string, header any) (body string, err error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return "", err
	}
	head, rest, ok := bytes.Cut(data, []byte("\n---\n"))
	if !ok {
		return "", fmt.Errorf("template %s: no line --- between the header and the body", name)
	}
	d := yaml.NewDecoder(bytes.NewReader(head))
	d.KnownFields(true)
	if err := d.Decode(header); err != nil {
		return "", fmt.Errorf("template %s: header: %w", name, err)
	}
	return string(rest), nil
}

func parseTypes(name string, types []string) ([]tensor.DType, error) {
	var out []tensor.DType
	for _, s := range types {
		dt, ok := tensor.ParseDType(s)
		if !ok {
			return nil, fmt.Errorf("template %s: unknown type %q", name, s)
		}
		out = append(out, dt)
	}
	return out, nil
}
