package weights

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// An Importance says how much an error in each column of a stored matrix
// matters: the mean square of what the column is multiplied by, on calibration
// text. Keys are names of stored tensors.
type Importance map[string][]float32

// WriteImportance writes a safetensors file: for each stored matrix a vector of
// its columns' mean squares, and for those in moments the sums of products of
// columns, NAME.moments; and what was counted of attention's scores.
func WriteImportance(path string, imp Importance, moments map[string]Squares, scores Scores, meta map[string]string) error {
	header := map[string]any{}
	if len(meta) > 0 {
		header["__metadata__"] = meta
	}
	var parts [][]float32
	at := 0
	put := func(name string, shape []int, x []float32) {
		header[name] = map[string]any{"dtype": "F32", "shape": shape, "data_offsets": []int{at, at + 4*len(x)}}
		parts, at = append(parts, x), at+4*len(x)
	}
	for _, name := range slices.Sorted(maps.Keys(imp)) {
		put(name, []int{len(imp[name])}, imp[name])
	}
	for _, name := range slices.Sorted(maps.Keys(moments)) {
		m := moments[name]
		put(name+momentsSuffix, []int{len(m.Sums) / (m.Width * m.Width), m.Width, m.Width}, m.Sums)
	}
	if len(scores) > 0 {
		put(scoresName, []int{len(scores) / manifest.ScoreBins, manifest.ScoreBins}, scores)
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

// ReadImportance reads such a file, or an importance matrix of llama.cpp in
// GGUF form (NAME.in_sum2 over NAME.counts), whose names are those of GGUF
// models. Numbers that are negative or not finite are refused.
func ReadImportance(path string) (Importance, error) {
	set, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	imp := Importance{}
	for _, t := range set.Tensors() {
		name, count := t.Name, float32(1)
		if base, ok := strings.CutSuffix(name, ".in_sum2"); ok {
			counts, err := set.Float32(base + ".counts")
			if err != nil {
				return nil, err
			}
			if len(counts) != 1 {
				continue // of experts, each with its own
			}
			name, count = base, max(counts[0], 1)
		} else if strings.HasSuffix(name, ".counts") || strings.HasSuffix(name, momentsSuffix) || name == scoresName {
			continue
		}
		if !t.DType.IsFloat() {
			return nil, fmt.Errorf("%s: tensor %q is %s; an importance matrix holds floats", path, t.Name, t.DType)
		}
		x, err := set.Float32(t.Name)
		if err != nil {
			return nil, err
		}
		for i := range x {
			x[i] /= count
			if !(x[i] >= 0 && x[i] <= math.MaxFloat32) {
				return nil, fmt.Errorf("%s: tensor %q: column %d has importance %v; expected a finite number, not negative", path, t.Name, i, x[i])
			}
		}
		imp[name] = x
	}
	if len(imp) == 0 {
		return nil, fmt.Errorf("%s: no tensors; expected an importance matrix as a model's calibrate verb writes it", path)
	}
	return imp, nil
}

// Digest names the contents; it is empty for none.
func (imp Importance) Digest() string {
	if len(imp) == 0 {
		return ""
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(imp)) {
		fmt.Fprintf(h, "%q %d\n", name, len(imp[name]))
		for _, x := range imp[name] {
			fmt.Fprintf(h, "%08x", math.Float32bits(x))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Weigh makes recipes over the set that quantise count errors by importance. Of
// a recipe with several sources the first that is known decides; one whose
// columns are not the source's is encoded evenly.
func (s *Set) Weigh(imp Importance) { s.importance = imp }

// Importance is what Weigh was given; nil for none.
func (s *Set) Importance() Importance { return s.importance }

// importanceOf is the importance of a recipe's columns, or nil.
func (e *evaluator) importanceOf(r *tensor.Recipe, cols int) []float32 {
	if len(e.set.importance) == 0 {
		return nil
	}
	for _, name := range r.Sources() {
		if imp := e.set.importance[SourceName(name, e.index)]; len(imp) == cols {
			return imp
		}
	}
	return nil
}
