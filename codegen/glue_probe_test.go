package codegen

import (
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/templates"
)

// TestProbe compiles the probes for every instruction set of this
// architecture, under all warnings, and measures with those that run here: by the
// first compiler that is here, or by each where all cases are asked for.
func TestProbe(t *testing.T) {
	t.Parallel()
	cache, err := toolchain.OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	compiled := 0
	for _, name := range []string{"gcc", "clang"} {
		if compiled > 0 && !irtest.All() {
			break
		}
		cc, err := toolchain.FindCompiler(t.Context(), name)
		if err != nil {
			t.Logf("no %s here", name)
			continue
		}
		compiled++
		b := &toolchain.Builder{Cache: cache, CC: cc}
		for _, isa := range templates.ISAs() {
			if len(cpu.Missing(isa.Needs)) > 0 {
				continue
			}
			objects, err := b.Objects(t.Context(), []toolchain.Unit{{
				Name: "probe.c", Source: []byte(Probe()), Flags: append([]string{"-fPIC", "-Wall", "-Wextra", "-Werror"}, isa.Flags...),
			}})
			if err != nil {
				t.Errorf("%s, %s: %v", name, isa.Name, err)
				continue
			}
			lib, err := b.Shared(t.Context(), objects, nil)
			if err != nil {
				t.Fatal(err)
			}
			f32, err := cpu.PeakOf(lib, device.MultiplyAddF32, 1, 2*time.Millisecond)
			if err != nil || f32 < 0.1 || f32 > 1e5 {
				t.Errorf("%s, %s: %v GOP/s in f32 (%v)", name, isa.Name, f32, err)
			}
			i8, err := cpu.PeakOf(lib, device.MultiplyAddI8, 1, 2*time.Millisecond)
			if err != nil || i8 < 0 || i8 > 1e6 {
				t.Errorf("%s, %s: %v GOP/s in int8 (%v)", name, isa.Name, i8, err)
			}
			t.Logf("%s, %s: %.0f GOP/s in f32, %.0f in int8", name, isa.Name, f32, i8)
		}
	}
	if compiled == 0 {
		t.Skip("neither gcc nor clang is here")
	}
}
