//go:build unix

package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// TestNoDriver checks that a missing driver is reported in one line.
func TestNoDriver(t *testing.T) {
	_, err := OpenDriver(t.TempDir() + "/libcuda.so.1")
	if err == nil || !strings.HasPrefix(err.Error(), "no CUDA driver: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

// TestLayouts checks that the structs have the sizes of their C counterparts, with
// 8-byte pointers and no padding.
func TestLayouts(t *testing.T) {
	if n := unsafe.Sizeof(stepHeader{}); n != 6*4+12*8+device.MaxOut*8+9*8 {
		t.Errorf("a step is %d bytes", n)
	}
	if n := unsafe.Sizeof(contextHeader{}); n != 20*8+4*4+(device.MaxAdapters+maxSlots)*8 {
		t.Errorf("a context is %d bytes", n)
	}
}

func TestBucket(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 33: 64, 64: 64} {
		if got := bucket(n); got != want {
			t.Errorf("bucket(%d) = %d, want %d", n, got, want)
		}
	}
}

// TestSizes checks that the partial results of split attention fit for every number of
// tokens.
func TestSizes(t *testing.T) {
	d := &Device{GPU: &GPU{Processors: 132}, Manifest: &manifest.Manifest{}, Plan: &manifest.CUDA{
		Attention: []manifest.CUDAAttention{{Counters: 8, Blocks: 8, Floats: 520}},
		Slots:     []manifest.CUDASlot{{Cols: 64, Rows: "tokens"}, {Cols: 32, Rows: "out_rows"}},
	}}
	s := d.sizes(&device.Config{MaxTokens: 512, MaxOutRows: 4, MaxSeqs: 4})
	if s.slots[0] != 64*512*4 || s.slots[1] != 32*4*4 {
		t.Errorf("slots of %v bytes", s.slots)
	}
	for tokens := 1; tokens <= 512; tokens++ {
		n := d.splits(8*tokens, 0)
		if n == 1 {
			continue // one split: no partial results
		}
		if need := int64(tokens * 8 * n * 520 * 4); need > s.attention {
			t.Fatalf("%d tokens in %d splits take %d bytes, there are %d", tokens, n, need, s.attention)
		}
	}
}

// TestSplitsOfProfile checks that a profile lowers the number of splits at contexts
// near the measured ones, and never raises it.
func TestSplitsOfProfile(t *testing.T) {
	p := &dispatch.Profile{Splits: []dispatch.Splits{{Context: 64, Parts: 1}, {Context: 256, Parts: 6}, {Context: 1024, Parts: 64}}}
	d := &Device{GPU: &GPU{Processors: 132}, Profile: p}
	for _, c := range []struct{ past, blocks, want int }{{0, 8, 1}, {126, 8, 1}, {127, 8, 6}, {511, 8, 33}, {511, 100, 2}, {9000, 1, 64}, {9000, 300, 1}} {
		at := d.contextOf(&device.Step{Seqs: 2, First: []int32{0, 1, 2}, Past: []int32{int32(c.past), 3}})
		if got := d.splits(c.blocks, at); got != c.want {
			t.Errorf("%d rows of before, %d blocks: %d parts, expected %d", c.past, c.blocks, got, c.want)
		}
	}
	d.Profile = nil
	if at := d.contextOf(&device.Step{Seqs: 1, First: []int32{0, 1}, Past: []int32{700}}); at != 0 || d.splits(8, at) != 33 {
		t.Errorf("without a profile: context %d, %d parts", at, d.splits(8, at))
	}
}

// TestGraphPieces checks that launches between two communications form one piece, each
// with its layer, and that a rank of a tensor-parallel group, which communicates in
// every layer, has no graphs, or a single one if graphs can contain communication.
func TestGraphPieces(t *testing.T) {
	talk := manifest.CUDALaunch{Comm: &manifest.CUDAComm{}}
	layers := manifest.CUDALaunch{Body: []manifest.CUDALaunch{{Kernel: 1}, {Kernel: 2}}, Lo: 4, Hi: 6}
	var got []string
	for _, p := range piecesOf([]manifest.CUDALaunch{talk, {Kernel: 7}, layers, {Kernel: 8}, talk, talk}, false) {
		text := ""
		for _, l := range p.list {
			text += fmt.Sprintf(" %d/%d", l.Kernel, l.layer)
		}
		if p.comm != nil {
			text += " talk"
		}
		got = append(got, text)
	}
	if want := []string{" talk", " 7/0 1/4 2/4 1/5 2/5 8/0", " talk", " talk"}; !slices.Equal(got, want) {
		t.Errorf("pieces%q, expected%q", got, want)
	}
	layers.Body, layers.Hi = append(layers.Body, talk), 4+maxGraphs+1
	if p := piecesOf([]manifest.CUDALaunch{layers}, false); p != nil {
		t.Errorf("%d pieces of a rank of a group", len(p))
	}
	if p := piecesOf([]manifest.CUDALaunch{layers}, true); len(p) != 1 || len(p[0].list) != 3*(maxGraphs+1) {
		t.Errorf("%d pieces of a rank of a group whose link can be captured", len(p))
	}
}

// TestGrid checks that rows are rounded up to whole blocks and that a shape without
// rows launches nothing.
func TestGrid(t *testing.T) {
	m := &model{Device: &Device{GPU: &GPU{Processors: 4}, Plan: &manifest.CUDA{}}}
	l := &manifest.CUDALaunch{Grid: [3]manifest.CUDADim{{N: 7}, {N: 1, Rows: "tokens", Per: 4}, {N: 2, Splits: true}}}
	if g := m.grid(l, shape{tokens: 5}); g != [3]int{7, 2, 4} {
		t.Errorf("grid %v", g)
	}
	ragged := manifest.CUDADim{N: 1, Rows: "tokens", Times: 4, Per: 16, Ragged: true}
	splits := ragged
	splits.N, splits.Splits = 2, true
	l = &manifest.CUDALaunch{Rows: "tokens", From: 3, Each: true, Grid: [3]manifest.CUDADim{{N: 2}, ragged, splits}}
	if g := m.grid(l, shape{tokens: 5, seqs: 2}); g != [3]int{2, 3, 1} {
		t.Errorf("grid %v: 20 query rows of two sequences fill at most three tiles", g)
	}
	if g := m.grid(l, shape{tokens: 3, seqs: 1}); g != [3]int{2, 1, 4} {
		t.Errorf("grid %v", g)
	}
	if (shape{tokens: 4, seqs: 2}).runs(l) || !(shape{tokens: 5, seqs: 2}).runs(l) {
		t.Error("a launch for an average of three or more tokens per sequence ran")
	}
	if g := m.grid(l, shape{}); g[1] != 0 {
		t.Errorf("grid of no rows: %v", g)
	}
}
