//go:build unix

package engine

import "github.com/iflowc/iflowc/runtime/device"

// Fixed-size states are kept in cells. Cell i of a sequence belongs to its rows 16i …
// 16i+15. It holds its start, which is the states before the first of these rows, and
// what each of the rows contributes to the states after it. A full cell never changes,
// so forks and equal prefixes share it. A step reads the cell of the row before its
// first one, and computes the starts of the cells after that. So between two steps a
// sequence needs one cell.
const cellRows = device.CellRows

// takeCells allocates the cells of a sequence's next step of n tokens and the drafted
// nodes after them. Of the new ones it keeps those that a later step may start from: the
// cell of the last token, and those after it.
func (e *Engine) takeCells(s *sequence, n, drafted int) (ok bool) {
	if !e.celled {
		return true
	}
	keep, last := (s.done+n-1)/cellRows, (s.done+n+drafted-1)/cellRows
	for i := s.cellFrom + len(s.cells); i <= last; i++ {
		if i < keep {
			s.cells = append(s.cells, -1)
		} else if s.cells, ok = e.cells.take(s.cells, 1); !ok {
			return false
		}
	}
	return true
}

// takeCached allocates the cells of the next n tokens that the prefix cache wants, if
// there are cells for them.
func (e *Engine) takeCached(s *sequence, n int) {
	if !e.celled || !e.opt.Prefix {
		return
	}
	for _, row := range [...]int{s.branch, s.boundary()} {
		i := row/cellRows - 1 - s.cellFrom
		if row <= s.done || row > s.done+n || s.cells[i] >= 0 {
			continue
		}
		if one, ok := e.cells.take(nil, 1); ok {
			s.cells[i] = one[0]
		}
	}
}

// boundary returns the last end of a page from which another sequence with the same
// tokens could continue.
func (s *sequence) boundary() int { return (len(s.tokens) - 1) / pageRows * pageRows }

// settleCells frees the cells that no later step of a sequence needs, except those of
// its computed draft, and adds to the prefix cache those that it wants.
func (e *Engine) settleCells(s *sequence) {
	if !e.celled || s.done == 0 {
		return
	}
	e.cacheCells(s)
	from := min((s.done-1)/cellRows, s.started) // a step starts from a cell whose start is stored
	from = min(from, max(0, s.done-1-e.opt.Rewind)/cellRows)
	for i := (s.done-1)/cellRows - s.cellFrom; i >= 0; i-- {
		if s.cells[i] < 0 {
			from = max(from, s.cellFrom+i+1)
			break
		}
	}
	if n := from - s.cellFrom; n > 0 {
		e.cells.free(s.cells[:n])
		s.cells, s.cellFrom = append(s.cells[:0], s.cells[n:]...), from
	}
	if s.drafted == 0 {
		e.trimCells(s)
	}
}

// trimCells frees the cells after that of the last computed token.
func (e *Engine) trimCells(s *sequence) {
	n := max(0, (s.done+cellRows-1)/cellRows-s.cellFrom)
	if n < len(s.cells) {
		e.cells.free(s.cells[n:])
		s.cells = s.cells[:n]
	}
}

// dropCells frees all cells of a sequence.
func (e *Engine) dropCells(s *sequence) {
	e.cells.free(s.cells)
	s.cells, s.cellFrom, s.started = s.cells[:0], 0, 0
}

// cacheCells adds a sequence's cells to the prefix cache that end where a page ends: at
// the branch and the last boundary of a prompt, and wherever decoding passes one. A cell
// of decoding replaces the one before: a sequence of the same text continues from the
// last one.
func (e *Engine) cacheCells(s *sequence) {
	if !e.opt.Prefix {
		return
	}
	for i, cell := range s.cells {
		row := (s.cellFrom + i + 1) * cellRows
		if row > s.done || s.cellFrom+i > s.started {
			return
		}
		wanted := s.decoding || row == s.branch || row >= s.boundary()
		if cell < 0 || row%pageRows != 0 || !wanted {
			continue
		}
		number := e.pages.cache.blocks[s.pages[row/pageRows-1]].number
		if _, ok := e.cells.cache.find[number]; ok || number == 0 || e.cells.cache.blocks[cell].number != 0 {
			continue
		}
		e.cells.cache.add(cell, number)
		if s.decoding {
			e.cells.forget(s.passed)
			s.passed = number
		}
	}
}

// forkCells gives a copy of a sequence its cells: it shares the full ones and copies the
// last one. It returns false if no cell is free.
func (e *Engine) forkCells(c, s *sequence) (ok bool) {
	if !e.celled || s.done == 0 {
		return true
	}
	full := s.done/cellRows - s.cellFrom
	c.cells, c.cellFrom, c.started = e.cells.share(nil, s.cells[:full]), s.cellFrom, s.started
	if s.done%cellRows == 0 {
		return true
	}
	if c.cells, ok = e.cells.take(c.cells, 1); ok {
		e.ctx.CopyCell(c.cells[full], s.cells[full])
	}
	return ok
}

// cellsShort reports whether fewer cells are free than the next step may need.
func (e *Engine) cellsShort() bool {
	if !e.celled {
		return false
	}
	need := 0
	for _, s := range e.seqs {
		need += (s.done+s.draft.Len())/cellRows + 1 - (s.done+cellRows-1)/cellRows
		if e.opt.Prefix && s.done == 0 {
			need++ // it may reuse a cell
		}
	}
	return e.cells.unused() < need
}

// minCells returns the number of cells that one sequence needs: those of a draft tree
// that was computed, and one more for the next token.
func (o *Options) minCells() int { return (o.Draft+o.Rewind+cellRows-1)/cellRows + 2 }

// needCells returns the number of cells that MaxSeqs sequences need at most. Each takes
// two around the end of a cell. The rows of a computed draft and of the next one need
// more, but both together have no more rows than two steps have output rows.
func (o *Options) needCells() int {
	drafted := min(o.MaxSeqs*o.Draft, o.MaxOutRows)
	return max(o.minCells(), o.MaxSeqs*(2+(o.Rewind+cellRows-1)/cellRows)+(2*drafted+cellRows-1)/cellRows)
}

// cachedCells returns the number of further cells that the prefix cache gets by default.
// A sequence leaves two: where its prompt ends, and where its last page ends. So there
// is room for those of as many earlier sequences as there are live ones, and for a few
// conversations that a single client switches between.
func (o *Options) cachedCells() int { return max(2*o.MaxSeqs, 8) }

// stepCells returns how many cells all sequences of a step list at most.
func (o *Options) stepCells() int {
	return o.MaxSeqs*((o.Draft+o.Rewind)/cellRows+4) + o.MaxTokens/cellRows
}
