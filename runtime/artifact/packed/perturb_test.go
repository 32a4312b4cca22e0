package packed

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// TestPerturb: in both layouts each weight changes by the same part of its block's root mean
// square, with both signs, and nothing else changes.
func TestPerturb(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{LayoutPanel16, LayoutRow} {
		it := Item{Name: "w", DType: dtype.F16, Rows: 19, Cols: 72, Layout: layout}
		at := func(r, c int) int { return (r*80 + c) * 2 }
		if layout == LayoutPanel16 {
			at = func(r, c int) int { return (r/16*72+c)*32 + r%16*2 }
		}
		mem := make([]byte, it.Size())
		for i := range mem {
			mem[i] = 0xa5 // padding
		}
		weight := func(r, c int) float64 { return float64((r+1)*(c%32-20)) / 64 }
		for r := range it.Rows {
			for c := range it.Cols {
				binary.LittleEndian.PutUint16(mem[at(r, c):], half(weight(r, c)))
			}
		}
		before := bytes.Clone(mem)
		if err := it.Perturb(mem, 0.125, 7); err != nil {
			t.Fatal(err)
		}
		plus := 0
		for r := range it.Rows {
			for c := range it.Cols {
				sum, n := 0.0, 0.0
				for k := c / 32 * 32; k < min(72, c/32*32+32); k++ {
					sum, n = sum+weight(r, k)*weight(r, k), n+1
				}
				diff := single(binary.LittleEndian.Uint16(mem[at(r, c):])) - weight(r, c)
				if want := 0.125 * math.Sqrt(sum/n); math.Abs(math.Abs(diff)-want) > 0.01*want {
					t.Fatalf("%s: weight [%d, %d] = %v changes by %v, expected ±%v", layout, r, c, weight(r, c), diff, want)
				}
				if diff > 0 {
					plus++
				}
				copy(mem[at(r, c):at(r, c)+2], before[at(r, c):])
			}
		}
		if n := it.Rows * it.Cols; plus < n*2/5 || plus > n*3/5 {
			t.Errorf("%s: %d of %d errors are positive", layout, plus, n)
		}
		if !bytes.Equal(mem, before) {
			t.Errorf("%s: the padding changed", layout)
		}
	}
	it := Item{Name: "w", DType: dtype.Q8B32T2, Rows: 16, Cols: 32, Layout: LayoutPanel16}
	if err := it.Perturb(make([]byte, it.Size()), 0.1, 1); err == nil {
		t.Error("a matrix of blocks was perturbed")
	}
}

func TestSingle(t *testing.T) {
	t.Parallel()
	for h := range uint16(0x7c00) {
		if x := single(h); half(x) != h || single(h|1<<15) != -x {
			t.Fatalf("%#04x decodes to %v", h, x)
		}
	}
}
