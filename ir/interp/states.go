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
	steps int                      // steps run so far
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
	return &States{rows: map[stateKey][]*stateRow{}, lens: map[int]int{}}
}

// Len is the number of rows of a sequence that the next step sees.
func (st *States) Len(seq int) int { return st.lens[seq] }

// Truncate makes the next step see only the first n rows of a sequence, as
// after rejected speculation.
func (st *States) Truncate(seq, n int) { st.lens[seq] = min(n, st.lens[seq]) }

// commit makes the rows of a step seen by later ones.
func (st *States) commit(s *Step) {
	for t, q := range s.Seq {
		st.lens[q] = max(st.lens[q], s.Slot[t]+1)
	}
	st.steps++
}

// write rounds and stores the row of token t.
func (st *States) write(v *ir.Value, name string, s *Step, t int, fields [][]float64) error {
	row := &stateRow{fields: fields, pos: s.Pos[t], step: st.steps, token: t}
	for i, f := range v.State.Fields {
		width := f.Shape[len(f.Shape)-1]
		for at := 0; at < len(fields[i]); at += width {
			if err := ops.Round(f.Elem, fields[i][at:at+width]); err != nil {
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

// visible lists the rows that token t sees, in order of slots.
func (st *States) visible(name string, s *Step, t int, causal bool, window int) []*stateRow {
	var out []*stateRow
	for slot, r := range st.rows[stateKey{name, s.Seq[t]}] {
		switch {
		case r == nil:
			continue
		case r.step == st.steps: // written in this step
			if s.Mask != nil && !s.Mask[t][r.token] {
				continue
			}
		case slot >= st.lens[s.Seq[t]]:
			continue
		}
		if causal && r.pos > s.Pos[t] || window > 0 && r.pos <= s.Pos[t]-window {
			continue
		}
		out = append(out, r)
	}
	return out
}
