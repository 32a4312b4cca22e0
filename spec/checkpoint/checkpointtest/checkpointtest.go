// Package checkpointtest builds small weight files for tests.
package checkpointtest

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
)

// A Fixture is a tensor to be stored in a test file.
type Fixture struct {
	Name  string
	DType tensor.DType
	Shape []int
	Raw   []byte
}

// New returns a fixture with the given bytes.
func New(name string, dt tensor.DType, shape []int, raw []byte) Fixture {
	return Fixture{name, dt, shape, raw}
}

// Ramp returns an f32 fixture with the values from, from+1, ….
func Ramp(name string, from float32, shape ...int) Fixture {
	n := 1
	for _, d := range shape {
		n *= d
	}
	f := Fixture{name, tensor.F32, shape, make([]byte, 4*n)}
	for i := range n {
		binary.LittleEndian.PutUint32(f.Raw[4*i:], math.Float32bits(from+float32(i)))
	}
	return f
}

// Safetensors returns a safetensors file of the fixtures.
func Safetensors(fixtures ...Fixture) []byte {
	head, at := map[string]any{"__metadata__": map[string]string{"format": "pt"}}, 0
	var data []byte
	for _, f := range fixtures {
		head[f.Name] = map[string]any{"dtype": strings.ToUpper(f.DType.String()), "shape": f.Shape, "data_offsets": []int{at, at + len(f.Raw)}}
		at += len(f.Raw)
		data = append(data, f.Raw...)
	}
	text, _ := json.Marshal(head)
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return append(append(out, text...), data...)
}

// A GGUFPair is one entry of GGUF metadata: key, type number, encoded value.
type GGUFPair struct {
	Key   string
	Kind  uint32
	Value []byte
}

// Pair returns a metadata entry with a type number and an encoded value.
func Pair(key string, kind uint32, value []byte) GGUFPair { return GGUFPair{key, kind, value} }

// GGUFText encodes a string in the format of GGUF.
func GGUFText(s string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(s))), s...)
}

// ggmlTypes maps element types to ggml's type numbers.
var ggmlTypes = map[tensor.DType]uint32{
	tensor.F32: 0, tensor.F16: 1, tensor.GQ4_0: 2, tensor.GQ4_1: 3, tensor.GQ5_0: 6, tensor.GQ5_1: 7, tensor.GQ8_0: 8,
	tensor.GQ2K: 10, tensor.GQ3K: 11, tensor.GQ4K: 12, tensor.GQ5K: 13, tensor.GQ6K: 14,
	tensor.GIQ4NL: 20, tensor.GIQ4XS: 23, tensor.I8: 24, tensor.I16: 25, tensor.I32: 26, tensor.I64: 27, tensor.F64: 28,
	tensor.BF16: 30, tensor.GTQ1: 34, tensor.GTQ2: 35, tensor.GMXFP4: 39, tensor.GNVFP4: 40, tensor.GQ1_0: 41, tensor.GQ2_0: 42,
	tensor.GIQ2XXS: 16, tensor.GIQ2XS: 17, tensor.GIQ3XXS: 18, tensor.GIQ1S: 19, tensor.GIQ3S: 21, tensor.GIQ2S: 22, tensor.GIQ1M: 29,
}

// GGUF returns a GGUF file of version 3.
func GGUF(meta []GGUFPair, fixtures ...Fixture) []byte {
	out := []byte("GGUF")
	out = binary.LittleEndian.AppendUint32(out, 3)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(fixtures)))
	out = binary.LittleEndian.AppendUint64(out, uint64(len(meta)))
	for _, p := range meta {
		out = append(out, GGUFText(p.Key)...)
		out = binary.LittleEndian.AppendUint32(out, p.Kind)
		out = append(out, p.Value...)
	}
	var data []byte
	for _, f := range fixtures {
		out = append(out, GGUFText(f.Name)...)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(f.Shape)))
		for i := len(f.Shape) - 1; i >= 0; i-- {
			out = binary.LittleEndian.AppendUint64(out, uint64(f.Shape[i]))
		}
		out = binary.LittleEndian.AppendUint32(out, ggmlTypes[f.DType])
		out = binary.LittleEndian.AppendUint64(out, uint64(len(data)))
		data = append(data, f.Raw...)
		data = append(data, make([]byte, -len(data)&31)...)
	}
	out = append(out, make([]byte, -len(out)&31)...)
	return append(out, data...)
}

// Quantized returns a fixture of a GGUF block type with pseudo-random codes and
// scales of ordinary size.
func Quantized(name string, dt tensor.DType, rows, cols int) Fixture {
	f := Fixture{name, dt, []int{rows, cols}, make([]byte, rows*dt.RowBytes(cols))}
	x := uint32(1)
	for i := range f.Raw {
		x = x*1664525 + 1013904223
		f.Raw[i] = byte(x >> 24)
	}
	heads := map[tensor.DType]int{tensor.GQ4_0: 1, tensor.GQ8_0: 1, tensor.GQ5_0: 1, tensor.GQ4_1: 2, tensor.GQ5_1: 2, tensor.GQ4K: 2}[dt]
	for at := 0; at < len(f.Raw); at += dt.BlockBytes() {
		for h := range heads {
			v := float32(int(f.Raw[at])-100) / 1000
			binary.LittleEndian.PutUint16(f.Raw[at+2*h:], tensor.F32ToF16(v))
		}
	}
	return f
}

// DecodeAll decodes whole blocks to n float32 values.
func DecodeAll(t testing.TB, dt tensor.DType, raw []byte) []float32 {
	t.Helper()
	out := make([]float32, len(raw)/dt.BlockBytes()*dt.Block())
	if err := tensor.Decode(out, dt, raw); err != nil {
		t.Fatal(err)
	}
	return out
}
