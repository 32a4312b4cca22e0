package spec

import (
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
)

// TestKVTypes checks the names of KV cache types: q4 is another type than that of weights.
func TestKVTypes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]tensor.DType{"q4": tensor.Q4B32T2, "Q4_B32T2": tensor.Q4B32T2, "q8": tensor.Q8B32T2, "fp16": tensor.F16} {
		got, err := ParseKVType(name)
		if err != nil || got != want || !KVType(got) {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
	for _, name := range []string{"q4_b32t2", "q5r_b32t2"} {
		if got, err := ParseType(name); err == nil {
			t.Errorf("the weight type %s is %s, want an error", name, got)
		}
	}
	if got := tensor.Q4B32T2.OfKeys(); got != tensor.Q5RB32T2 {
		t.Errorf("keys of q4_b32t2 are %s", got)
	}
}
