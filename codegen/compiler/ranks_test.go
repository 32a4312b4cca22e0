package compiler

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/spec"
)

// spreads are the device strings over which the tiny models are spread, each
// over one in turn.
var spreads = []string{"0&1", "0;1", "0&1;2&3", "0&1&2&3", "0*2;1", "0&1&2", "cpu;0", "0&1&2&3;4&5&6&7"}

// TestSpreadFamilies: for the tiny models of spec/testdata and their variants,
// the programs of all ranks, run side by side, compute what the model computes
// on one device: bit for bit where only layers are spread. More devices than
// heads or layers are refused with their numbers.
func TestSpreadFamilies(t *testing.T) {
	t.Parallel()
	models := familyModels(t)
	delete(models, "ernie") // the shape of a stored tensor of its does not follow from the transform, so none can be made up
	type spreadCase struct{ name, devices string }
	var cases []spreadCase
	for i, name := range slices.Sorted(maps.Keys(models)) {
		cases = append(cases, spreadCase{name, spreads[i%len(spreads)]})
	}
	for _, c := range irtest.SampleBy(t, 6, cases, func(c spreadCase) string { return c.name }) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spreadModel(t, models[c.name], c.devices)
		})
	}
}

func spreadModel(t *testing.T, path, devices string) {
	m, err := Open(t.Context(), path, Options{Devices: devices})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	whole, err := spec.Lower(m.Model)
	if err != nil {
		t.Fatal(err)
	}
	plain(whole)
	env, err := m.env()
	if err != nil {
		t.Fatal(err)
	}
	part := whole.Clone()
	if err := passes.Run(env, part, []*passes.Pass{passes.Partition}, passes.Options{Limit: -1}); err != nil {
		if !strings.Contains(err.Error(), "cannot be divided among") && !strings.Contains(err.Error(), "device groups for") {
			t.Fatal(err)
		}
		if devices == "0&1" {
			t.Fatal(err)
		}
		spreadModel(t, path, "0&1")
		return
	}
	ranks, err := passes.Project(part, env.Devices)
	if err != nil {
		t.Fatal(err)
	}
	var mods []*ir.Module
	for _, r := range ranks {
		mods = append(mods, r.Module)
	}
	tolerance := 0.0
	if ranks[0].TPSize > 1 {
		tolerance = passes.Partition.Tolerance
		if err := irtest.Compare(whole, part, 1, tolerance); err != nil && !strings.Contains(path, "longrope_long") { // whose rotations hang on the chunks
			t.Errorf("%s: in regions of ranks: %v", devices, err)
		}
	}
	if err := irtest.CompareRanks(whole, mods, ranks[0].TPSize, 1, tolerance); err != nil {
		t.Errorf("%s: %v", devices, err)
	}
}

// plain gives weights of stored block types, in which made-up values cannot be
// written, a float type.
func plain(m *ir.Module) {
	for _, w := range m.Weights {
		if w.Type.Elem.IsBlock() {
			w.Type.Elem = tensor.F16
		}
	}
}

// TestSpreadTokenTypes: the manifest of a partitioned encoder, which has no weights of its
// own, states the number of token types.
func TestSpreadTokenTypes(t *testing.T) {
	t.Parallel()
	p, err := generate("../../spec/testdata/families/bert", Options{Quant: "f32", Devices: "0&1"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.files = map[string][]byte{}
	if err := p.describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if man := p.whole.CPU.Manifest; man.TokenTypes != 2 || man.Weights != nil {
		t.Errorf("%d token types, %d weights", man.TokenTypes, len(man.Weights))
	}
}
