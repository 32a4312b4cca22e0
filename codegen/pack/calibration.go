package pack

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/calibration"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/kit/regular"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// A Calibration holds activation statistics of a model on calibration text.
// Quantization uses them to weight errors. It is safe for concurrent use; nil means no
// calibration.
type Calibration struct {
	// Importance is the weight of errors in each column of a stored matrix: the mean
	// squared activation of the column. Keys are names of stored tensors.
	Importance map[string][]float32
	// Scores are histograms of the rows' maximum attention scores: manifest.ScoreBins
	// counts per layer.
	Scores []float32

	hessians *hessians // nil: none
}

// ReadCalibration reads a file that a model's calibrate subcommand wrote, or an
// importance matrix of llama.cpp in GGUF form (NAME.in_sum2 over NAME.counts),
// with the tensor names of GGUF models. Negative and non-finite numbers are errors. The
// Hessians, which are larger than the model, are read from the file on demand.
func ReadCalibration(path string) (*Calibration, error) {
	set, err := checkpoint.Open(path)
	if err != nil && oldImportance(path) {
		return nil, fmt.Errorf("%s: an importance matrix in llama.cpp's old form; convert it: llama-imatrix --in-file %s -o %s.gguf", path, path, path)
	}
	if err != nil {
		return nil, err
	}
	defer set.Close()
	c := &Calibration{}
	if c.Importance, err = readImportance(set, path); err == nil {
		c.Scores, err = readScores(set, path)
	}
	if err != nil {
		return nil, err
	}
	shapes, places := map[string][]int{}, map[string]string{}
	for _, t := range set.Tensors() {
		if names, ok := strings.CutSuffix(t.Name, calibration.HessianSuffix); ok {
			shapes[t.Name] = t.Shape
			for _, name := range strings.Fields(names) {
				places[name] = t.Name
			}
		}
	}
	if len(shapes) > 0 {
		c.hessians = &hessians{path: path, shapes: shapes, places: places}
		c.hessians.digest, err = FileDigest(path)
	}
	return c, err
}

// oldImportance reports whether a file begins as llama.cpp wrote importance matrices before
// GGUF: the number of entries, and the length and the text of the first one's name.
func oldImportance(path string) bool {
	f, _, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [16]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return false
	}
	entries, length := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	return entries > 0 && entries < 1<<20 && length >= 8 && length < 256 && !slices.ContainsFunc(head[8:], func(c byte) bool { return c <= ' ' || c > '~' })
}

func readImportance(set *checkpoint.Set, path string) (map[string][]float32, error) {
	imp := map[string][]float32{}
	for _, t := range set.Tensors() {
		name, count := t.Name, float32(1)
		if base, ok := strings.CutSuffix(name, ".in_sum2"); ok {
			counts, err := set.Float32(base + ".counts")
			if err != nil {
				return nil, err
			}
			if len(counts) != 1 {
				continue // of experts, with separate importance
			}
			name, count = base, max(counts[0], 1)
		} else if strings.HasSuffix(name, ".counts") || strings.HasSuffix(name, calibration.HessianSuffix) || name == calibration.ScoresName {
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
		}
		if err := checkSums(path, t.Name, x); err != nil {
			return nil, err
		}
		imp[name] = x
	}
	if len(imp) == 0 {
		return nil, fmt.Errorf("%s: no tensors; expected an importance matrix as a model's calibrate subcommand writes it", path)
	}
	return imp, nil
}

// Digest returns a digest of the contents that quantization depends on; "" for none.
func (c *Calibration) Digest() string {
	switch {
	case c == nil:
		return ""
	case c.hessians != nil: // too large to hash every number
		return c.hessians.digest
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(c.Importance)) {
		fmt.Fprintf(h, "%q %d\n", name, len(c.Importance[name]))
		for _, x := range c.Importance[name] {
			fmt.Fprintf(h, "%08x", math.Float32bits(x))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// FileDigest returns the SHA-256 of a file, in hexadecimal.
func FileDigest(path string) (string, error) {
	f, _, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// importanceOf returns the importance of a transform's columns, or nil. The first source
// with a known importance decides. A transform that changes the columns has none.
func (e *evaluator) importanceOf(r *tensor.Transform, cols int) []float32 {
	if e.src.Calibration == nil {
		return nil
	}
	for _, name := range r.Sources() {
		source, err := tensor.SourceName(name, e.index)
		if imp := e.src.Calibration.Importance[source]; err == nil && len(imp) == cols {
			return imp
		}
	}
	return nil
}

func readScores(set *checkpoint.Set, path string) ([]float32, error) {
	if _, ok := set.Lookup(calibration.ScoresName); !ok {
		return nil, nil
	}
	s, err := set.Float32(calibration.ScoresName)
	if err != nil {
		return nil, err
	}
	if len(s)%manifest.ScoreBins != 0 {
		return nil, fmt.Errorf("%s: tensor %q has %d elements, expected %d for each layer; calibrate again", path, calibration.ScoresName, len(s), manifest.ScoreBins)
	}
	return s, checkSums(path, calibration.ScoresName, s)
}

// checkSums returns an error for a number that no sum of squares or count can be.
func checkSums(path, name string, x []float32) error {
	i := slices.IndexFunc(x, func(v float32) bool { return !(v >= 0 && v <= math.MaxFloat32) })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%s: tensor %q: number %d is %v; expected a finite, non-negative number; calibrate again", path, name, i, x[i])
}

// ScoreRange returns the range of the rows' maximum scores over all layers, times log₂e,
// without one row in ten thousand on either side. It returns false if there are no
// counts or the range is open.
func (c *Calibration) ScoreRange() (lo, hi float64, ok bool) {
	if c == nil {
		return 0, 0, false
	}
	var bins [manifest.ScoreBins]float64
	total := 0.0
	for i, n := range c.Scores {
		bins[i%len(bins)] += float64(n)
		total += float64(n)
	}
	if total == 0 {
		return 0, 0, false
	}
	first, last := 0, len(bins)-1
	for rare := total / 10000; bins[first] <= rare; first++ {
		rare -= bins[first]
	}
	for rare := total / 10000; bins[last] <= rare; last-- {
		rare -= bins[last]
	}
	return float64(first - 128), float64(last - 127), first > 0 && last < len(bins)-1
}
