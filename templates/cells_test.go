package templates

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/irtest"
)

const cellRows = 16 // IFL_CELL_ROWS

// A cellToken is a token's rows of the op's arguments, and what the kernel made of it.
type cellToken struct {
	rows [][]float32 // nil for weights
	out  []float32
	path []*cellToken // the tokens before it, and itself
}

// A cellSeq is a sequence as the engine keeps it.
type cellSeq struct {
	tokens []*cellToken
	cells  []int32
	from   int32
}

// A cellWorld keeps the sequences of a test, and their cells.
type cellWorld struct {
	t    *testing.T
	r    *rand.Rand
	op   *cellOp
	lib  map[string]uintptr
	base []float32
	free []int32
	seqs []*cellSeq
}

func newCellWorld(t *testing.T, r *rand.Rand, op *cellOp, lib map[string]uintptr, seqs int) *cellWorld {
	const cells = 96
	w := &cellWorld{t: t, r: r, op: op, lib: lib, base: alignedFloats(cells * int(op.start+cellRows*op.row))}
	for i := range w.base {
		w.base[i] = float32(math.NaN()) // a kernel that reads what nobody wrote shows it
	}
	for i := range int32(cells) {
		w.free = append(w.free, i)
	}
	r.Shuffle(cells, func(i, j int) { w.free[i], w.free[j] = w.free[j], w.free[i] })
	for range seqs {
		w.seqs = append(w.seqs, &cellSeq{})
	}
	return w
}

func (w *cellWorld) token() *cellToken {
	k := &cellToken{}
	for i, cols := range w.op.cols {
		if cols == 0 {
			k.rows = append(k.rows, nil)
			continue
		}
		row := make([]float32, cols)
		for j := range row {
			row[j] = float32(w.op.gauge[i](w.r))
		}
		k.rows = append(k.rows, row)
	}
	return k
}

// A cellPart is one sequence of a step: new tokens in a line, or the nodes of a tree.
type cellPart struct {
	seq    *cellSeq
	tokens []*cellToken
	parent []int // of a tree; −1: the sequence's last token
	drop   bool  // cells that need not be kept are not
}

// step computes some parts together.
func (w *cellWorld) step(parts []cellPart, threads int) {
	s := &cStep{seqs: int32(len(parts)), maskWords: 1}
	first, past, cellAt, cellFrom, cell := []int32{0}, []int32(nil), []int32{0}, []int32(nil), []int32(nil)
	var pos []int32
	var mask []uint64
	var tokens []*cellToken
	for _, p := range parts {
		before, n := len(p.seq.tokens), len(p.tokens)
		for c := len(p.seq.cells); c <= (before+n-1)/cellRows-int(p.seq.from); c++ {
			at := (c + int(p.seq.from)) * cellRows
			if p.drop && at >= before && at+cellRows <= before+n-1 && w.r.IntN(3) > 0 {
				p.seq.cells = append(p.seq.cells, -1)
				continue
			}
			p.seq.cells = append(p.seq.cells, w.free[len(w.free)-1])
			w.free = w.free[:len(w.free)-1]
		}
		for i, k := range p.tokens {
			switch {
			case p.parent == nil && i == 0, p.parent != nil && p.parent[i] < 0:
				k.path = append(slices.Clone(p.seq.tokens), k)
			case p.parent == nil:
				k.path = append(slices.Clone(p.tokens[i-1].path), k)
			default:
				k.path = append(slices.Clone(p.tokens[p.parent[i]].path), k)
			}
			m := uint64(0)
			if p.parent != nil {
				for j := i; j >= 0; j = p.parent[j] {
					m |= 1 << j
				}
			}
			pos, mask = append(pos, int32(len(k.path)-1)), append(mask, m)
		}
		tokens = append(tokens, p.tokens...)
		first, past = append(first, first[len(first)-1]+int32(n)), append(past, int32(before))
		cell = append(cell, p.seq.cells...)
		cellAt, cellFrom = append(cellAt, int32(len(cell))), append(cellFrom, p.seq.from)
	}
	s.tokens = int32(len(tokens))
	s.first, s.past, s.pos, s.mask = &first[0], &past[0], &pos[0], &mask[0]
	s.cellAt, s.cellFrom, s.cell = &cellAt[0], &cellFrom[0], &cell[0]
	rows := make([][]float32, len(w.op.cols))
	for i, cols := range w.op.cols {
		if cols == 0 {
			continue
		}
		rows[i] = alignedFloats(len(tokens) * round16(cols))
		for t, k := range tokens {
			copy(rows[i][t*round16(cols):], k.rows[i])
		}
	}
	cols := w.op.op.Results[0].Type.Cols()
	out := alignedFloats(len(tokens) * round16(cols))
	w.op.run(w.t, w.lib, s, w.base, rows, out, threads)
	for t, k := range tokens {
		k.out = slices.Clone(out[t*round16(cols):][:cols])
	}
}

// accept appends the tokens at some indices of a part to its sequence, and frees what
// the sequence no longer needs.
func (w *cellWorld) accept(p cellPart, path []int) {
	s := p.seq
	before := len(s.tokens)
	for i, n := range path {
		if n != i {
			w.move(s, before+i, before+n)
		}
		s.tokens = append(s.tokens, p.tokens[n])
	}
	done := len(s.tokens)
	keep := max(done-1, 0) / cellRows
	if p.parent != nil {
		keep = min(keep, before/cellRows)
	}
	for ; int(s.from) < keep; s.from++ {
		w.release(s.cells[0])
		s.cells = s.cells[1:]
	}
	for n := (done + cellRows - 1) / cellRows; len(s.cells) > n-int(s.from); {
		w.release(s.cells[len(s.cells)-1])
		s.cells = s.cells[:len(s.cells)-1]
	}
}

func (w *cellWorld) release(id int32) {
	if id >= 0 {
		w.free = append([]int32{id}, w.free...)
	}
}

// move copies a row of a sequence's cells, as ifl_move_in_cells does.
func (w *cellWorld) move(s *cellSeq, to, from int) {
	at := func(r int) []float32 {
		cell := int64(s.cells[r/cellRows-int(s.from)])
		return w.base[cell*(w.op.start+cellRows*w.op.row)+w.op.start+int64(r%cellRows)*w.op.row:][:w.op.row]
	}
	copy(at(to), at(from))
}

// check compares a token's result with Step in float64.
func (w *cellWorld) check(k *cellToken, what string) {
	state := make([]float64, w.op.op.Args[0].State.Fields[0].Elems())
	want := make([]float64, len(k.out))
	size := 0.0
	for i, x := range k.path {
		args := [][]float64{nil}
		for j, row := range x.rows {
			if row == nil {
				args = append(args, w.op.weights[j])
				continue
			}
			f := make([]float64, len(row))
			for c := range row {
				f[c] = float64(row[c])
			}
			args = append(args, f)
		}
		w.op.op.Def.Step(w.op.op, state, ir.StepArgs{Args: args, First: i == 0}, want)
		for _, f := range want {
			size = max(size, math.Abs(f))
		}
	}
	for i, f := range k.out {
		if w.op.silu {
			want[i] *= sigmoid(want[i])
		}
		if d := math.Abs(float64(f) - want[i]); !(d <= 1e-4*(1+size)) {
			w.t.Fatalf("%s: token %d, column %d is %g, want %g (largest %g)\n%s", what, len(k.path)-1, i, f, want[i], size, w.op.text)
		}
	}
}

// random computes random steps: lines, drafts of which a part is accepted, trees.
func (w *cellWorld) random(steps int) {
	r := w.r
	for range steps {
		var parts []cellPart
		for _, s := range w.seqs {
			if r.IntN(3) == 0 || len(s.tokens) > 150 {
				continue
			}
			p := cellPart{seq: s, drop: r.IntN(2) == 0}
			n := pick(r, 1, 1, 1+r.IntN(5), 1+r.IntN(50))
			if r.IntN(3) == 0 {
				n, p.drop = 1+r.IntN(30), false
				p.parent = []int{-1}
				for i := 1; i < n; i++ {
					p.parent = append(p.parent, max(r.IntN(i), r.IntN(i)))
				}
			}
			for range n {
				p.tokens = append(p.tokens, w.token())
			}
			parts = append(parts, p)
		}
		if len(parts) == 0 {
			continue
		}
		w.step(parts, 1+r.IntN(4))
		for _, p := range parts {
			for _, i := range []int{0, r.IntN(len(p.tokens)), len(p.tokens) - 1} {
				w.check(p.tokens[i], fmt.Sprintf("%d tokens after %d, tree %v", len(p.tokens), len(p.seq.tokens), p.parent))
			}
			w.accept(p, w.choose(p))
		}
	}
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

// TestCells: the ops on fixed-size states give what their Step does, and the same bits
// for every division into steps, batch, draft and number of threads.
func TestCells(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cc string, isa ISA) {
		t.Parallel()
		so := library(t, cc, isa, map[string]string{"shim": cellShim})
		lib := map[string]uintptr{}
		for _, name := range []string{"conv", "lru", "scan", "recurrence"} {
			lib[name] = symbol(t, so, "shim_"+name)
		}
		kinds := map[string]func(*rand.Rand) *cellOp{"conv": randomConv, "shift": randomShift, "lru": randomLRU, "scan": randomScan, "recurrence": randomRecurrence}
		for name, make := range kinds {
			n := 4
			if name == "recurrence" {
				n = 24
			}
			if irtest.All() {
				n *= 20
			}
			for i := range n {
				seed := irtest.Seed(t)*1000 + uint64(i)
				r := rand.New(rand.NewPCG(seed, 0x63656c6c))
				op := make(r)
				w := newCellWorld(t, r, op, lib, 3)
				w.random(12)
				for _, s := range w.seqs {
					w.again(s, fmt.Sprintf("%s, IFLOWC_TEST_SEED=%d, case %d", name, irtest.Seed(t), i))
				}
			}
		}
	})
}

// again computes the tokens of a sequence one by one and compares bits.
func (w *cellWorld) again(s *cellSeq, what string) {
	one := newCellWorld(w.t, w.r, w.op, w.lib, 1)
	for i, k := range s.tokens {
		p := cellPart{seq: one.seqs[0], tokens: []*cellToken{{rows: k.rows}}}
		one.step([]cellPart{p}, 1)
		one.accept(p, []int{0})
		for c, f := range p.tokens[0].out {
			if math.Float32bits(f) != math.Float32bits(k.out[c]) {
				w.t.Fatalf("%s: token %d, column %d is %g alone and was %g\n%s", what, i, c, f, k.out[c], w.op.text)
			}
		}
	}
}
