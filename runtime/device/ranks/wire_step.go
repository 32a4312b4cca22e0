//go:build unix

package ranks

import (
	"errors"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/device"
)

// stepHead is the number of words before a step's arrays.
const stepHead = 10

// Flags in a step's head.
const (
	hasTypes = 1
	hasCells = 2
	adapted  = 4
	chosen   = 8 // the words of appendChoices follow
)

// appendStep appends a step in the format for other processes: its counts and the used
// parts of its arrays, as 32-bit words. readStep reads this format. choices tells whether
// another rank chooses tokens.
func appendStep(w []int32, s *device.Step, choices bool) []int32 {
	n, q := s.Tokens, s.Seqs
	pages, xpages := s.PageAt[q], s.XPageAt[q]
	flags, words := int32(0), 0
	if s.Typed {
		flags |= hasTypes
	}
	if s.Masked {
		words = s.MaskWords
	}
	if s.Adapted {
		flags |= adapted
	}
	if choices = choices && chooses(s); choices {
		flags |= chosen
	}
	cells := int32(0)
	if s.CellAt != nil {
		flags |= hasCells
		cells = s.CellAt[q]
	}
	w = append(w, int32(s.Graph), int32(n), int32(s.OutRows), int32(q), flags, int32(words), pages, xpages, cells, s.KVPages)
	for _, a := range [][]int32{s.ID[:n], s.Pos[:n], s.Seq[:n], s.Slot[:n]} {
		w = append(w, a...)
	}
	if s.Typed {
		w = append(w, s.Types[:n]...)
	}
	for _, a := range [][]int32{s.OutRow[:s.OutRows], s.First[:q+1], s.Past[:q], s.PageAt[:q+1], s.Page[:pages], s.XPageAt[:q+1], s.XPage[:xpages], s.XRows[:q]} {
		w = append(w, a...)
	}
	if s.Adapted {
		w = append(w, s.Adapter[:q]...)
	}
	if s.CellAt != nil {
		w = append(append(append(w, s.CellAt[:q+1]...), s.CellFrom[:q]...), s.Cell[:cells]...)
	}
	w = append(w, maskWords(s, n*words)...)
	if choices {
		w = appendChoices(w, s)
	}
	return w
}

// maskWords returns the first n words of a step's mask as pairs of 32-bit words.
func maskWords(s *device.Step, n int) []int32 {
	return unsafe.Slice((*int32)(device.Pointer(s.Mask[:n])), 2*n)
}

// readStep reads a step from rank 0 into the arrays of s.
func readStep(s *device.Step, w []int32) (err error) {
	if len(w) < stepHead {
		return errors.New("a step from rank 0 is too short")
	}
	graph, n, rows, q, flags, words, pages, xpages, cells, kv := w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9]
	for _, c := range []struct {
		n    int32
		most int
	}{{n, len(s.ID)}, {rows, len(s.OutRow)}, {q, len(s.Past)}, {pages, len(s.Page)}, {xpages, len(s.XPage)}, {cells, len(s.Cell)}} {
		if c.n < 0 || int(c.n) > c.most || words != 0 && int(words) != s.MaskWords {
			return errors.New("a step from rank 0 exceeds the sizes that this rank was started with")
		}
	}
	w = w[stepHead:]
	take := func(into []int32, n int32) {
		if int(n) > len(w) || int(n) > len(into) {
			err = errors.New("a step from rank 0 is truncated")
			return
		}
		copy(into, w[:n])
		w = w[n:]
	}
	for _, a := range [][]int32{s.ID, s.Pos, s.Seq, s.Slot} {
		take(a, n)
	}
	if flags&hasTypes != 0 {
		take(s.Types, n)
	}
	take(s.OutRow, rows)
	take(s.First, q+1)
	take(s.Past, q)
	take(s.PageAt, q+1)
	take(s.Page, pages)
	take(s.XPageAt, q+1)
	take(s.XPage, xpages)
	take(s.XRows, q)
	if flags&adapted != 0 {
		take(s.Adapter, q)
	}
	if flags&hasCells != 0 {
		take(s.CellAt, q+1)
		take(s.CellFrom, q)
		take(s.Cell, cells)
	}
	if words > 0 {
		take(maskWords(s, len(s.Mask)), 2*n*words)
	}
	for i := range rows {
		s.Chosen[i] = device.Read
	}
	if err == nil && flags&chosen != 0 {
		w, err = readChoices(s, int(rows), w)
	}
	if err == nil && len(w) > 0 {
		err = errors.New("a step from rank 0 is too long")
	}
	s.Graph, s.Tokens, s.OutRows, s.Seqs, s.KVPages = int(graph), int(n), int(rows), int(q), kv
	s.Typed, s.Adapted, s.Masked = flags&hasTypes != 0, flags&adapted != 0, words > 0
	return err
}
