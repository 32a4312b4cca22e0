package templates

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/iflowc/iflowc/ir/tensor"
)

// computeTypes are the weight types iflowc computes with.
var computeTypes = []tensor.DType{
	tensor.F32, tensor.F16, tensor.BF16, tensor.Q8B32, tensor.Q8B64, tensor.Q8B32T2, tensor.Q6B64, tensor.Q5B64, tensor.Q5B32,
	tensor.Q4B32, tensor.Q4B64, tensor.Q3HB64, tensor.Q3B32, tensor.Q2B32, tensor.Q6TB32, tensor.Q5TB32, tensor.Q4TB32, tensor.Q3TB32, tensor.Q2TB32,
	tensor.Q6B16T2, tensor.Q4B16T2, tensor.Q2B16,
}

func TestCandidates(t *testing.T) {
	c := load1(t)
	for _, dt := range computeTypes {
		want := []string{"gemv", "flat_gemm", "gemm"}
		if dt == tensor.F32 || dt == tensor.F16 {
			want = want[:2] // nothing to convert, or next to nothing: the flat kernel serves any number of rows
		}
		var got []string
		sums := map[string]bool{}
		for _, k := range c.Candidates("matmul", dt) {
			got = append(got, k.Impl)
			sums[k.Sum] = true
			if s := k.Symbol(dt); s != "ifl_"+k.Impl+"_"+dt.String() {
				t.Errorf("%s of %s has the symbol %s", k.Name, dt, s)
			}
			if k.Doc == "" || k.Sum == "" || k.Tile < 1 || k.Tile > 16 {
				t.Errorf("%s: doc %q, sum %q, tile %d", k.Name, k.Doc, k.Sum, k.Tile)
			}
		}
		// Others may follow: a kernel is a file, and no list names them all.
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) || slices.Contains(got, "gemm") && !slices.Contains(want, "gemm") {
			t.Errorf("matmul candidates of %s are %v, want %v first", dt, got, want)
		}
		if len(sums) != 1 {
			t.Errorf("matmul candidates of %s differ in their order of summation: %v", dt, slices.Collect(maps.Keys(sums)))
		}
		if e := c.Candidates("embed", dt); len(e) != 1 {
			t.Errorf("%d embed kernels for %s, want 1", len(e), dt)
		}
	}
	if k := c.Candidates("matmul", tensor.GQ4K); len(k) > 0 {
		t.Errorf("q4_k is only a stored type, but %s takes it", k[0].Name)
	}
}

func TestAct(t *testing.T) {
	for dt, want := range map[tensor.DType]string{
		tensor.F32: "f32", tensor.BF16: "f32", tensor.Q8B32T2: "a8_b32", tensor.Q2B32: "a8_b32", tensor.Q4B64: "a8_b64", tensor.Q3HB64: "a8_b64", tensor.Q2B16: "a8_b16",
	} {
		if got := Act(dt); got != want {
			t.Errorf("Act(%s) = %s, want %s", dt, got, want)
		}
	}
}

// TestSource checks what compilers do not: that the text is the same each
// time, defines what it should, and is laid out.
func TestSource(t *testing.T) {
	a, b := load1(t), load1(t)
	for i, k := range a.Kernels() {
		for _, dt := range k.Types {
			for _, isa := range ISAs() {
				s := source(t, k, dt, isa.Name)
				if s != source(t, b.Kernels()[i], dt, isa.Name) {
					t.Errorf("%s of %s for %s: two renderings differ", k.Name, dt, isa.Name)
				}
				if !strings.Contains(s, " "+k.Symbol(dt)+"(") {
					t.Errorf("%s of %s for %s does not define %s", k.Name, dt, isa.Name, k.Symbol(dt))
				}
				for _, bad := range []string{"<no value>", "\t", " \n", "\n\n\n"} {
					if strings.Contains(s, bad) {
						t.Errorf("%s of %s for %s contains %q", k.Name, dt, isa.Name, bad)
					}
				}
			}
		}
	}
	k := a.Candidates("matmul", tensor.Q4B64)[0]
	if _, err := k.Source(tensor.F32, "avx512"); err == nil || !strings.Contains(err.Error(), "f32") {
		t.Errorf("a type it does not take: %v", err)
	}
	if _, err := k.Source(tensor.Q4B64, "mmx"); err == nil || !strings.Contains(err.Error(), "mmx") {
		t.Errorf("an instruction set it does not know: %v", err)
	}
}

func TestISAs(t *testing.T) {
	sets := ISAs()
	if sets[len(sets)-1].Name != "portable" || sets[len(sets)-1].Arch != "" || len(sets[len(sets)-1].Needs) > 0 {
		t.Errorf("the last instruction set must run anywhere, found %+v", sets[len(sets)-1])
	}
	for _, s := range sets {
		if !slices.Contains(s.Flags, "-ffp-contract=off") {
			t.Errorf("%s: without -ffp-contract=off results depend on the compiler's loops", s.Name)
		}
	}
	for _, name := range []string{"ifl_kernel.h", "ifl_step.h", "ifl_vec.h", "ifl_rows.h", "ifl_pack.h"} {
		if Headers()[name] == "" {
			t.Errorf("no header %s", name)
		}
	}
}

func TestBadTemplates(t *testing.T) {
	const ok = "doc: d\nop: matmul\nimpl: gemv\ntypes: [f32]\ntile: 1\n---\nvoid {{.Symbol}}(void);\n"
	cases := map[string]struct{ text, want string }{
		"no body":      {"doc: d\n", "no line ---"},
		"unknown key":  {strings.Replace(ok, "tile:", "tiel:", 1), "tiel"},
		"no op":        {strings.Replace(ok, "op: matmul\n", "", 1), "needs doc, op, impl and types"},
		"unknown type": {strings.Replace(ok, "f32", "f31", 1), `unknown type "f31"`},
		"bad impl":     {strings.Replace(ok, "gemv", "GEMV", 1), `impl "GEMV"`},
		"bad from":     {strings.Replace(ok, "tile:", "from: 0\ntile:", 1), "from 0 rows"},
		"from's type":  {strings.Replace(ok, "tile:", "from: {f16: 2}\ntile:", 1), `type "f16"`},
		"bad body":     {ok + "{{end}}", "unexpected {{end}}"},
	}
	for name, c := range cases {
		fsys := fstest.MapFS{"cpu/bad.c.tmpl": {Data: []byte(c.text)}, "cpu/parts/p.tmpl": {Data: []byte("{{define \"p\"}}{{end}}")}}
		if _, err := load(fsys); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "cpu/bad.c.tmpl") {
			t.Errorf("%s: error %v, want one that names the file and says %q", name, err, c.want)
		}
	}
	fsys := fstest.MapFS{"cpu/a.c.tmpl": {Data: []byte(ok)}, "cpu/b.c.tmpl": {Data: []byte(ok)}, "cpu/parts/p.tmpl": {Data: []byte("{{define \"p\"}}{{end}}")}}
	if _, err := load(fsys); err == nil || !strings.Contains(err.Error(), "both define ifl_gemv_f32") {
		t.Errorf("two templates of one symbol: %v", err)
	}
}
