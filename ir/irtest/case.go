package irtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// A Case is one txtar archive: a comment that describes the case, then sections such as
// in.ir and out.ir.
type Case struct {
	*testing.T
	Path    string
	Prose   string
	archive *txtar.Archive
	update  bool
	changed bool
	read    map[string]bool
}

// Each runs f on every archive (*.txtar) of a folder, in parallel subtests. It fails for a
// folder without archives and for an archive with a section that f did not read, so that
// a misspelled expectation is noticed. If update is true, Equal rewrites sections instead
// of comparing them.
func Each(t *testing.T, dir string, update bool, f func(c *Case)) {
	t.Helper()
	paths, err := archives(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path[:len(path)-len(".txtar")]), func(t *testing.T) {
			t.Parallel()
			c, err := open(path, update)
			if err != nil {
				t.Fatal(err)
			}
			c.T = t
			f(c)
			c.finish()
		})
	}
}

// archives returns the archives of a folder, at least one.
func archives(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s contains no archive (*.txtar)", dir)
	}
	return paths, err
}

func open(path string, update bool) (*Case, error) {
	a, err := txtar.ParseFile(path)
	if err != nil {
		return nil, err
	}
	return &Case{Path: path, Prose: string(a.Comment), archive: a, update: update, read: map[string]bool{}}, nil
}

// finish reports unread sections and writes an updated archive.
func (c *Case) finish() {
	c.Helper()
	if c.Failed() || c.Skipped() {
		return
	}
	for _, name := range c.unread() {
		c.Errorf("%s: section %s was not read", c.Path, name)
	}
	if c.changed {
		if err := os.WriteFile(c.Path, txtar.Format(c.archive), 0o644); err != nil {
			c.Error(err)
		}
	}
}

// unread returns the sections that the test has not read.
func (c *Case) unread() []string {
	var out []string
	for _, f := range c.archive.Files {
		if !c.read[f.Name] {
			out = append(out, f.Name)
		}
	}
	return out
}

// Has reports whether the archive has a section.
func (c *Case) Has(name string) bool { return c.section(name) != nil }

// Section returns the text of a section. It fails the test if there is none.
func (c *Case) Section(name string) []byte {
	c.Helper()
	f := c.section(name)
	if f == nil {
		c.Fatalf("%s has no section %s", c.Path, name)
	}
	c.read[name] = true
	return f.Data
}

func (c *Case) section(name string) *txtar.File {
	for i := range c.archive.Files {
		if c.archive.Files[i].Name == name {
			return &c.archive.Files[i]
		}
	}
	return nil
}

// Parse parses and verifies the module in a section.
func (c *Case) Parse(name string) *ir.Module {
	c.Helper()
	m, err := ir.Parse(c.Path+":"+name, c.Section(name), ops.Table)
	c.Must(err)
	c.Must(ir.Verify(m))
	return m
}

// Must fails the test on an error.
func (c *Case) Must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// Equal verifies a module and compares its text with a section.
func (c *Case) Equal(name string, m *ir.Module) {
	c.Helper()
	c.Must(ir.Verify(m))
	c.EqualText(name, m.String())
}

// EqualText compares text with a section, or updates the section.
func (c *Case) EqualText(name, got string) {
	c.Helper()
	f := c.section(name)
	c.read[name] = true
	switch {
	case c.update && f == nil:
		c.archive.Files = append(c.archive.Files, txtar.File{Name: name, Data: []byte(got)})
		c.changed = true
	case c.update && string(f.Data) != got:
		f.Data = []byte(got)
		c.changed = true
	case c.update:
	case f == nil:
		c.Fatalf("%s has no section %s; the test gives\n%s", c.Path, name, got)
	case string(f.Data) != got:
		c.Errorf("%s: %s differs (- expected, + got):\n%s", c.Path, name, ir.Diff(string(f.Data), got))
	}
}

// Idempotent checks that f does not change the module.
func (c *Case) Idempotent(m *ir.Module, f func(*ir.Module) error) {
	c.Helper()
	again := m.Clone()
	c.Must(f(again))
	if d := ir.Diff(m.String(), again.String()); d != "" {
		c.Errorf("%s: a second run changes the module:\n%s", c.Path, d)
	}
}

// SameMeaning compares the outputs of both modules (see Compare).
func (c *Case) SameMeaning(in, out *ir.Module, tol float64) {
	c.Helper()
	c.Must(Compare(in, out, 1, tol))
}
