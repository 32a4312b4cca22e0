package interp

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// maxSlot bounds the rows of a sequence, so that a wrong slot is an error and
// not an allocation.
const maxSlot = 1 << 20

// States hold the rows that sequences have written so far. They grow as
// needed. The zero value is not usable; see NewStates.
type States struct {
	rows  map[stateKey][]*stateRow // by slot; nil where nothing was written
	lens  map[int]int              // rows of each sequence that later steps see
	src   map[int]source           // what each sequence has to cross over to
	steps int                      // steps run so far
}

// A source is what one step of an encoder left for a sequence.
type source struct {
	rows int
	step int // the step that wrote them
}

type stateKey struct {
	state string // name and index
	seq   int
}

type stateRow struct {
	fields [][]float64
	pos    int // position of the token that wrote it
	step   int // step that wrote it
	token  int // token of that step
}

// NewStates holds no rows.
func NewStates() *States {
	return &States{rows: map[stateKey][]*stateRow{}, lens: map[int]int{}, src: map[int]source{}}
}

// Len returns the number of rows of a sequence that the next step sees.
func (st *States) Len(seq int) int { return st.lens[seq] }

// Truncate makes the next step see only the first n rows of a sequence, as
// after rejected speculation.
func (st *States) Truncate(seq, n int) { st.lens[seq] = min(n, st.lens[seq]) }

// SourceLen returns the number of rows of a sequence's source, which attention with
// the flag cross sees.
func (st *States) SourceLen(seq int) int { return st.src[seq].rows }

// commit makes the rows of a step seen by later ones. A step on sources
// replaces the source of each of its sequences.
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
	row := &stateRow{fields: fields, pos: s.Pos[t], step: st.steps, token: t}
	for i, f := range v.State.Fields {
		width := f.Shape[len(f.Shape)-1]
		for at := 0; at < len(fields[i]); at += width {
			if err := ops.RoundState(f.Elem, fields[i][at:at+width]); err != nil {
				return fmt.Errorf("state %s: field %s: %w", name, f.Name, err)
			}
		}
	}
	key := stateKey{name, s.Seq[t]}
	rows := st.rows[key]
	for len(rows) <= s.Slot[t] {
		rows = append(rows, nil)
	}
	rows[s.Slot[t]] = row
	st.rows[key] = rows
	return nil
}

// A view says which rows of its sequence a token sees.
type view struct {
	causal, cross bool
	window        int
	source        bool // the state is a source state
}

// visible lists the rows that token t sees, in order of slots.
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

// sees reports whether a token sees a row by their positions.
func (v view) sees(own, row int) bool {
	switch {
	case v.causal && row > own:
		return false
	case v.window == 0:
		return true
	case v.causal:
		return row > own-v.window
	}
	return row >= own-v.window && row <= own+v.window
}
