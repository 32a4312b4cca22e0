package irtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// TestCanonical checks that the canonical form of random modules is valid, computes the
// same, is its own canonical form, and does not depend on names or written indices.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for name, random := range map[string]func(uint64) *ir.Module{"Random": Random, "RandomMoE": RandomMoE, "RandomSeq2Seq": RandomSeq2Seq, "RandomOps": RandomOps} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range Seeds(t, 6, 40) {
				m := random(seed)
				c := canonicalOf(t, m)
				if err := ir.Verify(c); err != nil {
					t.Fatalf("seed %d: %v\n%s", seed, err, c)
				}
				if name != "RandomOps" { // whose results have a row per token: Compare's chunks do not apply
					if err := Compare(m, c, seed, 0); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				}
				same(t, seed, c, canonicalOf(t, c))
				renamed := random(seed)
				WriteIndices(renamed, seed)
				rename(renamed)
				same(t, seed, c, canonicalOf(t, renamed))
			}
		})
	}
}

// rename gives each weight, state and value another name, but those of inputs and results,
// and declares weights and states in reverse.
func rename(m *ir.Module) {
	turn := func(vs []*ir.Value) {
		for i, j := 0, len(vs)-1; i < j; i, j = i+1, j-1 {
			vs[i], vs[j] = vs[j], vs[i]
		}
		for i, v := range vs {
			v.Name = fmt.Sprintf("other%d", i)
		}
	}
	turn(m.Weights)
	turn(m.States)
	for _, g := range m.Graphs {
		keep := map[*ir.Value]bool{}
		for _, v := range append(g.Inputs, g.Body.Yield...) {
			keep[v] = true
		}
		for i, v := range g.Values() {
			if !keep[v] {
				v.Name = fmt.Sprintf("value%d", i)
			}
		}
	}
}

// TestCanonicalForms compares canonical forms of small modules.
func TestCanonicalForms(t *testing.T) {
	t.Parallel()
	const head = "module m {\n%s  graph decode (T tokens, R out_rows) {\n    input %%ids : i32[T]\n    input %%out_rows : i32[R]\n%s  }\n}\n"
	module := func(decls, body string) *ir.Module {
		m, err := ir.Parse("m.ir", fmt.Appendf(nil, head, decls, body), ops.Table)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const table = "  weight @e : f32[8, 4] from \"e\"\n"
	rolled := module(table+"  weight @w[3] : f32[4, 4] from \"l.{i}.w\"\n",
		"    %x = embed %ids, @e\n    %y = repeat 0..3 (%z = %x) {\n      %m = matmul %z, @w\n      %c = clamp %m {lo=-1, hi=1}\n      yield %c\n    }\n    %logits = rows %y, %out_rows\n    yield %logits\n")
	layers := func(first, last, hi string) *ir.Module {
		return module("  weight @b[1..3] : f32[4, 4] from \"l.{i}.w\"\n  weight @a : f32[4, 4] from \""+first+"\"\n"+table,
			"    %x = embed %ids, @e\n    %unused = softmax %x\n    %m = matmul %x, @a\n    %c = clamp %m {lo=-1, hi=1}\n    %m1 = matmul %c, @b[1]\n    %c1 = clamp %m1 {lo=-1, hi=1}\n    %m2 = matmul %c1, @b["+last+"]\n    %c2 = clamp %m2 {lo=-1, hi="+hi+"}\n    %logits = rows %c2, %out_rows\n    yield %logits\n")
	}
	want := canonicalOf(t, rolled)
	same(t, 0, want, canonicalOf(t, layers("l.0.w", "2", "1")))
	for _, other := range []*ir.Module{layers("l.3.w", "2", "1"), layers("l.0.w", "1", "1"), layers("l.0.w", "2", "2")} {
		if canonicalOf(t, other).String() == want.String() {
			t.Errorf("another module has the same canonical form:\n%s", other)
		}
	}
}

func canonicalOf(t *testing.T, m *ir.Module) *ir.Module {
	t.Helper()
	c, err := Canonical(m)
	if err != nil {
		t.Fatalf("%v\n%s", err, m)
	}
	return c
}

func same(t *testing.T, seed uint64, want, got *ir.Module) {
	t.Helper()
	if d := cmp.Diff(strings.Split(want.String(), "\n"), strings.Split(got.String(), "\n")); d != "" {
		t.Errorf("seed %d: canonical forms differ (-want +got):\n%s", seed, d)
	}
}
