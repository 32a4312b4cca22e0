package interp

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// maxSlot is the maximum number of rows of a sequence. A larger slot is an error instead
// of a huge allocation.
const maxSlot = 1 << 20

// States holds the rows that sequences have written. It grows as needed. Create it with
// NewStates.
type States struct {
	rows  map[stateKey][]*stateRow // by slot; nil if the slot is empty
	lens  map[int]int              // visible rows of each sequence
	fixed map[stateKey]*fixedState
	src   map[int]source // source of each sequence for cross-attention
	steps int            // number of completed steps
}

// A source is the result of an encoder step for one sequence.
type source struct {
	rows int
	step int // step that wrote the rows
}

type stateKey struct {
	state string // name and index
	seq   int
}

type stateRow struct {
	fields [][]float64
	pos    int // position of the token that wrote it
	step   int // step that wrote it
	token  int // index of the token in that step
}

// NewStates returns empty States.
func NewStates() *States {
	return &States{rows: map[stateKey][]*stateRow{}, fixed: map[stateKey]*fixedState{}, lens: map[int]int{}, src: map[int]source{}}
}

// Len returns the number of rows of a sequence that the next step sees.
func (st *States) Len(seq int) int { return st.lens[seq] }

// Truncate limits the visible rows of a sequence to the first n, for example after
// rejected drafts.
func (st *States) Truncate(seq, n int) { st.lens[seq] = min(n, st.lens[seq]) }

// SourceLen returns the number of rows of a sequence's source, which cross-attention
// reads.
func (st *States) SourceLen(seq int) int { return st.src[seq].rows }

// commit makes the rows of a step visible to later steps. A step on sources replaces the
// source of each of its sequences.
func (st *States) commit(s *Step, onSources bool) {
	for t, q := range s.Seq {
		if !onSources {
			st.lens[q] = max(st.lens[q], s.Slot[t]+1)
			continue
		}
		if st.src[q].step != st.steps || st.src[q].rows <= s.Slot[t] {
			st.src[q] = source{s.Slot[t] + 1, st.steps}
		}
	}
	st.steps++
}

// write rounds and stores the row of token t.
func (st *States) write(v *ir.Value, name string, s *Step, t int, fields [][]float64) error {
	for i, f := range v.State.Fields {
		width := f.Shape[len(f.Shape)-1]
		for at := 0; at < len(fields[i]); at += width {
			if err := ops.RoundState(f.Elem, fields[i][at:at+width]); err != nil {
				return fmt.Errorf("state %s: field %s: %w", name, f.Name, err)
			}
		}
	}
	st.put(name, s, t, fields)
	return nil
}

// put stores the row of token t.
func (st *States) put(name string, s *Step, t int, fields [][]float64) {
	key := stateKey{name, s.Seq[t]}
	rows := st.rows[key]
	for len(rows) <= s.Slot[t] {
		rows = append(rows, nil)
	}
	rows[s.Slot[t]] = &stateRow{fields: fields, pos: s.Pos[t], step: st.steps, token: t}
	st.rows[key] = rows
}

// A view describes which rows of its sequence a token sees.
type view struct {
	causal, cross bool
	window        int  // negative: a chunk
	source        bool // the state is a source state
	global        int  // the first positions, which are visible to all
}

// visible returns the rows that token t sees, in slot order.
func (st *States) visible(name string, s *Step, t int, v view) []*stateRow {
	var out []*stateRow
	seq := s.Seq[t]
	for slot, r := range st.rows[stateKey{name, seq}] {
		switch {
		case r == nil:
			continue
		case v.cross:
			if r.step == st.src[seq].step && slot < st.src[seq].rows {
				out = append(out, r)
			}
			continue
		case r.step == st.steps: // written in this step
			if s.Mask != nil && !s.Mask[t][r.token] {
				continue
			}
		case v.source || slot >= st.lens[seq]:
			continue
		}
		if v.sees(s.Pos[t], r.pos) {
			out = append(out, r)
		}
	}
	return out
}

// sees reports whether a token at position own sees a row at position row.
func (v view) sees(own, row int) bool {
	switch {
	case v.causal && row > own:
		return false
	case v.window == 0 || row < v.global:
		return true
	case v.window < 0:
		return row/-v.window == own/-v.window
	case v.causal:
		return row > own-v.window
	}
	return row >= own-v.window && row <= own+v.window
}
