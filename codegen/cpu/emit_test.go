package cpu

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/templates"
)

var update = flag.Bool("update", false, "rewrite the golden C; read the difference before you commit it")

// emit reads a module of testdata and emits its step.
func emit(t *testing.T, file string, edit func(*ir.Module)) *Model {
	t.Helper()
	src, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.Parse(file, src, ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(m); err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(m)
	}
	cat, err := templates.Load()
	if err != nil {
		t.Fatal(err)
	}
	out, err := Emit(m, cat, 1024)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestStepGolden holds the emitted step of one small model to the text that
// people have read.
func TestStepGolden(t *testing.T) {
	t.Parallel()
	got := emit(t, "llama.ir", nil)
	if again := emit(t, "llama.ir", nil); again.Step != got.Step {
		t.Error("two emissions differ")
	}
	const golden = "testdata/llama.step.c"
	if *update {
		if err := os.WriteFile(golden, []byte(got.Step), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.Step, "\n")); d != "" {
		t.Errorf("the emitted step changed; if that is meant, -update (-want +got):\n%s", d)
	}
}

// TestComputedIndex: weights, states and the sums of calibration are those of the
// element that the index names.
func TestComputedIndex(t *testing.T) {
	t.Parallel()
	one, i := ir.ConstIndex(1), ir.RegionIndex(0)
	got := emit(t, "llama.ir", func(m *ir.Module) {
		for op := range m.Graphs[0].All() {
			for k, a := range op.Args {
				if a.Name == "wo" || a.Name == "kv" {
					op.Args[k].Index = []ir.Index{{Op: '-', X: &one, Y: &i}}
				}
			}
		}
	})
	for _, want := range []string{`W_WO\(1-l\)`, `page = STATE_KV\(1-l\)`, `\.state = STATE_KV\(1-l\)`, `ifl_calib_row\(.* \(1-l\) \* INT64_C\(65\), .*\);`} {
		if !regexp.MustCompile(want).MatchString(got.Step) {
			t.Errorf("no %s in the step:\n%s", want, got.Step)
		}
	}
}

// TestFiveRegions counts, in the C itself, what a layer runs between barriers.
func TestFiveRegions(t *testing.T) {
	t.Parallel()
	got := emit(t, "llama.ir", nil)
	loop := regexp.MustCompile(`(?s)for \(int l = 0; l < 2; l\+\+\) \{(.*?)\n  \}`).FindStringSubmatch(got.Step)
	if loop == nil {
		t.Fatal("no loop over layers in the C")
	}
	if n := strings.Count(loop[1], "IFL_REGION("); n == 0 || n > 5 {
		t.Errorf("%d regions a layer, expected one to five:\n%s", n, loop[1])
	}
}

// TestManifest: what the runtime relies on follows from the module.
func TestManifest(t *testing.T) {
	t.Parallel()
	m := emit(t, "llama.ir", nil).Manifest
	at := int64(0)
	for _, w := range m.Weights {
		if w.Offset != at || w.Bytes%64 != 0 || w.Bytes <= 0 {
			t.Errorf("weight %s %v at %d of %d bytes, expected at %d", w.Name, w.Index, w.Offset, w.Bytes, at)
		}
		at += w.Bytes
	}
	if n := len(m.Weights); n != 2+2*6 {
		t.Errorf("%d packed weights, expected 14", n)
	}
	if s := m.States[0]; s.Count != 2 || s.PageBytes != 64*2*(16+16)*2 {
		t.Errorf("state %+v", s)
	}
	if s := m.Matmuls[0]; s.Name != "decode.wqkv" || len(s.Impls) != 3 || s.Rows[0] != 1 || s.Rows[1] != 2 || s.Rows[2] != 128 {
		t.Errorf("matmul %+v", s)
	}
	if s := m.Matmuls[1]; s.Rows[2] != -1 {
		t.Errorf("a kernel that no annotation names is a default: %+v", s)
	}
	if o := m.Graphs[0].Outputs[0]; o.Name != "logits" || o.Rows != "out_rows" || o.Used != 96 {
		t.Errorf("output %+v", o)
	}
}

// TestRefusals: what the target cannot emit is one line that says where.
func TestRefusals(t *testing.T) {
	t.Parallel()
	cat, err := templates.Load()
	if err != nil {
		t.Fatal(err)
	}
	const par = `module m {
  weight @e : f32[16, 16] from "e"
  weight @w[1, 2] : f32[16, 16] from part_rows("w", 2)
  graph g (T tokens) {
    input %ids : i32[T]
    %x = embed %ids, @e
    %y = repeat 0..1 (%c = %x) {
      %p = par 2 {
        %a = matmul %c, @w
        %s = all_reduce %a
        yield %s
      }
      yield %p
    }
    yield %y
  }
}`
	m, err := ir.Parse("par.ir", []byte(par), ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Emit(m, cat, 64); err == nil || !strings.Contains(err.Error(), "par.ir:8:") || !strings.Contains(err.Error(), "one device") {
		t.Errorf("a tensor group gives %v", err)
	}
}
