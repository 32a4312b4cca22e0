package ctext

import (
	"strconv"

	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
)

// AttentionFields are the C expressions of the arguments of attention on every
// target; NULL if absent.
type AttentionFields struct {
	Step, State, Scale, Window, Alibi, Sinks string
	Relative, Buckets                        string // table of the relative bias, and the buckets of distances
	RelativePitch                            int
	RelKeys, RelQueries                      string // keys and queries of relative positions
	KeysPitch, QueriesPitch                  int
}

// Attention writes the tables of an attention and returns the C expressions of its
// arguments.
func (s *Symbols) Attention(w *Writer, r *layout.Region, a *layout.Attention) (f AttentionFields, err error) {
	f = AttentionFields{Step: "s", Scale: Float(a.Scale), Window: strconv.Itoa(a.Windows[0]), Alibi: "NULL", Sinks: "NULL", Relative: "NULL", Buckets: "NULL", RelKeys: "NULL", RelQueries: "NULL"}
	if f.State, err = s.State(a.StateArg, r.Loop); err != nil {
		return f, err
	}
	if len(a.Alibi) > 0 {
		f.Alibi = w.Table("float", "slopes", Floats(a.Alibi))
	}
	if len(a.Windows) > 1 && r.Loop != nil {
		f.Window = w.Table("int32_t", "windows", Ints(a.Windows)) + "[" + Iteration(r.Loop) + "]"
	}
	if a.Sinks != nil {
		if f.Sinks, err = s.Weight(*a.Sinks, r.Loop); err != nil {
			return f, err
		}
	}
	if b := a.Relative; b != nil {
		for _, t := range []struct {
			arg   *ir.Arg
			name  *string
			pitch *int
		}{{b.Table, &f.Relative, &f.RelativePitch}, {a.RelKeys, &f.RelKeys, &f.KeysPitch}, {a.RelQueries, &f.RelQueries, &f.QueriesPitch}} {
			if t.arg == nil {
				continue
			}
			if *t.name, err = s.Weight(*t.arg, r.Loop); err != nil {
				return f, err
			}
			*t.pitch = layout.Round16(t.arg.Type.Cols())
		}
		f.Buckets = w.Table("int16_t", "buckets", Ints(b.Buckets))
	}
	if a.Cross {
		w.P("const ifl_step source = ifl_source_step(c, s); /* the rows of the sequence's source, all of them */")
		f.Step = "&source"
	}
	return f, nil
}
