package tune_test

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device/tune"
)

func TestMatmulShapes(t *testing.T) {
	t.Parallel()
	matmul := manifest.Matmul{Name: "decode.wo", N: 48, K: 100, DType: "q4_b64", Act: "a8_b64",
		Impls: []string{"gemv", "gemm"}, Symbols: []string{"a", "b"}, Tiles: []int{1, 16}}
	again := matmul
	again.Name = "decode.wq"
	shapes, err := tune.MatmulShapes([]manifest.Matmul{matmul, again})
	if err != nil || len(shapes) != 1 {
		t.Fatalf("%d shapes, %v, expected one", len(shapes), err)
	}
	s := shapes[0]
	if s.PanelBytes != 2*16*36 || s.Act != 2 || s.Candidates[1] != (tune.Candidate{Impl: "gemm", Symbol: "b", Tile: 16}) {
		t.Errorf("%+v", s)
	}
	m := dispatch.Machine{Caches: []dispatch.Cache{{Level: 2, Bytes: 1 << 20}}}
	if got, err := tune.Slab(shapes, m); got != 4<<20 || err != nil {
		t.Errorf("a slab of %d bytes, %v", got, err)
	}
	matmul.Symbols = nil
	if _, err := tune.MatmulShapes([]manifest.Matmul{matmul}); err == nil || !strings.Contains(err.Error(), "decode.wo") {
		t.Errorf("error %v", err)
	}
}
