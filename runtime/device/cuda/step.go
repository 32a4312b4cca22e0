//go:build unix

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// stepHeader mirrors struct ifl_step of ifl_step.h, with GPU addresses.
type stepHeader struct {
	abi, entry            int32
	tokens, outRows, seqs int32
	maskWords             int32
	id, pos, seq, slot    pointer
	types                 pointer
	outRow, first, past   pointer
	pageAt, page          pointer
	mask, adapter         pointer
	out                   [device.MaxOut]pointer
	xpageAt, xpage        pointer
	xrows                 pointer
	cellAt, cellFrom      pointer
	cell                  pointer
	best, topK, top       pointer // [out_rows][parts], [out_rows], [out_rows][parts][manifest.TopLogits]
}

// stepBytes returns the size of the header and the arrays of the largest step, each
// aligned to 64 bytes.
func (m *model) stepBytes() int64 {
	pages := int64(max(m.cfg.Pages, m.cfg.MaxPages))
	words := int64(m.cfg.MaxTokens) * (5 + 2*int64(m.cfg.MaskWords))
	words += 2*int64(m.cfg.MaxOutRows) + 8*int64(m.cfg.MaxSeqs+1) + 2*pages + int64(m.cfg.MaxCells)
	return int64(unsafe.Sizeof(stepHeader{})) + words*4 + 19*64
}

// A packer lays out the arrays of a step one after another.
type packer struct {
	to   []byte
	base pointer
	at   int64
}

func put[T int32 | uint64](p *packer, list []T) pointer {
	p.at = round64(p.at)
	at := p.at
	p.at += int64(copy(p.to[at:], bytesOf(list)))
	return p.base + pointer(at)
}

// stage packs a step into the staging memory and returns its size.
func (m *model) stage(s *device.Step) int64 {
	p := &packer{to: m.staging.step.Bytes, base: m.memory.step, at: int64(unsafe.Sizeof(stepHeader{}))}
	h := stepHeader{
		abi: device.ABI, entry: int32(s.Graph), tokens: int32(s.Tokens), outRows: int32(s.OutRows), seqs: int32(s.Seqs),
		id: put(p, s.ID[:s.Tokens]), pos: put(p, s.Pos[:s.Tokens]), seq: put(p, s.Seq[:s.Tokens]), slot: put(p, s.Slot[:s.Tokens]),
		outRow: put(p, s.OutRow[:s.OutRows]), first: put(p, s.First[:s.Seqs+1]), past: put(p, s.Past[:s.Seqs]),
	}
	if m.paged {
		h.pageAt, h.page = put(p, s.PageAt[:s.Seqs+1]), put(p, s.Page[:s.PageAt[s.Seqs]])
	}
	if m.celled {
		used := min(len(s.Cell), int(max(0, slices.Max(s.CellAt[:s.Seqs+1])))) // check bounds only sequences with tokens
		h.cellAt, h.cellFrom, h.cell = put(p, s.CellAt[:s.Seqs+1]), put(p, s.CellFrom[:s.Seqs]), put(p, s.Cell[:used])
	}
	if s.Adapted {
		h.adapter = put(p, s.Adapter[:s.Seqs])
	}
	if s.Typed {
		h.types = put(p, s.Types[:s.Tokens])
	}
	if s.Masked {
		h.maskWords, h.mask = int32(s.MaskWords), put(p, s.Mask[:s.Tokens*s.MaskWords])
	}
	if s.Graph == m.Plan.Cross {
		h.xpageAt, h.xpage, h.xrows = put(p, s.XPageAt[:s.Seqs+1]), put(p, s.XPage[:s.XPageAt[s.Seqs]]), put(p, s.XRows[:s.Seqs])
	}
	h.best, h.topK, h.top = m.memory.best, put(p, s.TopK[:s.OutRows]), m.memory.top
	copy(h.out[:], m.memory.out)
	copy(p.to, unsafe.Slice((*byte)(unsafe.Pointer(&h)), unsafe.Sizeof(h)))
	return p.at
}

// Submit computes the step before it returns: it copies the inputs, launches the
// kernels and copies the results.
func (m *model) Submit(s *device.Step) func() error { return device.Ended(m.step(s)) }

func (m *model) step(s *device.Step) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed != nil {
		return fmt.Errorf("%s failed in an earlier step (%w); restart the program", m.GPU.Name, m.failed)
	}
	if err := m.check(s); err != nil || s.Tokens == 0 {
		return err
	}
	if err := m.GPU.enter(); err != nil {
		return err
	}
	defer m.GPU.leave()
	if err := m.run(s); errors.Is(err, device.ErrComm) {
		return err
	} else if err != nil {
		m.failed = err
		return fmt.Errorf("%s: a step of %d tokens failed: %w", m.GPU.Name, s.Tokens, err)
	}
	return nil
}

func (m *model) run(s *device.Step) error {
	if err := errors.Join(m.flushMoves(&m.moves), m.flushMoves(&m.cellMoves)); err != nil {
		return err
	}
	n := m.stage(s)
	if err := m.GPU.toDevice(m.memory.step, m.staging.step.Bytes[:n], m.stream); err != nil {
		return err
	}
	for _, r := range m.Manifest.Graphs[s.Graph].Reads {
		if s.InPlace {
			break
		}
		rows := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s.Out[r.At]))), 4*s.Tokens*r.Cols)
		if err := m.GPU.toDevice(m.memory.out[r.At], rows, m.stream); err != nil {
			return err
		}
	}
	if err := m.compute(shape{s.Graph, s.Tokens, s.OutRows, s.Seqs, m.contextOf(s), s.Adapted}); err != nil {
		return err
	}
	if err := m.collect(s); err != nil {
		return err
	}
	if err := errors.Join(m.GPU.wait(m.stream), m.transport.failed()); err != nil {
		return err
	}
	m.moves.reset()
	m.cellMoves.reset()
	m.deliver(s)
	return nil
}

var errRange = errors.New("a token id, page, cell or row of the step is out of range")

// check returns an error for a step that would make a kernel access memory out of
// bounds. ifl_check of ifl_main.h is the C version.
func (m *model) check(s *device.Step) error {
	if s.Graph < 0 || s.Graph >= len(m.Plan.Graphs) || s.Tokens < 0 || s.Tokens > m.cfg.MaxTokens ||
		s.OutRows < 0 || s.OutRows > m.cfg.MaxOutRows || s.Seqs < 0 || s.Seqs > m.cfg.MaxSeqs {
		return fmt.Errorf("bug: a step of %d tokens, %d output rows and %d sequences exceeds the model's maximum", s.Tokens, s.OutRows, s.Seqs)
	}
	for t := range s.Tokens {
		q, last := s.Seq[t], s.Slot[t]
		if s.Masked { // a token of a tree attends to rows up to its position
			last = max(last, s.Pos[t])
		}
		if s.ID[t] < 0 || s.Pos[t] < 0 || s.Slot[t] < 0 || q < 0 || int(q) >= s.Seqs || int32(t) < s.First[q] || int32(t) >= s.First[q+1] ||
			m.paged && last/device.PageRows >= s.PageAt[q+1]-s.PageAt[q] {
			return errRange
		}
		if m.celled && !m.Manifest.Graphs[s.Graph].Follows() && (int64(s.Slot[t]) != int64(s.Past[q])+int64(t)-int64(s.First[q]) || int32(t)+1 == s.First[q+1] && !m.cellsHold(s, q, s.Slot[t])) {
			return errRange
		}
	}
	for _, w := range s.OutRow[:s.OutRows] {
		if w < 0 || int(w) >= s.Tokens {
			return errRange
		}
	}
	return errors.Join(m.checkLookups(s), m.checkPages(s))
}

func (m *model) checkLookups(s *device.Step) error {
	for _, l := range m.Plan.Lookups {
		list := map[string][]int32{"id": s.ID, "pos": s.Pos, "types": s.Types}[l.Input]
		if l.Entry != s.Graph {
			continue
		}
		if l.Input == "types" && !s.Typed {
			return errRange
		}
		for _, x := range list[:s.Tokens] {
			if x < 0 || int(x) >= l.Below {
				return errRange
			}
		}
	}
	return nil
}

// cellsHold is ifl_check_cells: it reports whether the cells of sequence q are valid and
// hold rows up to last, and those with rows of earlier steps or of a tree are kept.
func (m *model) cellsHold(s *device.Step, q, last int32) bool {
	if s.CellAt == nil {
		return false
	}
	from, to, first := s.CellAt[q], s.CellAt[q+1], s.CellFrom[q]
	if from < 0 || to < from || int(to) > len(s.Cell) || first < 0 || first > last/device.CellRows ||
		first > 0 && int64(first)*device.CellRows >= int64(s.Past[q]) || last/device.CellRows-first >= to-from {
		return false
	}
	tree := s.Masked && s.Mask[int(s.First[q])*s.MaskWords]&1 != 0
	for i, cell := range s.Cell[from:to] {
		row := device.CellRows * (int64(first) + int64(i))
		if cell < -1 || int(cell) >= m.cfg.Cells || cell < 0 && (tree || row < int64(s.Past[q])) {
			return false
		}
	}
	return true
}

func (m *model) checkPages(s *device.Step) error {
	var lists []struct{ at, page []int32 }
	if m.paged {
		lists = append(lists, struct{ at, page []int32 }{s.PageAt, s.Page})
	}
	if s.Graph == m.Plan.Cross {
		lists = append(lists, struct{ at, page []int32 }{s.XPageAt, s.XPage})
	}
	for q := range s.Seqs {
		if s.First[q] < 0 || s.First[q+1] < s.First[q] || s.Past[q] < 0 || s.Adapted && !m.loaded(s.Adapter[q]) {
			return errRange
		}
		if m.paged && int64(s.Past[q]) > device.PageRows*int64(s.PageAt[q+1]-s.PageAt[q]) {
			return errRange
		}
		if s.Graph == m.Plan.Cross && (s.XRows[q] < 1 || (s.XRows[q]+device.PageRows-1)/device.PageRows > s.XPageAt[q+1]-s.XPageAt[q]) {
			return errRange
		}
		for _, l := range lists {
			if l.at[q] < 0 || l.at[q+1] < l.at[q] || int(l.at[q+1]) > len(l.page) {
				return errRange
			}
			for _, p := range l.page[l.at[q]:l.at[q+1]] {
				if p < 0 || int(p) >= m.cfg.Pages {
					return errRange
				}
			}
		}
	}
	return nil
}

// rowsOf returns a shape's number of rows for a role.
func (s shape) rowsOf(role string) int {
	switch role {
	case "tokens":
		return s.tokens
	case "out_rows":
		return s.outRows
	case "sequences":
		return s.seqs
	}
	return 1
}

// grid returns the grid of a launch.
func (m *model) grid(l *manifest.CUDALaunch, s shape) (g [3]int) {
	for i, d := range l.Grid {
		switch g[i] = s.blocks(d); {
		case d.Splits:
			g[i] = m.splits(g[i], s.context)
		case d.Parts > 0:
			g[i] = d.PartsOf(g[0]*g[1], m.GPU.Processors)
		}
	}
	return g
}

// blocks returns the number of blocks in a dimension, or in one part of the context.
func (s shape) blocks(d manifest.CUDADim) int { return d.Blocks(s.rowsOf(d.Rows), s.seqs) }

// runs reports whether the launch runs for the shape.
func (s shape) runs(l *manifest.CUDALaunch) bool {
	if l.Rows == "" {
		return true
	}
	rows := s.rowsOf(l.Rows) * max(l.Times, 1)
	if l.Each {
		rows = (rows + max(s.seqs, 1) - 1) / max(s.seqs, 1)
	}
	return rows >= l.From && (l.To == 0 || rows <= l.To)
}
