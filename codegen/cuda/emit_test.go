package cuda

import (
	"os"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/templates"
)

// TestUnits: each unit defines what stands in front of its product and behind
// it once, for all its kernels, and every kernel of the plan is in its unit.
func TestUnits(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../cpu/testdata/llama.ir")
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.Parse("llama.ir", text, ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	cat, err := templates.LoadCUDA()
	if err != nil {
		t.Fatal(err)
	}
	out, err := Emit(m, cat, 1024, nil)
	if err != nil {
		t.Fatal(err)
	}
	units := map[string]string{}
	for _, u := range out.Units {
		units[u.Name] = u.Source
	}
	wqkv := units["r1_wqkv"]
	for f, want := range map[string]int{
		"__forceinline__ const float *r1_wqkv_row(": 1, "__forceinline__ void r1_wqkv_tail(": 1, "#define STATE_KV(l) ": 1,
		"ifl_kv_put_f16(": 2, // of keys and of values
	} {
		if n := strings.Count(wqkv, f); n != want {
			t.Errorf("r1_wqkv has %s %d times, expected %d", f, n, want)
		}
	}
	if n := strings.Count(wqkv, "r1_wqkv_tail<COLS>(c, s, l, "); n != 5 { // gemv of 1 and 4 rows, flat of 8 and 32, finish
		t.Errorf("%d kernels of r1_wqkv do what stands behind the product", n)
	}
	for _, k := range out.Plan.Kernels {
		if !strings.Contains(units[k.Unit], " "+k.Name+"(") {
			t.Errorf("unit %s has no kernel %s", k.Unit, k.Name)
		}
	}
	if len(out.Plan.Graphs) != 1 || len(out.Plan.Slots) != 5 || len(out.Plan.Matmuls) != 5 {
		t.Errorf("%d graphs, %d buffers and %d matmuls", len(out.Plan.Graphs), len(out.Plan.Slots), len(out.Plan.Matmuls))
	}
}
