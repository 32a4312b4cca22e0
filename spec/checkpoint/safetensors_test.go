package checkpoint

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

func rawSafetensors(header string, data []byte) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), data...)
}

func TestSafetensors(t *testing.T) {
	t.Parallel()
	half := checkpointtest.New("half", tensor.F16, []int{2, 1}, []byte{0, 0x3c, 0, 0xc0})
	empty := checkpointtest.New("empty", tensor.F32, []int{0, 3}, nil)
	scalar := checkpointtest.New("scalar", tensor.I64, []int{}, []byte{7, 0, 0, 0, 0, 0, 0, 0})
	s := openSet(t, checkpointtest.Ramp("b.weight", 3, 2, 2), half, empty, scalar)
	if s.Format() != "safetensors" || s.Meta()["format"] != "pt" || len(s.Files()) != 1 {
		t.Errorf("format %s, metadata %v, files %v", s.Format(), s.Meta(), s.Files())
	}
	names := ""
	for _, i := range s.Tensors() {
		names += i.Name + " "
	}
	if names != "b.weight empty half scalar " {
		t.Errorf("tensors are not sorted by name: %s", names)
	}
	for name, want := range map[string][]float32{"b.weight": {3, 4, 5, 6}, "half": {1, -2}, "empty": {}, "scalar": {7}} {
		if got := floatsOf(t, s, name); !slices.Equal(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	info, ok := s.Lookup("half")
	raw, err := s.Bytes("half")
	if !ok || err != nil || info.DType != tensor.F16 || info.Bytes != 4 || !bytes.Equal(raw, half.Raw) {
		t.Errorf("%+v %v % x", info, err, raw)
	}
	if _, err := s.Bytes("b.weigth"); err == nil || !strings.Contains(err.Error(), `did you mean "b.weight"?`) {
		t.Errorf("missing tensor: %v", err)
	}
}

func TestBadSafetensors(t *testing.T) {
	t.Parallel()
	one := func(entry string) string { return `{"w":` + entry + `}` }
	data := make([]byte, 24)
	for header, want := range map[string]string{
		one(`{"dtype":"F32","shape":[2,4],"data_offsets":[0,24]}`):                     "needs 32 bytes",
		one(`{"dtype":"F32","shape":[4294967296,4294967296,6],"data_offsets":[0,24]}`): "larger than any file",
		one(`{"dtype":"F32","shape":[-2,-3],"data_offsets":[0,24]}`):                   "have a number -2",
		one(`{"dtype":"F33","shape":[6],"data_offsets":[0,24]}`):                       `dtype "F33" is not supported`,
		one(`{"dtype":"F32","shape":[6],"data_offsets":[24,0]}`):                       "are reversed",
		one(`{"dtype":"F32","shape":[12],"data_offsets":[0,48]}`):                      "truncated",
		one(`{"dtype":"F32","shape":[3],"data_offsets":[0,12]}`):                       "12 bytes after the last tensor",
		one(`{"dtype":"F32","shape":[3],"data_offsets":[12,24]}`):                      "belong to no tensor",
		one(`{"dtype":"F32","shape":[6]}`):                                             "two data_offsets",
		one(`{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,6],"data_offsets":[0,24]}`):       "9 dimensions",
		one(`5`):                        "have a number",
		one(strings.Repeat("[", 20000)): "max depth",
		`{"w":{"dtype":"F32","shape":[6],"data_offsets":[0,24]},"w":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`:  "occurs twice",
		`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}}`: "shares bytes",
		"{\"\xff\":{}}": "not UTF-8",
		"[1]":           "expected a JSON object",
		"{} x":          "after the JSON object",
	} {
		path := writeFile(t, t.TempDir(), "m.safetensors", rawSafetensors(header, data))
		_, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%.80s: error %v, want …%s…", header, err, want)
		}
	}
	for _, n := range []uint64{1 << 63, 1<<64 - 1, 200_000_000, 10_000} {
		bad := binary.LittleEndian.AppendUint64(nil, n)
		if _, err := Open(writeFile(t, t.TempDir(), "m.safetensors", append(bad, "{}"...))); err == nil {
			t.Errorf("a header of %d bytes was read", n)
		}
	}
}

// exercise reads everything that a reader accepted, as a caller would.
func exercise(t testing.TB, m *mapping, c *contents) {
	s := &Set{index: map[string]int{}, meta: map[string]any{}, maps: nil}
	if err := s.add(m, c); err != nil {
		t.Fatalf("a reader let a name occur twice: %v", err)
	}
	s.sort()
	total := int64(0)
	for _, i := range s.Tensors() {
		raw, err := s.Bytes(i.Name)
		if err != nil || int64(len(raw)) != i.Bytes {
			t.Fatalf("%s: %d bytes of %d: %v", i.Name, len(raw), i.Bytes, err)
		}
		if total += max(i.Bytes, 4*int64(i.Elements())); total > 1<<22 {
			return
		}
		if _, err := s.Float32(i.Name); err != nil {
			t.Fatalf("%s: %v", i.Name, err)
		}
	}
}

// fuzzReader reads a file and what it holds, within the bounds of a reader.
func fuzzReader(t *testing.T, name string, data []byte, read func(m *mapping) (*contents, error)) {
	m := &mapping{path: name, data: data}
	_ = hostiletest.Read(t, len(data), func() error {
		c, err := read(m)
		if err == nil {
			exercise(t, m, c)
		}
		return err
	})
}

func FuzzSafetensors(f *testing.F) {
	f.Add(checkpointtest.Safetensors(checkpointtest.Ramp("a", 0, 2, 3), checkpointtest.New("h", tensor.BF16, []int{2}, []byte{1, 2, 3, 4})))
	f.Add(rawSafetensors(`{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}  `, make([]byte, 24)))
	f.Add(rawSafetensors(`{"__metadata__":{"a":"b"}}`, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzReader(t, "x", data, readSafetensors)
	})
}
