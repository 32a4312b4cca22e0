package packed

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// randomItems are a matrix of every type in every layout, with rows and columns that do
// not fill panels and blocks, sparse outliers, and vectors.
func randomItems() (items []Item) {
	for dt := dtype.F32; dt < dtype.Count; dt++ {
		if !dt.IsWeight() {
			continue
		}
		for _, layout := range []string{LayoutPanel16, LayoutRow} {
			items = append(items, Item{Name: "w_" + dt.String(), Index: []int{0}, DType: dt, Rows: 37, Cols: 200, Layout: layout})
		}
	}
	return append(items,
		Item{Name: "norm", DType: dtype.F32, Rows: 1, Cols: 100, Layout: LayoutRow},
		Item{Name: "norm_bias", DType: dtype.BF16, Rows: 1, Cols: 100, Layout: LayoutRow},
		Item{Name: "sparse", DType: dtype.Q4B64, Rows: 64, Cols: 128, Layout: LayoutPanel16, SparseOutliers: 10},
		Item{Name: "large", DType: dtype.Q8B32T2, Rows: 3001, Cols: 4096, Layout: LayoutRow})
}

func TestRandomFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weights")
	if err := WriteRandom(path, 7, randomItems()); err != nil {
		t.Fatal(err)
	}
	p, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if seed, ok := p.Random(); !ok || seed != 7 {
		t.Errorf("the file's seed is %d, %v", seed, ok)
	}
	if _, err := p.Load(true); err != nil {
		t.Errorf("a file of random weights does not match its hash: %v", err)
	}
	// The bytes are part of the format: results of two machines are comparable only if they agree.
	const want = "4629d52b57fa8b5d48adcc5bcdd47148d863790453338c86f3fbee805d43c73b"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want {
		t.Errorf("sha256 of the file is %x, expected %s", sum, want)
	}
	if err := WriteRandom(path, 0, []Item{{Name: "ids", DType: dtype.I32, Rows: 1, Cols: 16, Layout: LayoutRow}}); err == nil {
		t.Error("random weights of an integer type were written")
	}
}

// TestRandomTail checks what is not a value: sparse outliers are none, and other seeds
// and names give other bytes.
func TestRandomTail(t *testing.T) {
	t.Parallel()
	it := Item{Name: "sparse", DType: dtype.Q4B64, Rows: 64, Cols: 128, Layout: LayoutPanel16, SparseOutliers: 10}
	if _, err := Place([]Item{it}); err != nil {
		t.Fatal(err)
	}
	it.Bytes = it.Size()
	fill := func(it Item, seed uint64) []byte {
		b := make([]byte, it.Bytes)
		(&piece{&it, it.key(seed), 0, it.Bytes}).fill(b)
		return b
	}
	b := fill(it, 1)
	if err := checkSparse(b[it.Bytes-SparseBytes(it.Rows, it.SparseOutliers):], it.Rows, it.Cols, it.SparseOutliers); err != nil {
		t.Error(err)
	}
	other := it
	other.Index = []int{1}
	if string(b) == string(fill(it, 2)) || string(b) == string(fill(other, 1)) || string(b) != string(fill(it, 1)) {
		t.Error("the bytes do not follow from seed, name and index")
	}
}

func TestHalf(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]uint16{
		1: 0x3c00, -2: 0xc000, 0.5: 0x3800, 1.0 / 3: 0x3555, 65504: 0x7bff, 0x1p-14: 0x0400, 0x1p-24: 1, 2 - 0x1p-12: 0x4000, 0: 0,
	} {
		if got := half(x); got != want {
			t.Errorf("half(%v) = %#04x, expected %#04x", x, got, want)
		}
	}
}

// TestRandomPairs unpacks the pairs of q3h_b64: every digit is below 11.
func TestRandomPairs(t *testing.T) {
	t.Parallel()
	b := make([]byte, 7*64)
	noise(b, 1, 0)
	pairsBelow121(b)
	for i := range 64 {
		eighth := byte(0)
		for j := range 7 {
			eighth |= b[64*j+i] >> 7 << j
			if v := b[64*j+i] & 0x7f; v > 120 {
				t.Fatalf("vector %d, byte %d: the pair %d", j, i, v)
			}
		}
		if eighth > 120 {
			t.Fatalf("byte %d: the eighth pair is %d", i, eighth)
		}
	}
}
