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
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A File holds statistics of calibration text by the names of stored tensors. On disk
// it is a safetensors file of f32 tensors: each importance under its matrix's name,
// each Hessian under those of its matrices, joined by spaces, plus HessianSuffix, and the
// scores under ScoresName.
type File struct {
	// Importance is, for each matrix, the mean square of each input column.
	Importance map[string][]float32
	// Hessians are XᵀX of the matrices' input columns.
	Hessians []Hessian
	// Scores count rows by their largest attention score: manifest.ScoreBins counts per
	// layer.
	Scores []float32
	// Meta is the file's metadata, for human readers.
	Meta map[string]string
}

// A Hessian is the block diagonal of XᵀX over a matrix's input columns, for GPTQ error
// compensation (Frantar et al. 2023, arXiv:2210.17323): a square of SquareLen(Width)
// numbers for each run of Width columns, a multiple of Tile.
type Hessian struct {
	Matrices []string // all matrices of this input
	Width    int
	Sums     []float32
}

// Tile is the width of the tiles of a Hessian's squares. The tiles on and above the
// diagonal are stored, row by row, each row-major.
const Tile = 64

// SquareLen returns the numbers of one square of the given width.
func SquareLen(width int) int {
	n := width / Tile
	return n * (n + 1) / 2 * Tile * Tile
}

// Place returns the place of columns i ≤ j in a square of the given width.
func Place(width, i, j int) int {
	n, a, b := width/Tile, i/Tile, j/Tile
	return (a*(2*n-a-1)/2+b)*Tile*Tile + i%Tile*Tile + j%Tile
}

// WidthOf returns the width of a square of that many tiles; 0 if there is none.
func WidthOf(tiles int) int {
	for n := 1; n*(n+1)/2 <= tiles; n++ {
		if n*(n+1)/2 == tiles {
			return n * Tile
		}
	}
	return 0
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
	for _, h := range f.Hessians {
		square := SquareLen(h.Width)
		put(strings.Join(h.Matrices, " ")+HessianSuffix, []int{len(h.Sums) / square, square / (Tile * Tile), Tile, Tile}, h.Sums)
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
