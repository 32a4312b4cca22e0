package lora

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
	"github.com/iflowc/iflowc/runtime/artifact/tensorfile"
)

// readers decode whole blocks of the types in which adapters are stored.
var readers = map[dtype.Type]func(dst []float32, raw []byte){
	dtype.F64: func(dst []float32, raw []byte) {
		for i := range dst {
			dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])))
		}
	},
	dtype.F32: func(dst []float32, raw []byte) {
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	},
	dtype.F16: func(dst []float32, raw []byte) {
		for i := range dst {
			dst[i] = halfAt(raw[2*i:])
		}
	},
	dtype.BF16: func(dst []float32, raw []byte) {
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		}
	},
	dtype.GQ8_0: func(dst []float32, raw []byte) {
		for i := range dst {
			block := raw[i/32*34:]
			dst[i] = halfAt(block) * float32(int8(block[2+i%32]))
		}
	},
}

func halfAt(b []byte) float32 { return dtype.F16ToF32(binary.LittleEndian.Uint16(b)) }

// Read returns A [Rank, In] and B [Out, Rank] of the matrix with the given index in
// Matrices. All numbers are finite, also those of B multiplied by the scale.
func (a *Adapter) Read(index int) (matrixA, matrixB []float32, err error) {
	p := &a.pairs[index]
	if matrixA, err = a.read(&p.a, 1); err != nil {
		return nil, nil, err
	}
	if matrixB, err = a.read(&p.b, p.Scale); err != nil {
		return nil, nil, err
	}
	return matrixA, matrixB, nil
}

// Unchanged reports whether all of B of a matrix is 0, as PEFT starts: the adapter changes
// nothing then, because the training has not used the matrix. Such are those of a vision
// tower after training with texts alone.
func (a *Adapter) Unchanged(index int) bool {
	t := &a.pairs[index].b
	raw := make([]byte, min(t.Bytes, 1<<20))
	for at := int64(0); at < t.Bytes; at += int64(len(raw)) {
		part := raw[:min(t.Bytes-at, int64(len(raw)))]
		if _, err := a.file.ReadAt(part, t.Offset+at); err != nil || slices.ContainsFunc(part, func(b byte) bool { return b != 0 }) {
			return false
		}
	}
	return true
}

// read returns the numbers of a tensor; their products with the scale are finite too.
func (a *Adapter) read(t *tensorfile.Tensor, scale float64) ([]float32, error) {
	raw := make([]byte, t.Bytes)
	if _, err := a.file.ReadAt(raw, t.Offset); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file changed while it was read; try again")
		}
		return nil, a.errorf("tensor %q: %w", t.Name, err)
	}
	out := make([]float32, t.Shape[0]*t.Shape[1])
	readers[t.DType](out, raw)
	for i, v := range out {
		if scaled := float64(v) * scale; !(math.Abs(scaled) <= math.MaxFloat32) {
			return nil, a.errorf("tensor %q has the number %v in row %d, column %d; with the scale %v it is not finite: the training has diverged, use an earlier checkpoint", t.Name, v, i/t.Shape[1], i%t.Shape[1], scale)
		}
	}
	return out, nil
}
