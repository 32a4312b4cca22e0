package passes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// TestViews: the parts of a split stay in the slot of its argument if they are whole
// vectors and nothing needs rows of their own.
func TestViews(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		views      bool
	}{
		{"whole vectors", "%p, %q = split %x {sizes=[16, 48]}\n%y = concat %p, %q\nyield %y", true},
		{"other widths", "%p, %q = split %x {sizes=[24, 40]}\n%y = concat %p, %q\nyield %y", false},
		{"interleaved", "%p, %q = split %x {sizes=[32, 32], panel=16}\n%y = concat %p, %q\nyield %y", false},
		{"of a view", "%a, %b = split %x {sizes=[48, 16]}\n%p, %q = split %a {sizes=[16, 32]}\n%y = concat %p, %q, %b\nyield %y", true},
		{"yielded", "%p, %q = split %x {sizes=[32, 32]}\n%y = add %p, %q\nyield %p, %y", false},
		{"carried", "%p, %q = split %x {sizes=[32, 32]}\n%y = repeat 0..2 (%c = %p) {\n%d = add %c, %q\nyield %d\n}\nyield %y", false},
		{"carried on", "%y = repeat 0..2 (%c = %x) {\n%p, %q = split %c {sizes=[32, 32]}\n%s = concat %q, %p\n%d = tanh %s\nyield %d\n}\nyield %y", true},
		{"exchanged", "%p, %q = split %x {sizes=[32, 32]}\n%r = all_reduce %p {ranks=2}\n%y = add %q, %r\nyield %y", false},
	} {
		m := planned(t, c.body)
		g := m.Graphs[0]
		slots := slotsOf(g)
		for _, op := range g.FindOps("split") {
			for _, r := range op.Results {
				if got := slots[r] == slots[op.Args[0].Value]; got != c.views {
					t.Errorf("%s: %s in the slot of %s: %v, expected %v\n%s", c.name, r, op.Args[0], got, c.views, m)
				}
			}
		}
		checkSlots(t, c.name, g)
	}
}

// TestViewsKeepTheirSlot: nothing is written over a value as long as a view of it is
// read: not by an op that may overwrite what it reads, nor by a repeat that carries it.
func TestViewsKeepTheirSlot(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"%p, %q = split %x {sizes=[32, 32]}\n%n = tanh %x\n%o = tanh %p\n%r = concat %o, %q\n%y = add %n, %r\nyield %y",
		"%p, %q = split %x {sizes=[32, 32]}\n%n = repeat 0..2 (%o = %x) {\n%r = tanh %o\nyield %r\n}\n%s = concat %q, %p\n%y = add %n, %s\nyield %y",
	} {
		m := planned(t, body)
		slots := map[string]int{}
		for v, s := range slotsOf(m.Graphs[0]) {
			slots[v.Name] = s
		}
		if slots["p"] != slots["x"] || slots["q"] != slots["x"] {
			t.Errorf("%%p and %%q are no views\n%s", m)
		}
		for _, name := range []string{"n", "o", "r"} {
			if slots[name] == slots["x"] {
				t.Errorf("%%%s is written over %%x, of which %%q is a view\n%s", name, m)
			}
		}
		checkSlots(t, body, m.Graphs[0])
	}
}

// planned is a module that reads %x, 64 columns, after PlanBuffers.
func planned(t *testing.T, body string) *ir.Module {
	t.Helper()
	m, err := ir.Parse("views.ir", []byte("module m {\nweight @w : f32[40, 64] from \"w\"\ngraph g (T tokens) {\ninput %ids : i32[T]\n%e = embed %ids, @w\n%x = rmsnorm %e {eps=0.1}\n"+body+"\n}\n}"), ops.Table)
	if err == nil {
		err = ir.Verify(m)
	}
	if err == nil {
		err = planBuffers(nil, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// slotsOf returns the slots of a graph's values.
func slotsOf(g *ir.Graph) map[*ir.Value]int {
	slots := map[*ir.Value]int{}
	for op := range g.All() {
		note := op.Annotations.Get("slot")
		if note == nil {
			continue
		}
		for i, r := range op.Results {
			slot := 0
			fmt.Sscan(note.Args[i].Val, &slot)
			slots[r] = slot
			if op.Def.Name == "repeat" {
				slots[op.Body.Params[i]] = slot
			}
		}
	}
	return slots
}

// checkSlots: what an op reads is still in its slot.
func checkSlots(t *testing.T, name string, g *ir.Graph) {
	t.Helper()
	s := &slotCheck{slots: slotsOf(g), holds: map[int]*ir.Value{}}
	s.block(g.Body)
	if len(s.lost) > 0 {
		t.Errorf("%s: read after they were overwritten: %s", name, strings.Join(slices.Compact(s.lost), ", "))
	}
}

// A slotCheck runs a graph on slots that hold names of values.
type slotCheck struct {
	slots map[*ir.Value]int
	holds map[int]*ir.Value
	lost  []string
}

func (s *slotCheck) block(b *ir.Block) {
	for _, op := range b.Ops {
		s.reads(op)
		switch {
		case op.Def.Name == "repeat":
			for range 2 {
				s.writes(op.Body.Params)
				s.block(op.Body)
			}
		case op.Body != nil:
			for inner := range op.Body.All() {
				s.reads(inner)
			}
		}
		if op.Def.Name != "split" || s.slots[op.Results[0]] != s.slots[op.Args[0].Value] {
			s.writes(op.Results)
		}
	}
	for _, y := range b.Yield {
		s.read(y)
	}
}

func (s *slotCheck) reads(op *ir.Op) {
	for _, a := range op.Args {
		s.read(a.Value)
	}
}

func (s *slotCheck) read(v *ir.Value) {
	slot, ok := s.slots[v]
	for ok && v.Kind == ir.Result && v.Op.Def.Name == "split" && s.slots[v.Op.Args[0].Value] == slot {
		v = v.Op.Args[0].Value // the value of which it is a view
	}
	if ok && s.holds[slot] != v {
		s.lost = append(s.lost, v.String())
	}
}

func (s *slotCheck) writes(list []*ir.Value) {
	for _, v := range list {
		if slot, ok := s.slots[v]; ok {
			s.holds[slot] = v
		}
	}
}
