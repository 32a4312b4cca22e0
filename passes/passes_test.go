package passes

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/templates"
)

var update = flag.Bool("update", false, "rewrite the expected output; read the difference before you commit it")

// env makes what the passes consult; a case may say more in a section "env":
// lines "quant TYPE", "kv TYPE", "type PATTERN TYPE", "threshold N",
// "devices 0&1;2&3" and "profile N K TYPE impl rows impl …".
func env(t *testing.T, settings []byte) *Env {
	t.Helper()
	cat, err := templates.Load()
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{Ops: ops.Table, Kernels: cat}
	sc := bufio.NewScanner(bytes.NewReader(settings))
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) == 0 {
			continue
		}
		dtype := func(s string) tensor.DType {
			d, ok := tensor.ParseDType(s)
			if !ok {
				t.Fatalf("env: type %q", s)
			}
			return d
		}
		switch f[0] {
		case "quant":
			e.Types.Default = dtype(f[1])
		case "kv":
			e.Types.KV = dtype(f[1])
		case "activations":
			e.Types.Activations = dtype(f[1])
		case "type":
			e.Types.Weights = append(e.Types.Weights, TypeRule{f[1], dtype(f[2])})
		case "threshold":
			fmt.Sscan(f[1], &e.Types.Threshold)
		case "devices":
			for _, group := range strings.Split(f[1], ";") {
				var ds []Device
				for _, name := range strings.Split(group, "&") {
					name, share, _ := strings.Cut(name, "*")
					d := Device{Name: "dev" + name}
					fmt.Sscan(share, &d.Share)
					ds = append(ds, d)
				}
				e.Devices = append(e.Devices, ds)
			}
		case "tolerance":
		case "profile":
			e.Profile = oneShape(f[1:])
		default:
			t.Fatalf("env: unknown line %q", sc.Text())
		}
	}
	return e
}

// tolerance is what a case allows by a line "tolerance X": rounding to few bits
// changes more than rounding to many.
func tolerance(settings []byte) float64 {
	tol := 0.0
	for _, line := range strings.Split(string(settings), "\n") {
		if s, ok := strings.CutPrefix(line, "tolerance "); ok {
			fmt.Sscan(s, &tol)
		}
	}
	return tol
}

// oneShape is a profile of one shape: N K TYPE impl [rows impl]…
type oneShape []string

func (p oneShape) Choose(n, k int, dt tensor.DType, _ []string) ([]Case, bool) {
	if fmt.Sprint(n, k, dt) != strings.Join(p[:3], " ") {
		return nil, false
	}
	cases := []Case{{1, p[3]}}
	for i := 4; i+1 < len(p); i += 2 {
		c := Case{Impl: p[i+1]}
		fmt.Sscan(p[i], &c.Rows)
		cases = append(cases, c)
	}
	return cases, true
}

// TestGolden: each pass on each of its archives gives the expected text, keeps
// the meaning, and changes nothing when run again.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, p := range Pipeline {
		t.Run(p.Name, func(t *testing.T) {
			irtest.Each(t, filepath.Join("testdata", p.Name), *update, func(c *irtest.Case) {
				var settings []byte
				if c.Has("env") {
					settings = c.Section("env")
				}
				e := env(t, settings)
				in := c.Parse("in.ir")
				out := in.Clone()
				err := Run(e, out, []*Pass{p}, Options{Limit: -1})
				if c.Has("error") {
					if err == nil {
						t.Fatal("no error")
					}
					c.EqualText("error", err.Error()+"\n")
					return
				}
				c.Must(err)
				c.Equal("out.ir", out)
				c.SameMeaning(in, out, max(p.Tolerance, tolerance(settings)))
				if p != Partition { // splits what it is given
					c.Idempotent(out, func(m *ir.Module) error { return Run(e, m, []*Pass{p}, Options{Limit: -1}) })
				}
			})
		})
	}
}

// TestEveryPassHasGoldens: a pass without testdata, and testdata without a
// pass, fail.
func TestEveryPassHasGoldens(t *testing.T) {
	t.Parallel()
	dirs, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, d := range dirs {
		if d.Name() != "fuzz" {
			have = append(have, d.Name())
		}
	}
	want := Names()
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(have, want) {
		t.Errorf("testdata has %v, the pipeline %v", have, want)
	}
}

// TestOrder holds the pipeline to the table of what must stand before what.
func TestOrder(t *testing.T) {
	t.Parallel()
	for _, o := range order {
		before, after := slices.Index(Names(), o.before), slices.Index(Names(), o.after)
		if before < 0 || after < 0 || before >= after {
			t.Errorf("%s must stand before %s: %s", o.before, o.after, o.why)
		}
	}
}

// TestRandomModules: the whole pipeline, and every prefix of it, keeps the
// meaning of random modules.
func TestRandomModules(t *testing.T) {
	t.Parallel()
	for _, seed := range irtest.Seeds(t, 12, 40) {
		checkPipeline(t, seed)
	}
}

// FuzzPasses returns the pipeline random modules for as long as one likes.
func FuzzPasses(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkPipeline(t, seed) })
}

func checkPipeline(t *testing.T, seed uint64) {
	t.Helper()
	in := irtest.Random(seed)
	if seed%4 == 3 {
		irtest.WriteIndices(in, seed)
	}
	out := in.Clone()
	e := env(t, nil)
	stages := []*ir.Module{}
	err := Run(e, out, Pipeline, Options{Limit: -1, Dump: func(_ int, _ string, m *ir.Module) { stages = append(stages, m.Clone()) }})
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, in)
	}
	for i, m := range stages[1:] {
		if err := irtest.Compare(stages[i], m, seed, max(Pipeline[i].Tolerance, 1e-9)); err != nil {
			t.Fatalf("seed %d after %s: %v\n%s", seed, Pipeline[i].Name, err, m)
		}
	}
	for _, g := range out.Graphs {
		checkPitch(t, seed, g.Body, map[string]rows{})
		checkSlots(t, fmt.Sprint("seed ", seed), g)
	}
}

// checkPitch: values that share a slot have rows of one length, so that the
// same row of each lies in the same place. Ops run together row by row.
func checkPitch(t *testing.T, seed uint64, b *ir.Block, slots map[string]rows) {
	t.Helper()
	for _, op := range b.Ops {
		if note := op.Annotations.Get("slot"); note != nil {
			for i, r := range op.Results {
				slot := note.Args[i].Val
				have, ok := slots[slot]
				if ok && op.Def.Name == "split" && have.pitch > rowsOf(r).pitch {
					continue // a view
				}
				if ok && have != rowsOf(r) {
					t.Errorf("seed %d: slot %s holds rows of %+v and of %+v (%s)", seed, slot, have, rowsOf(r), r)
				}
				slots[slot] = rowsOf(r)
			}
		}
		if op.Body != nil && op.Def.Name == "repeat" {
			checkPitch(t, seed, op.Body, slots)
		}
	}
}

// TestManager: dumps, stopping, skipping and limits, and a broken pass is named.
func TestManager(t *testing.T) {
	t.Parallel()
	e := env(t, nil)
	stages := append([]string{"lower"}, Names()...)
	var seen []string
	dump := func(_ int, name string, _ *ir.Module) { seen = append(seen, name) }
	run := func(list []*Pass, opt Options) error {
		seen = nil
		opt.Dump = dump
		return Run(e, irtest.Random(1), list, opt)
	}
	if err := run(Pipeline, Options{Limit: -1, After: "quantize"}); err != nil || !slices.Equal(seen, stages[:slices.Index(stages, "quantize")+1]) {
		t.Errorf("after quantize: %v %v", seen, err)
	}
	if err := run(Pipeline, Options{Limit: 1}); err != nil || !slices.Equal(seen, stages[:2]) {
		t.Errorf("one pass: %v %v", seen, err)
	}
	if err := run(Pipeline, Options{Limit: -1, Skip: map[string]bool{"quantize": true}}); err != nil || slices.Contains(seen, "quantize") {
		t.Errorf("skip: %v %v", seen, err)
	}
	bad := []*Pass{{Name: "panics", Run: func(*Env, *ir.Module) error { panic("oh") }}}
	if err := run(bad, Options{Limit: -1}); err == nil || !strings.Contains(err.Error(), "pass panics on module") {
		t.Errorf("a panic gives %v", err)
	}
	breaks := []*Pass{{Name: "breaks", Run: func(_ *Env, m *ir.Module) error {
		m.Graphs[0].Body.Yield = nil
		m.Graphs[0].Body.Ops[0].Args = nil
		return nil
	}}}
	if err := run(breaks, Options{Limit: -1}); err == nil || !strings.Contains(err.Error(), "pass breaks left an invalid module") {
		t.Errorf("a broken module gives %v", err)
	}
	if _, err := Named([]string{"fuse"}); err == nil || !strings.Contains(err.Error(), "have: "+Pipeline[0].Name) {
		t.Errorf("an unknown pass gives %v", err)
	}
}
