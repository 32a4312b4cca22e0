package compiler

import (
	"context"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/templates"
)

// TestGeneratedC: the C of the demo model compiles with warnings as errors, by
// gcc and by clang: with IFLOWC_TEST_ALL for every instruction set of this
// architecture in every weight type; else the step in one type for two of them,
// by those that are installed. The tests of templates compile the kernels.
func TestGeneratedC(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	compilers := slices.DeleteFunc([]string{"gcc", "clang"}, func(name string) bool {
		_, err := exec.LookPath(name)
		return err != nil && !irtest.All()
	})
	if len(compilers) == 0 {
		compilers = []string{""}
	}
	cache, err := toolchain.OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range compilers {
		cc, err := toolchain.FindCompiler(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		b := &toolchain.Builder{Cache: cache, CC: cc}
		for _, q := range irtest.Sample(t, 1, weightTypes) {
			p, err := generate(demoSpec, Options{Quant: q})
			if err != nil {
				t.Fatalf("%s: %v", q, err)
			}
			p.Close()
			for _, isa := range irtest.Sample(t, 1, p.isas) {
				if err := compileStrictly(t.Context(), b, p, isa); err != nil {
					t.Errorf("%s for %s by %s: %v", q, isa.Name, cc.Path, err)
				}
			}
		}
	}
}

// compileStrictly compiles a program's C for one instruction set with warnings
// as errors.
func compileStrictly(ctx context.Context, b *toolchain.Builder, p *Program, isa templates.ISA) error {
	headers := map[string][]byte{}
	for name, text := range templates.Headers() {
		headers[name] = []byte(text)
	}
	units, err := unitsFor(p.whole.CPU, isa, headers)
	if err != nil {
		return err
	}
	if !irtest.All() {
		units = units[:1]
	}
	for i := range units {
		units[i].Flags = append(slices.Clone(units[i].Flags), "-Werror")
	}
	_, err = b.Objects(ctx, units)
	return err
}

// TestInstructionSets: every instruction set of this architecture can be asked
// for by name, in the catalog's order.
func TestInstructionSets(t *testing.T) {
	t.Parallel()
	for _, isa := range templates.ISAs() {
		if isa.Arch != "" && isa.Arch != runtime.GOARCH {
			continue
		}
		got, err := pickISAs(isa.Name, "")
		if err != nil || len(got) != 1 || got[0].Name != isa.Name {
			t.Errorf("%s: %v %v", isa.Name, got, err)
		}
	}
	all, err := pickISAs("", "")
	if err != nil || !slices.ContainsFunc(all, func(i templates.ISA) bool { return len(i.Needs) == 0 }) {
		t.Errorf("no instruction set that every processor has: %v", err)
	}
}

// TestSkippingPasses: a model still compiles to C when any pass but quantize is
// left out: passes make programs fast, not right.
func TestSkippingPasses(t *testing.T) {
	t.Parallel()
	for _, name := range passes.Names() {
		m, err := Open(t.Context(), demoSpec, Options{Quant: "f32"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Module(passes.Options{Limit: -1, Skip: map[string]bool{name: true}}); err != nil {
			t.Errorf("without %s: %v", name, err)
		}
		m.Close()
	}
}

const demoSpec = "../../models/demo.yaml"
