package pack

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/spec/checkpoint"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

// smallPlan has every layout, indices, a quantized and a plain matrix.
func smallPlan() []Item {
	return []Item{
		{Name: "wq", Index: []int{0}, Transform: tensor.Source("l.{i}.q"), DType: tensor.Q4B32, Rows: 40, Cols: 96, Layout: packed.LayoutPanel16},
		{Name: "norm", Transform: tensor.Source("norm"), DType: tensor.F32, Rows: 1, Cols: 21, Layout: packed.LayoutRow},
		{Name: "wq", Index: []int{1}, Transform: tensor.Source("l.{i}.q"), DType: tensor.Q8B32T2, Rows: 40, Cols: 96, Layout: packed.LayoutPanel16},
		{Name: "emb", Transform: tensor.Source("emb"), DType: tensor.F16, Rows: 5, Cols: 21, Layout: packed.LayoutRow},
		{Name: "out", Transform: op("transpose", nil, tensor.Source("emb")), DType: tensor.F32, Rows: 21, Cols: 5, Layout: packed.LayoutPanel16},
	}
}

func smallSet(t testing.TB) Source {
	return openSource(t, checkpointtest.Ramp("l.0.q", -9, 40, 96), checkpointtest.Ramp("l.1.q", 3, 40, 96), checkpointtest.Ramp("norm", 1, 21), checkpointtest.Ramp("emb", 0, 5, 21))
}

func packSmall(t testing.TB) (path string, s Source) {
	t.Helper()
	s = smallSet(t)
	path = filepath.Join(t.TempDir(), "w.iflw")
	var last, total int64
	err := Pack(context.Background(), s, smallPlan(), path, Options{Source: "print", Workers: 3, Progress: func(d, n int64) {
		if d <= last {
			t.Errorf("progress went from %d to %d", last, d)
		}
		last, total = d, n
	}})
	if err != nil {
		t.Fatal(err)
	}
	if last == 0 || last > total {
		t.Errorf("progress ended at %d of %d", last, total)
	}
	return path, s
}

func TestPackAndLoad(t *testing.T) {
	t.Parallel()
	path, s := packSmall(t)
	p, err := packed.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	mem, err := p.Load(true)
	if err != nil {
		t.Fatal(err)
	}
	items := p.Items()
	if p.Source() != "print" || len(items) != 5 || items[2].Name != "wq" || items[2].Index[0] != 1 {
		t.Fatalf("source %q, items %+v", p.Source(), items)
	}
	for i, it := range smallPlan() {
		got := items[i]
		if got.Offset%64 != 0 || got.Bytes%64 != 0 || got.DType != it.DType || got.Rows != it.Rows || got.Cols != it.Cols || got.Layout != it.Layout {
			t.Errorf("item %d: %+v", i, got)
		}
		d, err := evalItem(s, it)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, got.Bytes)
		if it.Layout == packed.LayoutPanel16 {
			PackPanels(want[:packed.PanelBytes(it.DType, it.Rows, it.Cols)], it.DType, it.Rows, it.Cols, d.Row)
		} else {
			for r := range it.Rows {
				copy(want[r*packed.RowStride(it.DType, it.Cols):], d.Row(r))
			}
		}
		if !bytes.Equal(mem[got.Offset:got.Offset+got.Bytes], want) {
			t.Errorf("item %d differs from its transform", i)
		}
	}
	if norm := checkpointtest.DecodeAll(t, tensor.F32, mem[items[1].Offset:][:items[1].Bytes]); len(norm) != 32 || norm[20] != 21 || norm[21] != 0 {
		t.Errorf("the norm is not padded to 32 elements: %v", norm)
	}
}

func TestPackIsReproducible(t *testing.T) {
	t.Parallel()
	a, _ := packSmall(t)
	b, _ := packSmall(t)
	x, _ := os.ReadFile(a)
	y, _ := os.ReadFile(b)
	if !bytes.Equal(x, y) {
		t.Error("two packings differ")
	}
}

func TestPackLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := smallSet(t)
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	wrongShape, missing := smallPlan(), smallPlan()
	wrongShape[4].Rows = 22
	missing[3].Transform = tensor.Source("nope")
	for name, c := range map[string]struct {
		ctx  context.Context
		plan []Item
		want string
	}{
		"canceled":    {canceled, smallPlan(), "context canceled"},
		"wrong shape": {context.Background(), wrongShape, "the files give [21, 5], the model needs [22, 5]"},
		"missing":     {context.Background(), missing, `no tensor "nope"`},
		"twice":       {context.Background(), append(smallPlan(), smallPlan()...), "twice"},
		"empty":       {context.Background(), nil, "no weights"},
	} {
		dir := t.TempDir()
		err := Pack(c.ctx, s, c.plan, filepath.Join(dir, "w.iflw"), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want …%s…", name, err, c.want)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

// Cancelling in the middle of the work, from the progress report.
func TestPackCanceledMidway(t *testing.T) {
	t.Parallel()
	s := smallSet(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	err := Pack(ctx, s, smallPlan(), filepath.Join(dir, "w.iflw"), Options{Progress: func(int64, int64) { cancel() }})
	if err == nil {
		t.Error("packing went on")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// A file cut short while it is packed gives an error, not a crash.
func TestPackOfShrinkingFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	src := filepath.Join(dir, "m.safetensors")
	if err := os.WriteFile(src, checkpointtest.Safetensors(checkpointtest.Ramp("w", 0, 256, 256)), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := checkpoint.Open(src)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Truncate(src, 4096); err != nil {
		t.Fatal(err)
	}
	for _, transform := range []*tensor.Transform{tensor.Source("w"), op("transpose", nil, tensor.Source("w"))} {
		plan := []Item{{Name: "w", Transform: transform, DType: tensor.Q4B32, Rows: 256, Cols: 256, Layout: packed.LayoutPanel16}}
		err := Pack(context.Background(), Source{Set: s}, plan, filepath.Join(dir, "w.iflw"), Options{})
		if err == nil || !strings.Contains(err.Error(), "changed or vanished") {
			t.Errorf("%s: error %v", transform, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left %v", left)
	}
}
