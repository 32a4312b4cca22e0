// Package lora reads LoRA adapters: pairs of matrices A [rank, inputs] and B [outputs,
// rank] whose product is added to a model's matrices (Hu et al., LoRA, 2021).
//
// An adapter's files are untrusted. Open reads only their headers and configuration, of
// bounded size. Pack compares every shape with the model before it allocates memory, and
// reads one pair at a time.
package lora

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
	"github.com/iflowc/iflowc/runtime/artifact/tensorfile"
)

// MaxRank is the highest supported rank: IFL_LORA_RANK.
const MaxRank = 256

// maxHeader is the most bytes of a weight file's header. 100,000 matrices need 12 MB.
const maxHeader = 16 << 20

// An Adapter is an adapter's checked files. It keeps its weight file open.
type Adapter struct {
	path  string   // of the weight file
	files []string // that the adapter consists of
	file  source
	pairs []pair
}

// A source is an open weight file.
type source interface {
	io.ReaderAt
	io.Closer
}

// A pair holds the matrices that an adapter adds to a matrix of the model.
type pair struct {
	Matrix
	a, b tensorfile.Tensor
}

// A Matrix is a matrix of the model that an adapter changes: Scale·B·A is added to it.
type Matrix struct {
	Name          string // as the adapter's file has it, without prefixes of PEFT and the ending ".weight"
	Rank, In, Out int
	Scale         float64
}

// Fits returns an error if the model's matrix has another shape.
func (m *Matrix) Fits(outputs, inputs int) error {
	if m.Out != outputs || m.In != inputs {
		return fmt.Errorf("%q adds [%d outputs, %d inputs] to a matrix of [%d, %d]; the adapter is for another model", m.Name, m.Out, m.In, outputs, inputs)
	}
	return nil
}

// Open reads the headers of an adapter: a folder in the format of PEFT, or a GGUF file.
func Open(path string) (*Adapter, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return openPEFT(path)
	}
	return openGGUF(path)
}

// Close closes the adapter's file.
func (a *Adapter) Close() error { return a.file.Close() }

// Files returns the paths of the files that the adapter consists of.
func (a *Adapter) Files() []string { return a.files }

// Rank returns the highest rank of the adapter's matrices.
func (a *Adapter) Rank() int {
	most := 0
	for i := range a.pairs {
		most = max(most, a.pairs[i].Rank)
	}
	return most
}

// Matrices returns the matrices that the adapter changes, in the order of its file.
func (a *Adapter) Matrices() []Matrix {
	out := make([]Matrix, len(a.pairs))
	for i := range a.pairs {
		out[i] = a.pairs[i].Matrix
	}
	return out
}

// errorf prefixes the path of the adapter's weight file.
func (a *Adapter) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", a.path, fmt.Errorf(format, args...))
}

// newAdapter reads an adapter's weight file with the reader of its format. take takes
// its tensors.
func newAdapter(path string, file source, size int64, read func(head []byte, size int64) (*tensorfile.File, error), take func(a *Adapter, f *tensorfile.File) error) (*Adapter, error) {
	a := &Adapter{path: path, file: file, files: []string{path}}
	err := a.load(size, read, take)
	if err != nil {
		a.Close()
		return nil, a.errorf("%w", err)
	}
	return a, nil
}

func (a *Adapter) load(size int64, read func(head []byte, size int64) (*tensorfile.File, error), take func(a *Adapter, f *tensorfile.File) error) error {
	head, err := io.ReadAll(io.NewSectionReader(a.file, 0, min(size, maxHeader)))
	if err != nil {
		return err
	}
	if hint := tensorfile.Hint(head); hint != "" {
		return fmt.Errorf("not a weight file but %s", hint)
	}
	f, err := read(head, size)
	if errors.Is(err, tensorfile.ErrTruncated) && size > maxHeader {
		return fmt.Errorf("the header has more than %d MB; an adapter's has a few", maxHeader>>20)
	}
	if err != nil {
		return err
	}
	if err := take(a, f); err != nil {
		return err
	}
	return a.check()
}

// add adds A or B of a matrix of the model.
func (a *Adapter) add(index map[string]int, name string, isB bool, t tensorfile.Tensor) error {
	i, ok := index[name]
	if !ok {
		i = len(a.pairs)
		index[name] = i
		a.pairs = append(a.pairs, pair{Matrix: Matrix{Name: name}})
	}
	p := &a.pairs[i]
	to := &p.a
	if isB {
		to = &p.b
	}
	if to.Name != "" {
		return fmt.Errorf("tensors %q and %q are for the same matrix; save each adapter in its own folder", to.Name, t.Name)
	}
	*to = t
	return nil
}

// check checks the types and shapes of all pairs, and sets their sizes.
func (a *Adapter) check() error {
	if len(a.pairs) == 0 {
		return errors.New("no LoRA matrices; is this an adapter?")
	}
	for i := range a.pairs {
		p := &a.pairs[i]
		for _, t := range []*tensorfile.Tensor{&p.a, &p.b} {
			if t.Name == "" {
				return fmt.Errorf("%q has only one of the matrices A and B; the file is incomplete, save the adapter again", p.Name)
			}
			if readers[t.DType] == nil {
				return fmt.Errorf("tensor %q is %s; want f32, f16, bf16, f64 or q8_0: save the adapter as one of these", t.Name, typeName(t))
			}
			if len(t.Shape) != 2 || t.Shape[0] < 1 || t.Shape[1] < 1 {
				return fmt.Errorf("tensor %q has shape %v; want a matrix: only linear layers can be adapted", t.Name, t.Shape)
			}
		}
		p.Rank, p.In, p.Out = p.a.Shape[0], p.a.Shape[1], p.b.Shape[0]
		if p.b.Shape[1] != p.Rank {
			return fmt.Errorf("tensors %q of shape %v and %q of shape %v have different ranks; want [rank, inputs] and [outputs, rank]", p.a.Name, p.a.Shape, p.b.Name, p.b.Shape)
		}
		if p.Rank > MaxRank {
			return fmt.Errorf("%q has rank %d; want at most %d: train with a lower rank, or merge the adapter into the model", p.Name, p.Rank, MaxRank)
		}
	}
	return nil
}

func typeName(t *tensorfile.Tensor) string {
	if t.DType == dtype.U8 && t.Stored != "" {
		return t.Stored
	}
	return t.DType.String()
}
