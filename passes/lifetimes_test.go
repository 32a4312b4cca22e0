package passes

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// TestLifetimes: a value lives to its last reader, what a loop reads from
// outside to the loop's end, and what a block yields to the end of the block.
func TestLifetimes(t *testing.T) {
	t.Parallel()
	m, err := ir.Parse("life.ir", []byte(`module m {
  weight @w : f32[16, 16] from "w"
  graph g (T tokens) {
    input %ids : i32[T]
    %a = embed %ids, @w
    %b = scale %a {by=2}
    %c = add %a, %b
    %d = repeat 0..2 (%x = %c) {
      %y = add %x, %b
      %z = scale %y {by=3}
      yield %z
    }
    %e = scale %d {by=2}
    yield %e
  }
}`), ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	g := m.Graphs[0]
	l := lifetimesOf(g)
	loop := g.FindOp("repeat")
	at := func(name string) int {
		for _, v := range g.Values() {
			if v.Name == name {
				return l.last[v]
			}
		}
		t.Fatal(name)
		return 0
	}
	for name, want := range map[string]int{
		"a": l.at[g.Body.Ops[2]],
		"b": l.end[loop.Body], // the next iteration reads it again
		"c": l.at[loop],
		"x": l.at[loop.Body.Ops[0]],
		"y": l.at[loop.Body.Ops[1]],
		"z": l.end[loop.Body],
		"d": l.at[g.Body.Ops[4]],
		"e": l.end[g.Body],
	} {
		if got := at(name); got != want {
			t.Errorf("%%%s is read last at %d, expected %d", name, got, want)
		}
	}
}

// TestPanicKeepsItsStack: a pass that panics is an error that says where.
func TestPanicKeepsItsStack(t *testing.T) {
	t.Parallel()
	m := &ir.Module{Name: "m"}
	broken := &Pass{Name: "broken", Run: func(*Env, *ir.Module) error { panicsHere(nil); return nil }}
	err := Run(&Env{}, m, []*Pass{broken}, Options{Limit: -1})
	for _, part := range []string{"pass broken on module m", "nil map", "panicsHere"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v lacks %q", err, part)
		}
	}
}

func panicsHere(m map[string]int) { m["x"] = 1 }
