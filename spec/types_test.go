package spec

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
)

// TestTypeNames checks the names of sizes and types, and that the error for another
// program's type suggests the nearest size.
func TestTypeNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]tensor.DType{
		"q8": tensor.Q8B32T2, "Q4": tensor.Q4TB32, "q3": tensor.Q3TB32, "q4_b32": tensor.Q4B32, "q4_b32t1a": tensor.Q4B32, "fp16": tensor.F16, "bfloat16": tensor.BF16,
	} {
		if got, err := ParseType(name); err != nil || got != want {
			t.Errorf("%s: read as %s (%v), want %s", name, got, err, want)
		}
	}
	for names, want := range map[string]string{
		"q4_k_m q4_0 q4_1 q4_k iq4_xs iq4_nl Q4_K_S": "is a type of llama.cpp; the nearest size of iflowc is q4 (q4t_b32, 4.25 bits)",
		"q8_0":                            "is a type of llama.cpp; the nearest size of iflowc is q8 (q8_b32t2, 8.5 bits)",
		"q6_k":                            "the nearest size of iflowc is q6 (q6t_b32, 6.5 bits)",
		"q5_k_m q5_0":                     "the nearest size of iflowc is q5 (q5t_b32, 5.5 bits)",
		"q3_k_l iq3_xxs":                  "the nearest size of iflowc is q3 (q3t_b32, 3.25 bits)",
		"q2_k iq1_s tq1_0 tq2_0":          "the nearest size of iflowc is q2 (q2t_b32, 2.25 bits)",
		"int4 4bit 4-bit nf4 w4a16 mxfp4": "is a type of other programs; the nearest size of iflowc is q4 ",
		"int8 8bit fp8 fp8_e4m3 i8":       "the nearest size of iflowc is q8 ",
		"awq gptq":                        "the nearest size of iflowc is q4 ",
		"q4b64":                           `did you mean "q4_b64"?`,
		"q9":                              `did you mean "q8"?`,
		"exact":                           "want a size (q8 q6 q5 q4 q3 q2) or a type (f32 f16 bf16 q8_b32 ",
	} {
		for name := range strings.FieldsSeq(names) {
			if _, err := ParseType(name); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	}
}
