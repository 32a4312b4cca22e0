package weights

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/iflowc/iflowc/ir/tensor"
)

// smallPlan has every layout, indices, a quantised and a plain matrix.
func smallPlan() []Item {
	return []Item{
		{Name: "wq", Index: []int{0}, Recipe: tensor.Source("l.{i}.q"), DType: tensor.Q4B32, Rows: 40, Cols: 96, Layout: LayoutPanel16},
		{Name: "norm", Recipe: tensor.Source("norm"), DType: tensor.F32, Rows: 1, Cols: 21, Layout: LayoutRow},
		{Name: "wq", Index: []int{1}, Recipe: tensor.Source("l.{i}.q"), DType: tensor.Q8B32T2, Rows: 40, Cols: 96, Layout: LayoutPanel16},
		{Name: "emb", Recipe: tensor.Source("emb"), DType: tensor.F16, Rows: 5, Cols: 21, Layout: LayoutRow},
		{Name: "out", Recipe: op("transpose", nil, tensor.Source("emb")), DType: tensor.F32, Rows: 21, Cols: 5, Layout: LayoutPanel16},
	}
}

func smallSet(t testing.TB) *Set {
	return openSet(t, ramp("l.0.q", -9, 40, 96), ramp("l.1.q", 3, 40, 96), ramp("norm", 1, 21), ramp("emb", 0, 5, 21))
}

func packSmall(t testing.TB) (path string, s *Set) {
	t.Helper()
	s = smallSet(t)
	path = filepath.Join(t.TempDir(), "w.iflw")
	var last, total int64
	err := Pack(context.Background(), s, smallPlan(), path, PackOptions{Source: "print", Workers: 3, Progress: func(d, n int64) {
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
	p, err := OpenPacked(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	mem, err := p.Load(true)
	if err != nil {
		t.Fatal(err)
	}
	if at := uintptr(unsafe.Pointer(&mem[0])); at%hugePage != 0 {
		t.Errorf("the memory is at %#x, not at a multiple of 2 MB", at)
	}
	items := p.Items()
	if p.Source() != "print" || len(items) != 5 || items[2].Name != "wq" || items[2].Index[0] != 1 {
		t.Fatalf("source %q, items %+v", p.Source(), items)
	}
	for i, it := range smallPlan() {
		got := items[i]
		if got.Offset%itemAlign != 0 || got.DType != it.DType || got.Rows != it.Rows || got.Cols != it.Cols || got.Layout != it.Layout {
			t.Errorf("item %d: %+v", i, got)
		}
		d, err := evalItem(s, it)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, got.Bytes)
		if it.Layout == LayoutPanel16 {
			PackPanels(want, it.DType, it.Rows, it.Cols, d.Row)
		} else {
			for r := range it.Rows {
				copy(want[r*rowStride(it.DType, it.Cols):], d.Row(r))
			}
		}
		if !bytes.Equal(mem[got.Offset:got.Offset+got.Bytes], want) {
			t.Errorf("item %d differs from its recipe", i)
		}
	}
	if norm := decodeAll(t, tensor.F32, mem[items[1].Offset:][:items[1].Bytes]); len(norm) != 32 || norm[20] != 21 || norm[21] != 0 {
		t.Errorf("the norm is not padded to 32 elements: %v", norm)
	}
}

// A packed file may lie inside another file, as in a model binary.
func TestPackedInsideAnotherFile(t *testing.T) {
	t.Parallel()
	path, _ := packSmall(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	around := append(bytes.Repeat([]byte{7}, 12345), append(data, 1, 2, 3)...)
	p, err := OpenPackedAt(bytes.NewReader(around), "binary", 12345, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	mem, err := p.Load(true)
	if err != nil || !bytes.Equal(mem, data[len(data)-len(mem):]) {
		t.Error("other data", err)
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
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	wrongShape, missing := smallPlan(), smallPlan()
	wrongShape[4].Rows = 22
	missing[3].Recipe = tensor.Source("nope")
	for name, c := range map[string]struct {
		ctx  context.Context
		plan []Item
		want string
	}{
		"cancelled":   {cancelled, smallPlan(), "context canceled"},
		"wrong shape": {context.Background(), wrongShape, "the files give [21, 5], the model needs [22, 5]"},
		"missing":     {context.Background(), missing, `no tensor "nope"`},
		"twice":       {context.Background(), append(smallPlan(), smallPlan()...), "twice"},
		"empty":       {context.Background(), nil, "no weights"},
	} {
		dir := t.TempDir()
		err := Pack(c.ctx, s, c.plan, filepath.Join(dir, "w.iflw"), PackOptions{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want …%s…", name, err, c.want)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

// Cancelling in the middle of the work, from the progress report.
func TestPackCancelledMidway(t *testing.T) {
	t.Parallel()
	s := smallSet(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	err := Pack(ctx, s, smallPlan(), filepath.Join(dir, "w.iflw"), PackOptions{Progress: func(int64, int64) { cancel() }})
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
	src := writeFile(t, dir, "m.safetensors", buildSafetensors(ramp("w", 0, 256, 256)))
	s, err := Open(src)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Truncate(src, 4096); err != nil {
		t.Fatal(err)
	}
	for _, recipe := range []*tensor.Recipe{tensor.Source("w"), op("transpose", nil, tensor.Source("w"))} {
		plan := []Item{{Name: "w", Recipe: recipe, DType: tensor.Q4B32, Rows: 256, Cols: 256, Layout: LayoutPanel16}}
		err := Pack(context.Background(), s, plan, filepath.Join(dir, "w.iflw"), PackOptions{})
		if err == nil || !strings.Contains(err.Error(), "changed or vanished") {
			t.Errorf("%s: error %v", recipe, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left %v", left)
	}
}

// Every prefix and every flipped header byte of a packed file is refused or
// found out by the hash; nothing panics.
func TestDamagedPackedFiles(t *testing.T) {
	t.Parallel()
	path, _ := packSmall(t)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	load := func(data []byte) error {
		p, err := OpenPackedAt(bytes.NewReader(data), "x", 0, int64(len(data)))
		if err != nil {
			return err
		}
		defer p.Close()
		_, err = p.Load(true)
		return err
	}
	if err := load(good); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(good); n += 997 {
		if load(good[:n]) == nil {
			t.Errorf("a file cut to %d of %d bytes was loaded", n, len(good))
		}
	}
	data := bytes.Clone(good)
	data[len(data)-100] ^= 1
	if err := load(data); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a flipped byte of data: %v", err)
	}
	headEnd := packedHead + int(binary.LittleEndian.Uint64(good[8:]))
	for i := 0; i < headEnd; i++ {
		data := bytes.Clone(good)
		data[i] ^= 0x10
		if load(data) == nil && !harmless(data[packedHead:headEnd]) {
			t.Errorf("byte %d of the header was flipped and loaded", i)
		}
	}
}

// harmless says whether a flipped index byte only changed a name, an index or
// the source, which no check can see.
func harmless(text []byte) bool {
	var x packedIndex
	if json.Unmarshal(text, &x) != nil {
		return false
	}
	for i, it := range smallPlan() {
		e := x.Items[i]
		if e.DType != it.DType.String() || e.Rows != it.Rows || e.Cols != it.Cols || e.Layout != it.Layout {
			return false
		}
	}
	return true
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := writeFile(t, dir, "a", []byte("hello"))
	first, err := Fingerprint([]string{a})
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := Fingerprint([]string{a}); again != first {
		t.Error("not stable")
	}
	writeFile(t, dir, "a", []byte("hellp"))
	if other, _ := Fingerprint([]string{a}); other == first {
		t.Error("a changed file has the same fingerprint")
	}
	if _, err := Fingerprint([]string{filepath.Join(dir, "none")}); err == nil {
		t.Error("a missing file has a fingerprint")
	}
}

func FuzzPacked(f *testing.F) {
	path, _ := packSmall(f)
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:packedPage])
	f.Add([]byte(packedMagic + "\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := OpenPackedAt(bytes.NewReader(data), "x", 0, int64(len(data)))
		if err != nil {
			return
		}
		for _, it := range p.Items() {
			if it.Offset < 0 || it.Bytes < 0 || it.Offset+it.Bytes > p.Bytes() || p.Bytes() > int64(len(data)) {
				t.Fatalf("%+v of %d bytes in a file of %d", it, p.Bytes(), len(data))
			}
		}
		p.Load(true)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
