// Package calibration writes what a model's calibrate subcommand measured, in
// the file that iflowc quantizes by.
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

// A File is what was measured on calibration text, keyed by the names of stored
// tensors. On disk it is a safetensors file of f32 tensors: each importance
// under its matrix's name, each Hessian under that name and HessianSuffix, the
// scores under ScoresName.
type File struct {
	// Importance holds for each matrix the mean square of each input column.
	Importance map[string][]float32
	// Hessians hold for each matrix the sums of products of its input columns.
	Hessians map[string]Hessian
	// Scores count rows by their largest attention score: for each layer
	// manifest.ScoreBins counts.
	Scores []float32
	// Meta are notes for readers of the file.
	Meta map[string]string
}

// A Hessian holds sums of products of a matrix's input columns, as GPTQ counts
// errors by them (Frantar et al. 2023, arXiv:2210.17323): for each run of Width
// columns a square of Width·Width numbers, row-major, of which the upper
// triangle counts.
type Hessian struct {
	Width int
	Sums  []float32
}

// Names in the file.
const (
	HessianSuffix = ".moments"
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

// writeFloats writes a file of some bytes and then float32 numbers.
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
