package calibration

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// TestWrite reads a file by the definition of the format: a length, a JSON header,
// numbers.
func TestWrite(t *testing.T) {
	t.Parallel()
	f := File{
		Importance: map[string][]float32{"b": {3, 4}, "a": {1, 2}},
		Hessians:   []Hessian{{Matrices: []string{"a", "b"}, Width: 128, Sums: make([]float32, 2*SquareLen(128))}},
		Scores:     make([]float32, manifest.ScoreBins),
		Meta:       map[string]string{"model": "m"},
	}
	for i := range f.Hessians[0].Sums {
		f.Hessians[0].Sums[i] = float32(i)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := f.Write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(data)
	var head map[string]struct {
		DType   string
		Shape   []int
		Offsets []int  `json:"data_offsets"`
		Model   string // of __metadata__
	}
	if err := json.Unmarshal(data[8:8+n], &head); err != nil || n%8 != 0 {
		t.Fatalf("a header of %d bytes: %v", n, err)
	}
	if len(head) != 5 || head["__metadata__"].Model != "m" || !slices.Equal(head[ScoresName].Shape, []int{1, manifest.ScoreBins}) {
		t.Errorf("header %v", head)
	}
	for name, want := range map[string][]float32{"a": f.Importance["a"], "b": f.Importance["b"], "a b" + HessianSuffix: f.Hessians[0].Sums} {
		h := head[name]
		var got []float32
		for at := h.Offsets[0]; at < h.Offsets[1]; at += 4 {
			got = append(got, math.Float32frombits(binary.LittleEndian.Uint32(data[8+int(n)+at:])))
		}
		if !slices.Equal(got, want) || h.DType != "F32" {
			t.Errorf("%s: %s %v of shape %v, expected %v", name, h.DType, got, h.Shape, want)
		}
	}
	if shape := head["a b"+HessianSuffix].Shape; !slices.Equal(shape, []int{2, 3, Tile, Tile}) {
		t.Errorf("Hessian of shape %v, expected two squares of three tiles", shape)
	}
	if err := f.Write(filepath.Join(path, "below")); err == nil {
		t.Error("a file below a file was written")
	}
}

// TestPlace: the places of the columns i ≤ j of the tiles are all of a square's numbers,
// tile by tile.
func TestPlace(t *testing.T) {
	t.Parallel()
	for _, width := range []int{Tile, 2 * Tile, 5 * Tile} {
		seen := map[int]bool{}
		for i := range width {
			for j := i / Tile * Tile; j < width; j++ {
				seen[Place(width, i, j)] = true
			}
		}
		if len(seen) != SquareLen(width) || seen[-1] || seen[SquareLen(width)] || WidthOf(SquareLen(width)/(Tile*Tile)) != width {
			t.Errorf("a square of %d columns has %d places, expected %d", width, len(seen), SquareLen(width))
		}
	}
	if w := WidthOf(2); w != 0 {
		t.Errorf("two tiles are a square of %d columns", w)
	}
}
