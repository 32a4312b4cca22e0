package packed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// smallItems have every layout, indices, a block type, a plain one, and sparse
// outliers.
func smallItems() []Item {
	return []Item{
		{Name: "wq", Index: []int{0}, DType: dtype.Q4B32, Rows: 40, Cols: 96, Layout: LayoutPanel16, SparseOutliers: 20},
		{Name: "norm", DType: dtype.F32, Rows: 1, Cols: 21, Layout: LayoutRow},
		{Name: "wq", Index: []int{1}, DType: dtype.Q8B32T2, Rows: 40, Cols: 96, Layout: LayoutPanel16},
		{Name: "emb", DType: dtype.F16, Rows: 5, Cols: 21, Layout: LayoutRow},
	}
}

// build returns a packed file of numbered bytes with no sparse outliers in their room.
func build(t testing.TB) []byte {
	t.Helper()
	items := smallItems()
	size, err := Place(items)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * 7)
	}
	for _, it := range items {
		clear(data[it.Offset+it.Bytes-SparseBytes(it.Rows, it.SparseOutliers) : it.Offset+it.Bytes])
	}
	sum := sha256.Sum256(data)
	head, err := Header("print", hex.EncodeToString(sum[:]), size, items)
	if err != nil {
		t.Fatal(err)
	}
	return append(head, data...)
}

// load opens and loads a file in memory.
func load(data []byte) error {
	p, err := OpenAt(bytes.NewReader(data), "x", 0, int64(len(data)))
	if err != nil {
		return err
	}
	defer p.Close()
	_, err = p.Load(true)
	return err
}

func TestOpen(t *testing.T) {
	t.Parallel()
	path, file := filepath.Join(t.TempDir(), "w"), build(t)
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Open(path)
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
	if !bytes.Equal(mem, file[len(file)-len(mem):]) || p.Bytes() != int64(len(mem)) || p.Source() != "print" {
		t.Errorf("%d bytes from source %q differ from the file's", len(mem), p.Source())
	}
	at := int64(0)
	for i, want := range smallItems() {
		got := p.Items()[i]
		if got.Offset != at || got.Name != want.Name || !slices.Equal(got.Index, want.Index) || got.DType != want.DType || got.SparseOutliers != want.SparseOutliers {
			t.Errorf("item %d: %+v at %d, expected %+v", i, got, at, want)
		}
		at = alignUp(at+got.Bytes, 64)
	}
}

// A packed file may lie inside another file, as in a model binary.
func TestInsideAnotherFile(t *testing.T) {
	t.Parallel()
	data := build(t)
	around := append(bytes.Repeat([]byte{7}, 12345), append(data, 1, 2, 3)...)
	p, err := OpenAt(bytes.NewReader(around), "binary", 12345, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	mem, err := p.Load(true)
	if err != nil || !bytes.Equal(mem, data[len(data)-len(mem):]) {
		t.Error("other data", err)
	}
}

// A file of another format version is refused by its number and with what to do.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	for _, v := range []uint32{0, version + 1, 1 << 31} {
		data := build(t)
		binary.LittleEndian.PutUint32(data[4:], v)
		err := load(data)
		if err == nil {
			t.Errorf("version %d was read", v)
			continue
		}
		for _, want := range []string{"x: packed weights: format version ", fmt.Sprintf("expected %d", version), "compile again"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("version %d: error %q, expected %q in it", v, err, want)
			}
		}
	}
}

// Every prefix and every flipped header byte of a packed file is rejected, or detected
// by the hash; nothing panics.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	good := build(t)
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
	start := alignUp(headBytes+int64(binary.LittleEndian.Uint64(good[8:])), page)
	for i := range start { // of the header, the index and the padding
		data := bytes.Clone(good)
		data[i] ^= 0x10
		if p, err := OpenAt(bytes.NewReader(data), "x", 0, int64(len(data))); err == nil {
			p.Close()
			t.Errorf("byte %d of the header was flipped and opened", i)
		}
	}
}

// TestVerify checks that any flipped byte of the data is detected.
func TestVerify(t *testing.T) {
	t.Parallel()
	good := build(t)
	for _, at := range []int{0, 1, 1000, page + page} {
		data := bytes.Clone(good)
		if at > 0 {
			data[len(data)-at] ^= 1
		}
		p, err := OpenAt(bytes.NewReader(data), "x", 0, int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		done := int64(0)
		err = p.Verify(t.Context(), func(n int64) { done = n })
		var damaged *DamagedError
		if errors.As(err, &damaged) != (at > 0) || (err == nil) != (at == 0) || done != p.Bytes() {
			t.Errorf("byte %d from the end: %v after %d of %d bytes", at, err, done, p.Bytes())
		}
		p.Close()
	}
}

func TestItemsAreBounded(t *testing.T) {
	t.Parallel()
	for want, it := range map[string]Item{
		"shape [0, 4]":               {DType: dtype.F32, Rows: 0, Cols: 4, Layout: LayoutRow},
		`unknown layout "col"`:       {DType: dtype.F32, Rows: 1, Cols: 4, Layout: "col"},
		"does not support i64":       {DType: dtype.I64, Rows: 1, Cols: 4, Layout: LayoutPanel16},
		"4000 sparse outliers":       {DType: dtype.Q4B64, Rows: 40, Cols: 64, Layout: LayoutPanel16, SparseOutliers: 4000},
		"1 sparse outliers of":       {DType: dtype.Q4B64, Rows: 40, Cols: 64, Layout: LayoutRow, SparseOutliers: 1},
		"-1 sparse outliers of [40,": {DType: dtype.Q4B64, Rows: 40, Cols: 64, Layout: LayoutPanel16, SparseOutliers: -1},
	} {
		if _, err := Place([]Item{it}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q in it", it, err, want)
		}
	}
}

// Kernels use the rows and columns of sparse outliers without checks, so invalid ones
// are rejected even if the hash is not verified.
func TestDamagedSparseOutliers(t *testing.T) {
	t.Parallel()
	const rows, cols, n = 40, 64, 20
	good := make([]byte, SparseBytes(rows, n))
	for p, at := range []uint32{0, 8, 16, 20} {
		binary.LittleEndian.PutUint32(good[4*p:], at)
	}
	for i := range n {
		e := good[int(SparseHead(rows))+i*SparseEntry:]
		binary.LittleEndian.PutUint16(e, uint16(i%8*2+1))
		binary.LittleEndian.PutUint16(e[2:], cols-1)
	}
	if err := checkSparse(good, rows, cols, n); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int]string{2: "panel 0", 5: "panel 1", int(SparseHead(rows)): "row 255", int(SparseHead(rows)) + 3: "column 65343"} {
		bad := bytes.Clone(good)
		bad[at] = 0xff
		if err := checkSparse(bad, rows, cols, n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("byte %d damaged: error %v, want %q in it", at, err, want)
		}
	}
}

func TestTileBytes(t *testing.T) {
	t.Parallel()
	want := map[dtype.Type]int{
		dtype.F32: 64, dtype.F16: 32, dtype.BF16: 32, dtype.Q8B32: 8*64 + 64, dtype.Q8B64: 16*64 + 64, dtype.Q8B32T2: 8*64 + 32,
		dtype.Q6B64: 12*64 + 64, dtype.Q5B64: 10*64 + 64, dtype.Q5B32: 5*64 + 64, dtype.Q4B32: 4*64 + 64, dtype.Q4B64: 8*64 + 64,
		dtype.Q3HB64: 7*64 + 64, dtype.Q3B32: 3*64 + 64, dtype.Q2B32: 2*64 + 64,
		dtype.Q6B16T2: 3*64 + 32, dtype.Q4B16T2: 2*64 + 32, dtype.Q2B16: 64 + 64,
		dtype.Q6TB32: 6*64 + 32, dtype.Q5TB32: 5*64 + 32, dtype.Q4TB32: 4*64 + 16, dtype.Q3TB32: 3*64 + 16, dtype.Q2TB32: 2*64 + 16,
	}
	for dt := range dtype.Count {
		n, held := want[dt]
		if dt.IsWeight() != held {
			t.Errorf("%s: IsWeight says %v", dt, !held)
		}
		if got := TileBytes(dt); held && got != n {
			t.Errorf("%s: %d bytes a tile, want %d", dt, got, n)
		}
	}
}

// FuzzPacked opens any file, and files of any index whose checksum is right.
func FuzzPacked(f *testing.F) {
	data := build(f)
	size := binary.LittleEndian.Uint64(data[8:])
	f.Add(data, []byte{})
	f.Add(data[:page], []byte{})
	f.Add([]byte(magic+"\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00{}"), []byte{})
	f.Add(data[page:], data[headBytes:][:size])
	f.Add([]byte{}, []byte(`{"source":"a/b","sha256":"`+strings.Repeat("0", 64)+`","bytes":0,"items":[{"name":"a","dtype":"f32","rows":1,"cols":4611686018427387904,"layout":"row"}]}`))
	f.Fuzz(func(t *testing.T, data, index []byte) {
		if len(index) > 0 {
			sum := sha256.Sum256(index)
			head := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32([]byte(magic), version), uint64(len(index)))
			head = slices.Concat(head, sum[:], index)
			data = slices.Concat(head, make([]byte, -len(head)&(page-1)), data)
		}
		path := hostiletest.File(t, "x.weights", data)
		_ = hostiletest.Read(t, len(data), func() error { return useWeights(t, path, int64(len(data))) })
	})
}

// useWeights opens and loads a file of size bytes.
func useWeights(t *testing.T, path string, size int64) error {
	p, err := Open(path)
	if err != nil {
		return err
	}
	for _, it := range p.Items() {
		if it.Offset < 0 || it.Bytes < 0 || it.Offset+it.Bytes > p.Bytes() || p.Bytes() > size {
			t.Fatalf("%+v of %d bytes in a file of %d", it, p.Bytes(), size)
		}
	}
	_, err = p.Load(true)
	return errors.Join(err, p.Close())
}
