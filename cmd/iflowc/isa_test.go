package main

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/irtest"
)

// setTypes are the weight types whose results must not depend on the instruction set.
var setTypes = []string{"f32", "f16", "q8", "q4", "bf16", "q6", "q5", "q3", "q2", "q4_b64"}

// drawnType is the one of them that is compiled where not all tests run: gcc takes
// seconds for each.
func drawnType(t testing.TB) string { return setTypes[irtest.Seed(t)%uint64(len(setTypes))] }

// forSets is the demo model with weights of a type for AVX-512 and AVX2.
func forSets(t testing.TB, quant string) string {
	t.Helper()
	return compiled(t, demoSpec, "--quant", quant, "--calibrate", "none", "--isa", "avx512,avx2")
}

// TestInstructionSetsAgree: AVX2 and AVX-512 give the same bits, which are
// printed in full: in prompts and single steps, whatever the weights. The binary
// chooses one of them.
func TestInstructionSetsAgree(t *testing.T) {
	t.Parallel()
	quants := []string{drawnType(t)}
	if irtest.All() {
		quants = setTypes
	}
	ids := make([]int, 45)
	for i := range ids {
		ids[i] = 3 + (7*i*i+3*i)%200
	}
	for _, quant := range quants {
		bin := forSets(t, quant)
		for _, args := range [][]string{{"logits", "--ids", join(ids[:1])}, {"logits", "--ids", join(ids[:3]), "--last", "3"}, {"logits", "--ids", join(ids), "--last", "45"},
			{"generate", "--ids", join(ids[:5]), "-n", "100", "--temp", "1", "--seed", "3", "--ignore-eos"}} {
			var out []string
			for _, isa := range []string{"avx512", "avx2", ""} {
				got := call(t, nil, bin, append(args, "--isa", isa)...)
				if got.code != 0 && strings.Contains(got.stderr, "this CPU lacks") {
					t.Skip(got.stderr)
				}
				out = append(out, got.succeed(t))
			}
			if out[0] != out[1] || out[0] != out[2] {
				t.Errorf("%s: %s differs between AVX-512, AVX2 and the default", quant, args[0])
			}
		}
	}
}
