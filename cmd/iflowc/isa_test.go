package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/irtest"
)

// TestInstructionSetsAgree: AVX2 and AVX-512 give the same bits, which are
// printed in full: in prompts and single steps, whatever the weights.
func TestInstructionSetsAgree(t *testing.T) {
	t.Parallel()
	bins := map[string]string{"f32": demo(t)}
	for _, quant := range append(irtest.Sample(t, 1, []string{"f16", "bf16", "q8", "q6", "q5", "q3", "q2", "q4_b64"}), "q4") {
		bins[quant] = filepath.Join(t.TempDir(), quant)
		iflowc(t, "compile", demoSpec, "--quant", quant, "--calibrate", "none", "--isa", "avx512,avx2", "-o", bins[quant]).succeed(t)
	}
	ids := make([]int, 45)
	for i := range ids {
		ids[i] = 3 + (7*i*i+3*i)%200
	}
	for quant, bin := range bins {
		for _, args := range [][]string{{"logits", "--ids", join(ids[:1])}, {"logits", "--ids", join(ids[:3]), "--last", "3"}, {"logits", "--ids", join(ids), "--last", "45"},
			{"generate", "--ids", join(ids[:5]), "-n", "100", "--temp", "1", "--seed", "3", "--ignore-eos"}} {
			var out []string
			for _, isa := range []string{"avx512", "avx2"} {
				got := call(t, nil, bin, append(args, "--isa", isa)...)
				if got.code != 0 && strings.Contains(got.stderr, "this CPU lacks") {
					t.Skip(got.stderr)
				}
				out = append(out, got.succeed(t))
			}
			if out[0] != out[1] {
				t.Errorf("%s: %s differs between AVX-512 and AVX2", quant, args[0])
			}
		}
	}
}
