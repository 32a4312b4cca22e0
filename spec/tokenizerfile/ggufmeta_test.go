package tokenizerfile

import (
	"encoding/binary"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
)

var ggufDir = flag.String("gguf", "testdata/gguf", "folder with folders that hold model.gguf and expected.json")

// metaReader reads the metadata of a GGUF file.
type metaReader struct {
	data []byte
	t    *testing.T
}

func (r *metaReader) take(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.t.Fatal("GGUF file ends early")
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

func (r *metaReader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *metaReader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *metaReader) str() string { return string(r.take(r.u64())) }

func (r *metaReader) value(kind uint32) any {
	switch kind {
	case 0:
		return r.take(1)[0]
	case 1:
		return int8(r.take(1)[0])
	case 2:
		return binary.LittleEndian.Uint16(r.take(2))
	case 3:
		return int16(binary.LittleEndian.Uint16(r.take(2)))
	case 4:
		return r.u32()
	case 5:
		return int32(r.u32())
	case 6:
		return math.Float32frombits(r.u32())
	case 7:
		return r.take(1)[0] != 0
	case 8:
		return r.str()
	case 9:
		of, n := r.u32(), r.u64()
		out := make([]any, 0, min(n, 1<<20))
		for range n {
			out = append(out, r.value(of))
		}
		return out
	case 10:
		return r.u64()
	case 11:
		return int64(r.u64())
	case 12:
		return math.Float64frombits(r.u64())
	}
	r.t.Fatalf("GGUF value type %d", kind)
	return nil
}

func readGGUFMeta(t *testing.T, path string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &metaReader{data: data, t: t}
	r.take(8)
	r.u64()
	meta := map[string]any{}
	for range r.u64() {
		key := r.str()
		meta[key] = r.value(r.u32())
	}
	return meta
}

// TestGGUFConformance compares with the tokenizer that the GGUF file came from.
func TestGGUFConformance(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(filepath.Join(*ggufDir, "*", "model.gguf"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no */model.gguf under %s", *ggufDir)
	}
	for _, path := range found {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			tok, err := FromGGUF(readGGUFMeta(t, path))
			if err != nil {
				t.Fatal(err)
			}
			checkCases(t, tok, readExpected(t, dir).Tokenizer.Cases)
		})
	}
}
