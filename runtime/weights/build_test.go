package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
)

// A fixture is a tensor to be stored in a file that a test builds.
type fixture struct {
	name  string
	dt    tensor.DType
	shape []int
	raw   []byte
}

// ramp is an f32 fixture with values from, from+1, ….
func ramp(name string, from float32, shape ...int) fixture {
	n := 1
	for _, d := range shape {
		n *= d
	}
	f := fixture{name, tensor.F32, shape, make([]byte, 4*n)}
	for i := range n {
		binary.LittleEndian.PutUint32(f.raw[4*i:], math.Float32bits(from+float32(i)))
	}
	return f
}

func buildSafetensors(fixtures ...fixture) []byte {
	head, at := map[string]any{"__metadata__": map[string]string{"format": "pt"}}, 0
	var data []byte
	for _, f := range fixtures {
		kind := ""
		for k, dt := range safetensorsTypes {
			if dt == f.dt {
				kind = k
			}
		}
		head[f.name] = map[string]any{"dtype": kind, "shape": f.shape, "data_offsets": []int{at, at + len(f.raw)}}
		at += len(f.raw)
		data = append(data, f.raw...)
	}
	text, _ := json.Marshal(head)
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return append(append(out, text...), data...)
}

// A pairs list is GGUF metadata: key, type number, encoded value.
type ggufPair struct {
	key   string
	kind  uint32
	value []byte
}

func ggufText(s string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(s))), s...)
}

func buildGGUF(meta []ggufPair, fixtures ...fixture) []byte {
	out := []byte("GGUF")
	out = binary.LittleEndian.AppendUint32(out, 3)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(fixtures)))
	out = binary.LittleEndian.AppendUint64(out, uint64(len(meta)))
	for _, p := range meta {
		out = append(out, ggufText(p.key)...)
		out = binary.LittleEndian.AppendUint32(out, p.kind)
		out = append(out, p.value...)
	}
	var data []byte
	for _, f := range fixtures {
		out = append(out, ggufText(f.name)...)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(f.shape)))
		for i := len(f.shape) - 1; i >= 0; i-- {
			out = binary.LittleEndian.AppendUint64(out, uint64(f.shape[i]))
		}
		for number, dt := range ggufTypes {
			if dt == f.dt {
				out = binary.LittleEndian.AppendUint32(out, number)
			}
		}
		out = binary.LittleEndian.AppendUint64(out, uint64(len(data)))
		data = append(data, f.raw...)
		data = append(data, make([]byte, -len(data)&31)...)
	}
	out = append(out, make([]byte, -len(out)&31)...)
	return append(out, data...)
}

func writeFile(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// openSet writes a safetensors file of the fixtures and opens it.
func openSet(t testing.TB, fixtures ...fixture) *Set {
	t.Helper()
	return openBytes(t, "model.safetensors", buildSafetensors(fixtures...))
}

func openBytes(t testing.TB, name string, data []byte) *Set {
	t.Helper()
	s, err := Open(writeFile(t, t.TempDir(), name, data))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func floatsOf(t testing.TB, s *Set, name string) []float32 {
	t.Helper()
	x, err := s.Float32(name)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// quantised makes a fixture of a GGUF type with pseudo-random codes and
// ordinary scales.
func quantised(name string, dt tensor.DType, rows, cols int) fixture {
	f := fixture{name, dt, []int{rows, cols}, make([]byte, rows*dt.RowBytes(cols))}
	x := uint32(1)
	for i := range f.raw {
		x = x*1664525 + 1013904223
		f.raw[i] = byte(x >> 24)
	}
	heads := map[tensor.DType]int{tensor.GQ4_0: 1, tensor.GQ8_0: 1, tensor.GQ5_0: 1, tensor.GQ4_1: 2, tensor.GQ5_1: 2, tensor.GQ4K: 2}[dt]
	for at := 0; at < len(f.raw); at += dt.BlockBytes() {
		for h := range heads {
			v := float32(int(f.raw[at])-100) / 1000
			binary.LittleEndian.PutUint16(f.raw[at+2*h:], tensor.F32ToF16(v))
		}
	}
	return f
}

func equalFloats(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func decodeAll(t testing.TB, dt tensor.DType, raw []byte) []float32 {
	t.Helper()
	out := make([]float32, len(raw)/dt.BlockBytes()*dt.Block())
	if err := tensor.Decode(out, dt, bytes.Clone(raw)); err != nil {
		t.Fatal(err)
	}
	return out
}
