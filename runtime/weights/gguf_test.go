package weights

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
)

func u32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func ggufArrayOf(kind uint32, n int, items ...[]byte) []byte {
	return slices.Concat(u32(kind), u64(uint64(n)), slices.Concat(items...))
}

func sampleMeta() []ggufPair {
	return []ggufPair{
		{"general.architecture", 8, ggufText("llama")},
		{"llama.block_count", 4, u32(30)},
		{"llama.eps", 6, u32(math.Float32bits(1e-5))},
		{"flag", 7, []byte{1}},
		{"tokenizer.ggml.tokens", 9, ggufArrayOf(8, 2, ggufText("a"), ggufText("é"))},
		{"tokenizer.ggml.scores", 9, ggufArrayOf(6, 2, u32(math.Float32bits(-1)), u32(math.Float32bits(2.5)))},
		{"tokenizer.ggml.token_type", 9, ggufArrayOf(5, 2, u32(1), u32(0xffffffff))},
		{"nested", 9, ggufArrayOf(9, 1, ggufArrayOf(0, 2, []byte{7, 8}))},
	}
}

func TestGGUF(t *testing.T) {
	t.Parallel()
	q := quantised("q", tensor.GQ4_1, 3, 64)
	s := openBytes(t, "m.gguf", buildGGUF(sampleMeta(), ramp("norm", 5, 3), q, ramp("m", 0, 2, 3)))
	want := map[string]any{
		"general.architecture": "llama", "llama.block_count": uint32(30), "llama.eps": float32(1e-5), "flag": true,
		"tokenizer.ggml.tokens": []string{"a", "é"}, "tokenizer.ggml.scores": []float32{-1, 2.5},
		"tokenizer.ggml.token_type": []int32{1, -1}, "nested": []any{[]uint8{7, 8}},
	}
	if !reflect.DeepEqual(s.Meta(), want) {
		t.Errorf("metadata %#v", s.Meta())
	}
	if i, _ := s.Lookup("m"); !slices.Equal(i.Shape, []int{2, 3}) || i.Offset%32 != 0 {
		t.Errorf("m is %+v, want rows × columns [2 3]", i)
	}
	if raw, err := s.Bytes("q"); err != nil || !bytes.Equal(raw, q.raw) {
		t.Error("stored blocks changed", err)
	}
	if got := floatsOf(t, s, "q"); !equalFloats(got, decodeAll(t, tensor.GQ4_1, q.raw)) {
		t.Error("values changed")
	}
	if s.Format() != "gguf" {
		t.Error(s.Format())
	}
}

func TestEveryGGUFType(t *testing.T) {
	t.Parallel()
	var fixtures []fixture
	for _, dt := range ggufTypes {
		fixtures = append(fixtures, fixture{dt.String(), dt, []int{2, 256}, make([]byte, 2*dt.RowBytes(256))})
	}
	s := openBytes(t, "m.gguf", buildGGUF(nil, fixtures...))
	for _, f := range fixtures {
		i, ok := s.Lookup(f.name)
		if !ok || i.DType != f.dt || i.Bytes != int64(len(f.raw)) || len(floatsOf(t, s, f.name)) != 512 {
			t.Errorf("%s: %+v", f.name, i)
		}
	}
}

func TestBadGGUF(t *testing.T) {
	t.Parallel()
	good := buildGGUF(sampleMeta(), ramp("w", 0, 2, 3))
	patch := func(at int, b []byte) []byte {
		d := bytes.Clone(good)
		copy(d[at:], b)
		return d
	}
	kv := func(kind uint32, value []byte) []byte {
		return buildGGUF([]ggufPair{{"x", kind, value}}, ramp("w", 0, 2, 3))
	}
	deep := bytes.Repeat(ggufArrayOf(9, 1), 1000)
	for want, data := range map[string][]byte{
		"version 99":                   patch(4, u32(99)),
		"big-endian":                   patch(4, []byte{0, 0, 0, 3}),
		"tensors in a file of":         patch(8, u64(1<<60)),
		"keys in a file of":            patch(16, u64(1<<60)),
		"older ggml file":              append([]byte("ggml"), good[4:]...),
		"bytes wanted at offset":       kv(8, u64(1<<62)),
		"array of 2305843009213693952": kv(9, slices.Concat(u32(6), u64(1<<61))),
		"nested deeper":                kv(9, deep),
		"value type 99":                kv(99, u64(0)),
		"array of value type 77":       kv(9, ggufArrayOf(77, 1, u64(0))),
		"occurs twice":                 buildGGUF(nil, ramp("w", 0, 2), ramp("w", 1, 2)),
		"key \"a\" occurs twice":       buildGGUF([]ggufPair{{"a", 0, []byte{1}}, {"a", 0, []byte{1}}}),
		"general.alignment is 3":       buildGGUF([]ggufPair{{"general.alignment", 4, u32(3)}}),
		"whole blocks of 32":           buildGGUF(nil, fixture{"w", tensor.GQ8_0, []int{1, 33}, make([]byte, 68)}),
		"5 dimensions":                 buildGGUF(nil, ramp("w", 0, 1, 1, 1, 1, 1)),
		"truncated":                    good[:len(good)-32],
		"larger than any file":         buildGGUF(nil, fixture{"w", tensor.F32, []int{1 << 33, 1 << 33}, make([]byte, 4)}),
	} {
		_, err := Open(writeFile(t, t.TempDir(), "m.gguf", data))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want …%s…", err, want)
		}
	}
	for n := 1; n < len(good)-24; n++ { // the last 8 bytes are padding
		if _, err := Open(writeFile(t, t.TempDir(), "m.gguf", good[:n])); err == nil {
			t.Fatalf("a file cut to %d of %d bytes was read", n, len(good))
		}
	}
}

func FuzzGGUF(f *testing.F) {
	f.Add(buildGGUF(sampleMeta(), ramp("norm", 5, 3), quantised("q", tensor.GQ4_1, 1, 64)))
	f.Add(buildGGUF([]ggufPair{{"general.alignment", 4, u32(32)}}, ramp("w", 0, 2, 3), ramp("v", 0, 9)))
	f.Add(buildGGUF(nil, fixture{"k", tensor.GQ6K, []int{1, 256}, make([]byte, 210)}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 4 || string(data[:4]) != "GGUF" {
			return
		}
		m := &mapping{path: "x", data: data}
		if c, err := readGGUF(m); err == nil {
			exercise(t, m, c)
		}
	})
}
