package compiler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/tools/check/ptx"
)

// TestCells: a model with fixed-size states gives what OpDef.Step does for random steps
// of lines, drafts and trees, and a token the same bits in every step.
func TestCells(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	cellsCases(t, 4, 32, (*madeUpModel).onCPU)
}

// TestEmulatedCells is TestCells for the CUDA target, under emulation.
func TestEmulatedCells(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	cellsCases(t, 3, 24, (*madeUpModel).emulated)
}

// TestPTXCells is TestCells with nvcc's PTX of the kernels, run by tools/check/ptx.
func TestPTXCells(t *testing.T) {
	t.Parallel()
	nvcc, err := toolchain.FindNVCC(t.Context())
	if err != nil {
		t.Skip(err)
	}
	driver := ptx.NewDriver()
	cellsCases(t, 2, 5, func(m *madeUpModel, t *testing.T) {
		m.model.Device = ptxDevice(t, m.model.Manifest, m.gpu, nvcc, driver)()
	})
	if driver.Err != nil {
		t.Error(driver.Err)
	}
}

// cellsCases tests a module with a number of steps, or all modules, each with many.
func cellsCases(t *testing.T, steps, many int, load func(*madeUpModel, *testing.T)) {
	for _, name := range irtest.Sample(t, 1, []string{"recurrence_none", "recurrence_rule", "recurrence_vectors", "scans"}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("testdata/ops/" + name + ".ir")
			if err != nil {
				t.Fatal(err)
			}
			m := madeUp(t, string(text), 1)
			load(m, t)
			n := steps
			if irtest.All() {
				n = many
			}
			w := newCellWorld(t, m, rand.New(rand.NewPCG(irtest.Seed(t), uint64(len(text)))))
			for range n {
				w.random()
			}
			w.again()
		})
	}
}

const (
	worldSeqs  = 3
	worldRows  = 40 // most tokens of a sequence in a step
	worldCells = 64
)

// A cellToken is a token, the ids before it on its path and its own, and its rows of the
// outputs.
type cellToken struct {
	path []int
	out  [][]float32
}

// A cellSeq is a sequence as the engine keeps it.
type cellSeq struct {
	tokens []*cellToken
	cells  []int32
	from   int
}

// A cellWorld keeps the sequences of a test on a device, and their cells.
type cellWorld struct {
	t    *testing.T
	r    *rand.Rand
	m    *madeUpModel
	c    device.Context
	s    *device.Step
	free []int32
	seqs []*cellSeq
}

func newCellWorld(t *testing.T, m *madeUpModel, r *rand.Rand) *cellWorld {
	t.Helper()
	man := m.model.Manifest
	cfg := &device.Config{
		Threads: 2, Weights: m.model.Weights, Dispatch: m.model.Dispatch, Pages: 1, MaxTokens: worldSeqs * worldRows, MaxOutRows: 1, MaxSeqs: worldSeqs, MaskWords: 1,
		Cells: worldCells, MaxCells: worldCells, CellBytes: man.CellBytes(), PageBytes: man.PageBytes(),
	}
	for _, o := range man.Graphs[0].Outputs {
		cfg.Outputs = append(cfg.Outputs, device.Array{Rows: cfg.MaxTokens, Cols: o.Cols})
	}
	c, err := m.model.Device.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s, err := device.NewStep(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Free)
	w := &cellWorld{t: t, r: r, m: m, c: c, s: s}
	for i := range int32(worldCells) {
		w.free = append(w.free, i)
	}
	r.Shuffle(worldCells, func(i, j int) { w.free[i], w.free[j] = w.free[j], w.free[i] })
	for range worldSeqs {
		w.seqs = append(w.seqs, &cellSeq{})
	}
	return w
}

// A cellPart is one sequence of a step: new tokens in a line, or the nodes of a tree.
type cellPart struct {
	seq    *cellSeq
	tokens []*cellToken
	parent []int // of a tree; −1: the sequence's last token
	drop   bool  // cells that need not be kept are not
}

// list adds to a part's sequence the cells of its tokens.
func (w *cellWorld) list(p cellPart) {
	s, before, last := p.seq, len(p.seq.tokens), len(p.seq.tokens)+len(p.tokens)-1
	for c := s.from + len(s.cells); c <= last/device.CellRows; c++ {
		at := c * device.CellRows
		if p.drop && at >= before && at+device.CellRows <= last && w.r.IntN(3) > 0 {
			s.cells = append(s.cells, -1)
			continue
		}
		s.cells = append(s.cells, w.free[len(w.free)-1])
		w.free = w.free[:len(w.free)-1]
	}
}

// place writes a part into the step as its next sequence.
func (w *cellWorld) place(p cellPart) {
	s, q := w.s, w.s.Seqs
	w.list(p)
	for i, k := range p.tokens {
		at, mask := s.Tokens, uint64(0)
		if p.parent != nil {
			s.Masked = true
			for j := i; j >= 0; j = p.parent[j] {
				mask |= 1 << j
			}
		}
		s.ID[at], s.Pos[at], s.Seq[at], s.Slot[at], s.Mask[at] = int32(k.path[len(k.path)-1]), int32(len(k.path)-1), int32(q), int32(len(p.seq.tokens)+i), mask
		s.Tokens++
	}
	s.First[q+1], s.Past[q], s.CellFrom[q] = int32(s.Tokens), int32(len(p.seq.tokens)), int32(p.seq.from)
	s.CellAt[q+1] = s.CellAt[q] + int32(copy(s.Cell[s.CellAt[q]:], p.seq.cells))
	s.Seqs++
}

// step computes some parts together.
func (w *cellWorld) step(parts []cellPart) {
	w.t.Helper()
	s := w.s
	s.Tokens, s.Seqs, s.Masked = 0, 0, false
	for _, p := range parts {
		w.place(p)
	}
	if err := w.c.Submit(s)(); err != nil {
		w.t.Fatal(err)
	}
	at := 0
	for _, p := range parts {
		for _, k := range p.tokens {
			k.out = nil
			for o, out := range s.Out {
				cols := w.m.model.Manifest.Graphs[0].Outputs[o].Cols
				k.out = append(k.out, slices.Clone(out[at*cols:][:cols]))
			}
			at++
		}
	}
}

// accept appends the tokens at some indices of a part to its sequence, and frees what
// the sequence no longer needs.
func (w *cellWorld) accept(p cellPart, path []int) {
	s, before := p.seq, len(p.seq.tokens)
	for i, n := range path {
		if n != i {
			w.c.MoveInCells(device.CellRowOf(s.cells, s.from, before+i), device.CellRowOf(s.cells, s.from, before+n))
		}
		s.tokens = append(s.tokens, p.tokens[n])
	}
	done := len(s.tokens)
	keep := max(done-1, 0) / device.CellRows
	if p.parent != nil {
		keep = min(keep, before/device.CellRows)
	}
	n := (done+device.CellRows-1)/device.CellRows - s.from
	w.release(s.cells[n:])
	w.release(s.cells[:keep-s.from])
	s.cells, s.from = slices.Clone(s.cells[keep-s.from:n]), keep
	if last := len(s.cells) - 1; done%device.CellRows != 0 && s.cells[last] >= 0 && w.r.IntN(4) == 0 { // as a fork does
		to := w.free[0]
		w.c.CopyCell(to, s.cells[last])
		w.free[0], s.cells[last] = s.cells[last], to
	}
}

func (w *cellWorld) release(cells []int32) {
	for _, id := range cells {
		if id >= 0 {
			w.free = slices.Insert(w.free, w.r.IntN(len(w.free)+1), id)
		}
	}
}

// random computes a random step, checks some of its tokens and keeps a part of them.
func (w *cellWorld) random() {
	w.t.Helper()
	var parts []cellPart
	for _, s := range w.seqs {
		if w.r.IntN(3) > 0 && len(s.tokens) < 100 {
			parts = append(parts, w.part(s))
		}
	}
	if len(parts) == 0 {
		return
	}
	w.step(parts)
	for _, p := range parts {
		for _, i := range []int{0, w.r.IntN(len(p.tokens)), len(p.tokens) - 1} {
			w.check(p.tokens[i], fmt.Sprintf("token %d of %d after %d, tree %v", i, len(p.tokens), len(p.seq.tokens), p.parent))
		}
		w.accept(p, w.choose(p))
	}
}

// part draws new tokens of a sequence.
func (w *cellWorld) part(s *cellSeq) cellPart {
	p, r := cellPart{seq: s, drop: w.r.IntN(2) == 0}, w.r
	end := device.CellRows - len(s.tokens)%device.CellRows // up to the end of a cell
	n := []int{1, 1 + r.IntN(5), 1 + r.IntN(worldRows), end}[r.IntN(4)]
	if r.IntN(3) == 0 {
		n, p.drop, p.parent = 1+r.IntN(24), false, []int{-1}
		for i := 1; i < n; i++ {
			p.parent = append(p.parent, max(r.IntN(i), r.IntN(i)))
		}
	}
	for i := range n {
		var before []*cellToken
		switch {
		case i > 0 && p.parent == nil:
			before = p.tokens[i-1 : i]
		case i > 0:
			before = p.tokens[p.parent[i]:][:1]
		case len(s.tokens) > 0:
			before = s.tokens[len(s.tokens)-1:]
		}
		k := &cellToken{}
		for _, b := range before {
			k.path = slices.Clone(b.path)
		}
		k.path = append(k.path, r.IntN(40))
		p.tokens = append(p.tokens, k)
	}
	return p
}

// choose draws the tokens of a part to keep: all, or those up to one.
func (w *cellWorld) choose(p cellPart) (path []int) {
	last := len(p.tokens) - 1
	if p.parent != nil {
		for n := w.r.IntN(last + 1); n >= 0; n = p.parent[n] {
			path = append([]int{n}, path...)
		}
		return path
	}
	if !p.drop && w.r.IntN(2) == 0 {
		last = w.r.IntN(last + 1)
	}
	for i := range last + 1 {
		path = append(path, i)
	}
	return path
}

// check compares a token's results with the interpreter's for its path.
func (w *cellWorld) check(k *cellToken, what string) {
	w.t.Helper()
	results, err := interp.Run(w.m.mod, w.m.mod.Graphs[0].Name, &interp.Step{IDs: k.path}, w.m.weights, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for o, want := range results {
		cols, size := want.Shape[1], 0.0
		for _, f := range want.F {
			size = max(size, math.Abs(f))
		}
		for i, f := range want.F[len(want.F)-cols:] {
			if d := math.Abs(float64(k.out[o][i]) - f); !(d <= 1e-4*(1+size)) {
				w.t.Fatalf("%s: output %d, column %d is %g, want %g (largest %g)", what, o, i, k.out[o][i], f, size)
			}
		}
	}
}

// again computes the tokens of every sequence one by one and compares bits.
func (w *cellWorld) again() {
	w.t.Helper()
	for _, s := range w.seqs {
		one := &cellSeq{}
		for _, k := range s.tokens {
			p := cellPart{seq: one, tokens: []*cellToken{{path: k.path}}}
			w.step([]cellPart{p})
			w.accept(p, []int{0})
			for o, row := range p.tokens[0].out {
				sameBits(w.t, fmt.Sprintf("output %d of token %d alone", o, len(k.path)-1), row, k.out[o])
			}
		}
		w.release(one.cells)
	}
}
