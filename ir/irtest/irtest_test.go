package irtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

var update = flag.Bool("update", false, "rewrite the expected output")

func TestRandomModules(t *testing.T) {
	t.Parallel()
	for name, random := range map[string]func(uint64) *ir.Module{"Random": Random, "RandomMoE": RandomMoE, "RandomSeq2Seq": RandomSeq2Seq} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			texts := map[string]bool{}
			seeds := Seeds(t, 12, 40)
			for _, seed := range seeds {
				m := random(seed)
				texts[m.String()] = true
				checkRandom(t, m, seed)
			}
			if len(texts) < len(seeds)*9/10 {
				t.Errorf("%d seeds give only %d modules", len(seeds), len(texts))
			}
		})
	}
}

// TestWriteIndices checks that written indices do not change results.
func TestWriteIndices(t *testing.T) {
	t.Parallel()
	for name, random := range map[string]func(uint64) *ir.Module{"Random": Random, "RandomMoE": RandomMoE, "RandomSeq2Seq": RandomSeq2Seq} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range Seeds(t, 3, 6) {
				m := random(seed)
				WriteIndices(m, seed)
				checkRandom(t, m, seed)
				if err := Compare(random(seed), m, seed, 0); err != nil {
					t.Errorf("seed %d: %v\n%s", seed, err, m)
				}
			}
		})
	}
}

// checkRandom checks that a module is valid, survives printing and parsing, has no dead
// code and runs.
func checkRandom(t *testing.T, m *ir.Module, seed uint64) {
	t.Helper()
	if err := ir.Verify(m); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	again, err := ir.Parse("again.ir", []byte(m.String()), ops.Table)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if !ir.Equal(m, again) {
		t.Errorf("seed %d: printing and reading changes it:\n%s", seed, ir.Diff(m.String(), again.String()))
	}
	if ir.DCE(m) {
		t.Errorf("seed %d: DCE finds something dead:\n%s", seed, ir.Diff(again.String(), m.String()))
	}
	if seed < 6 {
		if err := Compare(m, again, seed, 0); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestCompareFindsChanges checks that Compare detects each of these changes.
func TestCompareFindsChanges(t *testing.T) {
	t.Parallel()
	m := Random(3)
	changes := map[string]func(*ir.Op) bool{
		"matmul":    func(o *ir.Op) bool { o.Args[1].Value.Transform.Name += "x"; return true },
		"attention": func(o *ir.Op) bool { o.SetAttr("scale", 0.1); return true },
	}
	for name, change := range changes {
		c := m.Clone()
		change(c.Graphs[0].FindOp(name))
		if err := Compare(m, c, 1, 1e-6); err == nil {
			t.Errorf("a change of %s goes unseen", name)
		}
	}
}

// TestCompareInputs: inputs that are no part of a step get the same random values for both
// modules, one row per token or output row, or of a fixed shape. What is computed of them is
// compared, and so is how much is returned.
func TestCompareInputs(t *testing.T) {
	t.Parallel()
	module := func(second, returned string) *ir.Module {
		m, err := ir.Parse("inputs.ir", []byte(`module inputs {
  weight @embed : f32[40, 8] from "embed"
  graph decode (T tokens, R out_rows) {
    input %ids : i32[T]
    input %out_rows : i32[R]
    input %more : f32[T, 8]
    input %late : f32[R, 8]
    %x = embed %ids, @embed
    %y = add %x, %more
    %last = rows %y, %out_rows
    %z = add %last, `+second+`
    yield `+returned+`
  }
}
`), ops.Table)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if err := Compare(module("%late", "%z"), module("%late", "%z"), 1, 0); err != nil {
		t.Error(err)
	}
	for _, other := range []*ir.Module{module("%last", "%z"), module("%late", "%last"), module("%late", "%z, %last"), module("%late", "%y")} {
		if err := Compare(module("%late", "%z"), other, 1, 1e-6); err == nil {
			t.Errorf("a change goes unseen:\n%s", other)
		}
	}
}

func TestEach(t *testing.T) {
	Each(t, "testdata", *update, func(c *Case) {
		in := c.Parse("in.ir")
		out := in.Clone()
		ir.DCE(out)
		c.Equal("out.ir", out)
		c.SameMeaning(in, out, 0)
		c.Idempotent(out, func(m *ir.Module) error { ir.DCE(m); return nil })
	})
}

// TestHarness checks that unread sections are reported and that only requested updates are
// written.
func TestHarness(t *testing.T) {
	t.Parallel()
	if _, err := archives(t.TempDir()); err == nil {
		t.Error("a folder without archives gives no error")
	}
	path := filepath.Join(t.TempDir(), "a.txtar")
	if err := os.WriteFile(path, []byte("Prose.\n-- in.ir --\nold\n-- stray.ir --\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := open(path, true)
	if err != nil {
		t.Fatal(err)
	}
	c.T = t
	c.EqualText("in.ir", "new\n")
	if got := c.unread(); !slices.Equal(got, []string{"stray.ir"}) {
		t.Errorf("unread sections are %v", got)
	}
	c.EqualText("stray.ir", "")
	c.EqualText("out.ir", "more\n")
	c.finish()
	got, err := os.ReadFile(path)
	if want := "Prose.\n-- in.ir --\nnew\n-- stray.ir --\n-- out.ir --\nmore\n"; err != nil || string(got) != want {
		t.Errorf("the archive is\n%s\nexpected\n%s", got, want)
	}
}

func ExampleRandom() {
	m := Random(1)
	fmt.Println(m.Name, len(m.Graphs), m.Graphs[0].Name)
	// Output: random 1 decode
}
