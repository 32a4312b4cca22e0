package templates

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
)

// TestCUDACatalog: each kernel is found by its name, and by its op and types alone; its
// promises are known limits or expressions that match instructions, and those for
// trellis-coded weights replace promises that it makes.
func TestCUDACatalog(t *testing.T) {
	t.Parallel()
	cat, err := LoadCUDA()
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := tensor.ParseDType("q4_b64")
	trellis, ok := tensor.ParseDType("q4t_b32")
	if !ok || tensor.TrellisOf(trellis) == nil || tensor.TrellisOf(plain) != nil {
		t.Fatal("q4t_b32 is trellis-coded and q4_b64 is not")
	}
	replaced := 0
	for _, k := range cat.Kernels() {
		if cat.Kernel(k.Name) != k {
			t.Errorf("another kernel is called %s", k.Name)
		}
		for _, dt := range []tensor.DType{tensor.F32, tensor.F16, plain, trellis} {
			if found := slices.Contains(cat.For(k.Op, dt), k); found != k.Takes(dt) {
				t.Errorf("%s for %v: found %v", k.Name, dt, found)
			}
		}
		if slices.Contains(cat.For("no such op", tensor.F16), k) {
			t.Errorf("%s computes any op", k.Name)
		}
		made := maps.Clone(k.Promises)
		if got := k.PromisesFor(plain); !maps.Equal(got, made) {
			t.Errorf("%s promises %v, for a plain type %v", k.Name, made, got)
		}
		got := k.PromisesFor(trellis)
		for what, n := range made {
			want := n
			if other, ok := k.Trellis[what]; ok {
				want = other
				replaced++
			}
			if got[what] != want {
				t.Errorf("%s promises %d of %s for trellis-coded weights, expected %d", k.Name, got[what], what, want)
			}
			if _, err := regexp.Compile(what); err != nil || strings.TrimSpace(what) == "" || n < 1 {
				t.Errorf("%s promises %d of %q (%v)", k.Name, n, what, err)
			}
		}
		if len(got) != len(made) || !maps.Equal(k.Promises, made) {
			t.Errorf("%s promises %v for trellis-coded weights, else %v", k.Name, got, k.Promises)
		}
	}
	if replaced == 0 {
		t.Error("no kernel has promises of its own for trellis-coded weights")
	}
}

// TestGemmPiece: what the matmuls of many rows load at once is whole blocks and whole
// multiplications of 16 columns.
func TestGemmPiece(t *testing.T) {
	t.Parallel()
	cat, err := LoadCUDA()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		bits  float64 // of a weight with its share of scales
		quads int     // runs of 16 columns that a code vector spans; 0: stored as it is multiplied
	}{"f16": {16, 0}, "q4_b64": {4.5, 2}, "q8_b32": {9, 1}} {
		want := [3]int{64, int(64 * 16 * c.bits / 8), c.quads}
		dt, _ := tensor.ParseDType(name)
		columns, bytes, err := cat.GemmPiece(dt)
		order, err2 := cat.GemmColumns(dt)
		if got := [3]int{columns, bytes, order}; got != want || err != nil || err2 != nil {
			t.Errorf("%s: columns, bytes and order %v, expected %v (%v, %v)", name, got, want, err, err2)
		}
	}
}
