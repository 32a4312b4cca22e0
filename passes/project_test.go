package passes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// arrangements are the device strings over which models are spread in tests,
// each over one of them in turn.
var arrangements = []string{"0;1", "0&1", "0&1;2&3", "0*2;1", "0&1&2"}

// TestRanksOfFamilies: the programs of the ranks of every family's tiny model,
// run side by side, give what the whole module gives: exactly where only layers
// are spread.
func TestRanksOfFamilies(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "models", "testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no models", err)
	}
	const always = "olmo2.txtar" // the only one whose projection selects columns of a rank
	own := slices.IndexFunc(files, func(f string) bool { return filepath.Base(f) == always })
	if own < 0 {
		t.Fatal("no ", always)
	}
	others := slices.Delete(slices.Clone(files), own, own+1)
	for _, f := range append(irtest.Sample(t, 11, others), files[own]) {
		devices := arrangements[slices.Index(files, f)%len(arrangements)]
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ranksAgree(t, loweredModel(t, f), devices)
		})
	}
}

// TestRanksOfIndices does so for modules whose indices are computed, over every
// arrangement.
func TestRanksOfIndices(t *testing.T) {
	t.Parallel()
	for name, arrangements := range map[string][]string{
		"pairs": {"0;1", "0&1", "0&1;2&3", "0*2;1"}, "two_states": {"0;1", "0&1", "0&1;2&3", "0*2;1"}, "one_state": {"0&1"},
	} {
		for _, devices := range arrangements {
			t.Run(name+" "+devices, func(t *testing.T) {
				t.Parallel()
				ranksAgree(t, moduleOf(t, name), devices)
			})
		}
	}
}

// TestSharedKVStaysTogether: layers that share a KV cache are not spread over
// device groups.
func TestSharedKVStaysTogether(t *testing.T) {
	t.Parallel()
	e, m := env(t, []byte("devices 0;1")), moduleOf(t, "one_state")
	if err := Run(e, m, []*Pass{Partition}, Options{Limit: -1}); err != nil {
		t.Fatal(err)
	}
	const want = "layer 2, on dev1, reads %kv, which dev0 writes; layers that share a KV cache must be on one device group"
	if _, err := Project(m, e.Devices); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestRanksOfRecurrence: each rank has its heads of a linear recurrence, and the
// columns of the convolution before it.
func TestRanksOfRecurrence(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "partition", "recurrent.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse(data).Files {
		if f.Name != "in.ir" {
			continue
		}
		m, err := ir.Parse(f.Name, f.Data, ops.Table)
		if err != nil {
			t.Fatal(err)
		}
		for _, devices := range []string{"0&1", "0&1&2", "0;1", "0&1;2&3"} {
			t.Run(devices, func(t *testing.T) { ranksAgree(t, m, devices) })
		}
	}
}

// moduleOf reads a module of testdata.
func moduleOf(t *testing.T, name string) *ir.Module {
	t.Helper()
	file := filepath.Join("testdata", "partition", name+".ir")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.Parse(file, data, ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// loweredModel returns the IR of an archive of the model library.
func loweredModel(t *testing.T, file string) *ir.Module {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse(data).Files {
		if f.Name != "out.ir" {
			continue
		}
		m, err := ir.Parse(file, f.Data, ops.Table)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range m.Weights { // what is made up cannot be written in every stored type
			if w.Type.Elem.IsBlock() {
				w.Type.Elem = tensor.F16
			}
		}
		return m
	}
	t.Fatalf("%s has no out.ir", file)
	return nil
}

// ranksAgree spreads a module over devices and compares its ranks, run side by
// side, with the whole.
func ranksAgree(t *testing.T, whole *ir.Module, devices string) {
	t.Helper()
	e := env(t, []byte("devices "+devices))
	m := whole.Clone()
	if err := Run(e, m, []*Pass{Partition}, Options{Limit: -1}); err != nil {
		t.Errorf("%s: %v", devices, err)
		return
	}
	if err := irtest.Compare(whole, m, 1, Partition.Tolerance); err != nil {
		t.Errorf("%s: partitioned: %v", devices, err)
	}
	ranks, err := Project(m, e.Devices)
	if err != nil {
		t.Errorf("%s: %v", devices, err)
		return
	}
	var mods []*ir.Module
	for _, r := range ranks {
		mods = append(mods, r.Module)
	}
	tol := 0.0
	if ranks[0].TPSize > 1 {
		tol = Partition.Tolerance
	}
	if err := irtest.CompareRanks(whole, mods, ranks[0].TPSize, 1, tol); err != nil {
		t.Errorf("%s: %v\n%s", devices, err, mods[0])
	}
}
