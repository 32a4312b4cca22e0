package pack

import (
	"slices"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

// TestPartsOfDecodedRows: a part of a tensor whose rows are decoded one by one
// has the same values as the whole.
func TestPartsOfDecodedRows(t *testing.T) {
	t.Parallel()
	blocks := make([]byte, 2*2*16) // two rows of two blocks
	for i := range blocks {
		blocks[i] = byte(i*37 + 11)
	}
	src := openSource(t, checkpointtest.New("w_blocks", tensor.U8, []int{2, 1, 2, 16}, blocks), checkpointtest.New("w_scales", tensor.U8, []int{2, 1, 2}, []byte{127, 120, 130, 67}))
	d, err := Eval(src, op("part_rows", []float64{2}, tensor.Source("w")), []int{1})
	if err != nil {
		t.Fatal(err)
	}
	want, err := src.Set.Float32("w")
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Float32(); !slices.Equal(got, want[64:]) {
		t.Errorf("second part: %v, want %v", got, want[64:])
	}
}
