// Package calibration writes the file with the results of a model's calibrate
// subcommand, which iflowc reads for quantization.
package calibration

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A File holds statistics of calibration text by the names of stored tensors. On disk
// it is a safetensors file of f32 tensors: each importance under its matrix's name,
// each Hessian under that name plus HessianSuffix, and the scores under ScoresName.
type File struct {
	// Importance is, for each matrix, the mean square of each input column.
	Importance map[string][]float32
	// Hessians are, for each matrix, XᵀX of its input columns.
	Hessians map[string]Hessian
	// Scores count rows by their largest attention score: manifest.ScoreBins counts per
	// layer.
	Scores []float32
	// Meta is the file's metadata, for human readers.
	Meta map[string]string
}

// A Hessian is the block diagonal of XᵀX over a matrix's input columns, for GPTQ error
// compensation (Frantar et al. 2023, arXiv:2210.17323). It has a row-major square of
// Width·Width numbers for each run of Width columns; only the upper triangles are used.
type Hessian struct {
	Width int
	Sums  []float32
}

// Names in the file.
const (
	HessianSuffix = ".hessian"
	ScoresName    = "attention.scores"
)

// Write writes the file.
func (f *File) Write(path string) error {
	header := map[string]any{}
	if len(f.Meta) > 0 {
		header["__metadata__"] = f.Meta
	}
	var parts [][]float32
	at := 0
	put := func(name string, shape []int, x []float32) {
		header[name] = map[string]any{"dtype": "F32", "shape": shape, "data_offsets": []int{at, at + 4*len(x)}}
		parts, at = append(parts, x), at+4*len(x)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Importance)) {
		put(name, []int{len(f.Importance[name])}, f.Importance[name])
	}
	for _, name := range slices.Sorted(maps.Keys(f.Hessians)) {
		h := f.Hessians[name]
		put(name+HessianSuffix, []int{len(h.Sums) / (h.Width * h.Width), h.Width, h.Width}, h.Sums)
	}
	if len(f.Scores) > 0 {
		put(ScoresName, []int{len(f.Scores) / manifest.ScoreBins, manifest.ScoreBins}, f.Scores)
	}
	head, err := json.Marshal(header)
	if err != nil {
		return err
	}
	for len(head)%8 != 0 {
		head = append(head, ' ')
	}
	return writeFloats(path, append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), parts)
}

// writeFloats writes a file of head followed by float32 numbers.
func writeFloats(path string, head []byte, parts [][]float32) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	_, err = w.Write(head)
	var four [4]byte
	for _, part := range parts {
		for _, x := range part {
			binary.LittleEndian.PutUint32(four[:], math.Float32bits(x))
			if _, e := w.Write(four[:]); e != nil && err == nil {
				err = e
			}
		}
	}
	if e := w.Flush(); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
