package pack

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

// uneven is a stored matrix of small numbers and a few large ones.
func uneven(name string, seed int64, rows, cols int) checkpointtest.Fixture {
	rng := rand.New(rand.NewSource(seed))
	f := checkpointtest.New(name, tensor.F32, []int{rows, cols}, make([]byte, 4*rows*cols))
	for i := range rows * cols {
		x := rng.NormFloat64()
		if rng.Intn(40) == 0 {
			x *= 9
		}
		binary.LittleEndian.PutUint32(f.Raw[4*i:], math.Float32bits(float32(x)))
	}
	return f
}

func keep(share float64, dt tensor.DType, a *tensor.Transform) *tensor.Transform {
	return &tensor.Transform{Op: "quantize_sparse", Type: dt, Nums: []float64{share}, Args: []*tensor.Transform{a}}
}

// unpackSparse lists what a kernel finds behind the panels.
func unpackSparse(src []byte, rows int) []tensor.SparseOutlier {
	var out []tensor.SparseOutlier
	entries := src[packed.SparseHead(rows):]
	for p := range (rows + packed.PanelRows - 1) / packed.PanelRows {
		for i := binary.LittleEndian.Uint32(src[4*p:]); i < binary.LittleEndian.Uint32(src[4*p+4:]); i++ {
			e := entries[packed.SparseEntry*i:]
			out = append(out, tensor.SparseOutlier{
				Row: p*packed.PanelRows + int(binary.LittleEndian.Uint16(e)), Col: int(binary.LittleEndian.Uint16(e[2:])),
				Value: math.Float32frombits(binary.LittleEndian.Uint32(e[4:]))})
		}
	}
	return out
}

// Sparse outliers follow their rows through concat, interleave and rows, into the packed
// file and out of it.
func TestSparseOutliersOfStackedMatrices(t *testing.T) {
	t.Parallel()
	s := openSource(t, uneven("a", 1, 40, 64), uneven("b", 2, 40, 64))
	a, b := keep(0.02, tensor.Q4B64, tensor.Source("a")), keep(0.05, tensor.Q4B64, tensor.Source("b"))
	for name, r := range map[string]*tensor.Transform{
		"concat": op("concat", nil, a, b), "interleave": op("interleave", nil, a, b), "rows": op("rows", []float64{7, 39}, b), "one": a,
		"rows of both": op("rows", []float64{30, 60}, op("concat", nil, a, b)), "in part": op("concat", nil, quantizeTo(tensor.Q4B64, tensor.Source("a")), b),
	} {
		d, err := Eval(s, r, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		n := tensor.SparseCount(80, 64, 0.05)
		items := []Item{{Name: "w", Transform: r, DType: tensor.Q4B64, Rows: d.Rows, Cols: 64, Layout: packed.LayoutPanel16, SparseOutliers: min(n, d.Rows*64/20)}, {Name: "n", Transform: op("rows", []float64{0, 16}, tensor.Source("a")), DType: tensor.F32, Rows: 16, Cols: 64, Layout: packed.LayoutRow}}
		path := filepath.Join(t.TempDir(), "w")
		if err := Pack(context.Background(), s, items, path, Options{}); err != nil {
			t.Fatal(name, err)
		}
		p, err := packed.Open(path)
		if err != nil {
			t.Fatal(name, err)
		}
		defer p.Close()
		mem, err := p.Load(true)
		if err != nil {
			t.Fatal(name, err)
		}
		it := p.Items()[0]
		if it.SparseOutliers != items[0].SparseOutliers || it.Bytes != (packed.PanelBytes(it.DType, it.Rows, 64)+63)/64*64+packed.SparseBytes(it.Rows, it.SparseOutliers) {
			t.Fatalf("%s: item %+v", name, it)
		}
		found := unpackSparse(mem[it.Offset+it.Bytes-packed.SparseBytes(it.Rows, it.SparseOutliers):it.Offset+it.Bytes], it.Rows)
		got := (&Dense{DType: d.DType, Rows: d.Rows, Cols: d.Cols, row: d.row}).Float32()
		for _, x := range found {
			got[x.Row*64+x.Col] += x.Value
		}
		for i, x := range d.Float32() {
			if got[i] != x {
				t.Fatalf("%s: entry %d is %v with what the file holds, %v with what the transform gives", name, i, got[i], x)
			}
		}
		if len(found) < 16 {
			t.Errorf("%s: %d entries were kept", name, len(found))
		}
	}
}

func TestSparseOutliersAreBounded(t *testing.T) {
	t.Parallel()
	s := openSource(t, uneven("a", 1, 40, 64), uneven("b", 2, 40, 64))
	a := keep(0.05, tensor.Q4B64, tensor.Source("a"))
	for want, r := range map[string]*tensor.Transform{
		"of a matrix with sparse outliers": op("transpose", nil, a),
		"only concat, interleave":          op("scale", []float64{2}, a),
		"and sparse outliers":              op("concat", nil, a, quantizeTo(tensor.Q8B64, tensor.Source("b"))),
		"cannot become f32":                quantizeTo(tensor.F32, a),
		"0.05 at most":                     keep(0.06, tensor.Q4B64, tensor.Source("a")),
		"weights cannot be":                keep(0.05, tensor.F16, tensor.Source("a")),
		"only matrices have":               keep(0.05, tensor.Q4B64, a),
		"not a matrix of whole blocks":     keep(0.05, tensor.Q4B64, op("cols", []float64{0, 32}, tensor.Source("a"))),
	} {
		if _, err := Eval(s, r, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", r, err, want)
		}
	}
	for want, outliers := range map[string]int{"no space is reserved": 0, "more than 3": 3, "4000 sparse outliers": 4000} {
		items := []Item{{Name: "w", Transform: a, DType: tensor.Q4B64, Rows: 40, Cols: 64, Layout: packed.LayoutPanel16, SparseOutliers: outliers}}
		if err := Pack(context.Background(), s, items, filepath.Join(t.TempDir(), "w"), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("packed with room for %d: error %v, want %q in it", outliers, err, want)
		}
	}
}
