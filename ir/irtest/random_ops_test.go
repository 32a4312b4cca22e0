package irtest

import (
	"slices"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// TestRandomOps checks that every module passes the verifier and depends only on the seed.
func TestRandomOps(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, seed := range Seeds(t, 120, 300) {
		text := RandomOpsText(seed)
		m := RandomOps(seed)
		if err := ir.Verify(m); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if again := RandomOpsText(seed); again != text {
			t.Fatalf("seed %d gives two modules:\n%s\n%s", seed, text, again)
		}
		for _, g := range m.Graphs {
			for o := range g.All() {
				used[o.Def.Name] = true
			}
		}
	}
	// Passes create fuse and the collectives; no target implements argmax; select_rows may
	// choose other rows where two scores differ by less than a target's rounding; unfold
	// needs an encoder, which RandomSeq2Seq has.
	never := []string{"lora", "fuse", "par", "all_reduce", "all_gather", "send", "recv", "rank_cols", "argmax", "select_rows", "unfold"}
	for _, def := range ops.Table {
		if used[def.Name] == slices.Contains(never, def.Name) {
			t.Errorf("op %s: written %t", def.Name, used[def.Name])
		}
	}
}
