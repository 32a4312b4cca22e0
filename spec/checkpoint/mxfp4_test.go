package checkpoint

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"encoding/binary"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir/tensor"
)

// bytesFile writes a safetensors file of U8 tensors.
func bytesFile(t *testing.T, tensors map[string][]byte, shapes map[string][]int) string {
	t.Helper()
	header, data := map[string]any{}, []byte{}
	for name, b := range tensors {
		header[name] = map[string]any{"dtype": "U8", "shape": shapes[name], "data_offsets": []int{len(data), len(data) + len(b)}}
		data = append(data, b...)
	}
	h, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(h)))
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, append(append(out, h...), data...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMXFP4(t *testing.T) {
	t.Parallel()
	blocks := make([]byte, 2*2*16) // two rows of two blocks
	for i := range blocks {
		blocks[i] = byte(i*37 + 11)
	}
	scales := []byte{127, 120, 130, 127 - 60}
	path := bytesFile(t, map[string][]byte{"w_blocks": blocks, "w_scales": scales}, map[string][]int{"w_blocks": {2, 1, 2, 16}, "w_scales": {2, 1, 2}})
	set, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	info, ok := set.Lookup("w")
	if !ok || len(set.Tensors()) != 1 || info.DType != tensor.BF16 || !cmp.Equal(info.Shape, []int{2, 1, 64}) {
		t.Fatalf("have %v of %v, want one bf16 tensor w [2, 1, 64]", info, set.Tensors())
	}
	values := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}
	var want []float32
	for i, b := range blocks {
		by := math.Exp2(float64(scales[i/16]) - 127)
		want = append(want, float32(values[b&15]*by), float32(values[b>>4]*by))
	}
	got, err := set.Float32("w")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	row := make([]byte, 2*64)
	set.RowDecoder("w")(1, row)
	second := make([]float32, 64)
	if err := tensor.Decode(second, tensor.BF16, row); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want[64:], second); d != "" {
		t.Errorf("second row: %s", d)
	}
}

func TestMXFP4Refuses(t *testing.T) {
	t.Parallel()
	for name, shapes := range map[string]map[string][]int{
		"block size": {"w_blocks": {2, 8}, "w_scales": {2}},
		"scales":     {"w_blocks": {1, 16}, "w_scales": {2}},
	} {
		path := bytesFile(t, map[string][]byte{"w_blocks": make([]byte, 16), "w_scales": make([]byte, shapes["w_scales"][0])}, shapes)
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "expected U8 blocks of 16 bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
