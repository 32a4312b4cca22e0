package checkpoint

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/tensorfile"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

func u32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func ggufArrayOf(kind uint32, n int, items ...[]byte) []byte {
	return slices.Concat(u32(kind), u64(uint64(n)), slices.Concat(items...))
}

func sampleMeta() []checkpointtest.GGUFPair {
	return []checkpointtest.GGUFPair{
		checkpointtest.Pair("general.architecture", 8, checkpointtest.GGUFText("llama")),
		checkpointtest.Pair("llama.block_count", 4, u32(30)),
		checkpointtest.Pair("llama.eps", 6, u32(math.Float32bits(1e-5))),
		checkpointtest.Pair("flag", 7, []byte{1}),
		checkpointtest.Pair("tokenizer.ggml.tokens", 9, ggufArrayOf(8, 2, checkpointtest.GGUFText("a"), checkpointtest.GGUFText("é"))),
		checkpointtest.Pair("tokenizer.ggml.scores", 9, ggufArrayOf(6, 2, u32(math.Float32bits(-1)), u32(math.Float32bits(2.5)))),
		checkpointtest.Pair("tokenizer.ggml.token_type", 9, ggufArrayOf(5, 2, u32(1), u32(0xffffffff))),
		checkpointtest.Pair("nested", 9, ggufArrayOf(9, 1, ggufArrayOf(0, 2, []byte{7, 8}))),
	}
}

func TestGGUF(t *testing.T) {
	t.Parallel()
	q := checkpointtest.Quantized("q", tensor.GQ4_1, 3, 64)
	s := openBytes(t, "m.gguf", checkpointtest.GGUF(sampleMeta(), checkpointtest.Ramp("norm", 5, 3), q, checkpointtest.Ramp("m", 0, 2, 3)))
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
	if raw, err := s.Bytes("q"); err != nil || !bytes.Equal(raw, q.Raw) {
		t.Error("stored blocks changed", err)
	}
	if got := floatsOf(t, s, "q"); !slices.Equal(got, checkpointtest.DecodeAll(t, tensor.GQ4_1, q.Raw)) {
		t.Error("values changed")
	}
	if s.Format() != "gguf" {
		t.Error(s.Format())
	}
}

// TestGGUFScales checks that NVFP4 matrices are multiplied by the scales beside them.
func TestGGUFScales(t *testing.T) {
	t.Parallel()
	q := checkpointtest.Quantized("blk.0.ffn_up_exps.weight", tensor.GNVFP4, 4, 128)
	for i := range q.Raw { // scales of at most 2, so that f16 holds the products
		if i%36 < 4 {
			q.Raw[i] %= 64
		}
	}
	q.Shape = []int{2, 2, 128}
	scale := checkpointtest.New("blk.0.ffn_up_exps.scale", tensor.F32, []int{2}, append(u32(math.Float32bits(0.5)), u32(math.Float32bits(4))...))
	input := checkpointtest.Ramp("blk.0.ffn_up_exps.input_scale", 1, 2)
	s := openBytes(t, "m.gguf", checkpointtest.GGUF(nil, q, scale, input))
	if i, _ := s.Lookup(q.Name); i.DType != tensor.F16 || len(s.Tensors()) != 1 || len(s.Notes()) != 1 {
		t.Errorf("%+v of %d tensors, notes %q", i, len(s.Tensors()), s.Notes())
	}
	want := checkpointtest.DecodeAll(t, tensor.GNVFP4, q.Raw)
	for i := range want {
		want[i] *= []float32{0.5, 4}[i/256]
	}
	if got := floatsOf(t, s, q.Name); !slices.Equal(got, want) {
		t.Error("values differ from codes and scales")
	}
}

func TestEveryGGUFType(t *testing.T) {
	t.Parallel()
	var fixtures []checkpointtest.Fixture
	for _, dt := range tensorfile.GGUFTypes {
		fixtures = append(fixtures, checkpointtest.New(dt.String(), dt, []int{2, 256}, make([]byte, 2*dt.RowBytes(256))))
	}
	s := openBytes(t, "m.gguf", checkpointtest.GGUF(nil, fixtures...))
	for _, f := range fixtures {
		i, ok := s.Lookup(f.Name)
		if !ok || i.DType != f.DType || i.Bytes != int64(len(f.Raw)) || len(floatsOf(t, s, f.Name)) != 512 {
			t.Errorf("%s: %+v", f.Name, i)
		}
	}
}

func TestBadGGUF(t *testing.T) {
	t.Parallel()
	good := checkpointtest.GGUF(sampleMeta(), checkpointtest.Ramp("w", 0, 2, 3))
	patch := func(at int, b []byte) []byte {
		d := bytes.Clone(good)
		copy(d[at:], b)
		return d
	}
	kv := func(kind uint32, value []byte) []byte {
		return checkpointtest.GGUF([]checkpointtest.GGUFPair{checkpointtest.Pair("x", kind, value)}, checkpointtest.Ramp("w", 0, 2, 3))
	}
	deep := bytes.Repeat(ggufArrayOf(9, 1), 1000)
	for want, data := range map[string][]byte{
		"version 99":                     patch(4, u32(99)),
		"big-endian":                     patch(4, []byte{0, 0, 0, 3}),
		"tensors in a file of":           patch(8, u64(1<<60)),
		"keys in a file of":              patch(16, u64(1<<60)),
		"older ggml file":                append([]byte("ggml"), good[4:]...),
		"bytes at offset":                kv(8, u64(1<<62)),
		"array of 2305843009213693952":   kv(9, slices.Concat(u32(6), u64(1<<61))),
		"nested deeper":                  kv(9, deep),
		"value type 99":                  kv(99, u64(0)),
		"array of unknown value type 77": kv(9, ggufArrayOf(77, 1, u64(0))),
		"occurs twice":                   checkpointtest.GGUF(nil, checkpointtest.Ramp("w", 0, 2), checkpointtest.Ramp("w", 1, 2)),
		"key \"a\" occurs twice":         checkpointtest.GGUF([]checkpointtest.GGUFPair{checkpointtest.Pair("a", 0, []byte{1}), checkpointtest.Pair("a", 0, []byte{1})}),
		"general.alignment is 3":         checkpointtest.GGUF([]checkpointtest.GGUFPair{checkpointtest.Pair("general.alignment", 4, u32(3))}),
		"whole blocks of 32":             checkpointtest.GGUF(nil, checkpointtest.New("w", tensor.GQ8_0, []int{1, 33}, make([]byte, 68))),
		"5 dimensions":                   checkpointtest.GGUF(nil, checkpointtest.Ramp("w", 0, 1, 1, 1, 1, 1)),
		"truncated":                      good[:len(good)-32],
		"larger than any file":           checkpointtest.GGUF(nil, checkpointtest.New("w", tensor.F32, []int{1 << 33, 1 << 33}, make([]byte, 4))),
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
	f.Add(checkpointtest.GGUF(sampleMeta(), checkpointtest.Ramp("norm", 5, 3), checkpointtest.Quantized("q", tensor.GQ4_1, 1, 64)))
	f.Add(checkpointtest.GGUF([]checkpointtest.GGUFPair{checkpointtest.Pair("general.alignment", 4, u32(32))}, checkpointtest.Ramp("w", 0, 2, 3), checkpointtest.Ramp("v", 0, 9)))
	f.Add(checkpointtest.GGUF(nil, checkpointtest.New("k", tensor.GQ6K, []int{1, 256}, make([]byte, 210))))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 4 || string(data[:4]) != "GGUF" {
			return
		}
		fuzzReader(t, "x", data, readGGUF)
	})
}
