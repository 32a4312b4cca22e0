package main

import (
	"math"
	"testing"
)

// TestMergeAdapter compares the logits of a model with an adapter in its weights with
// those of the model that loads the adapter.
func TestMergeAdapter(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	plainModel, mergedModel := tinyLlama(t), tinyLlama(t, "--merge-lora", adapters+"all")
	logits := func(bin string, run ...string) []float64 {
		var out struct{ Logits [][]float64 }
		decode(t, call(t, nil, bin, append([]string{"logits", "--ids", "3,14,15,9"}, run...)...).succeed(t), &out)
		return out.Logits[0]
	}
	plain, loaded := logits(plainModel), logits(plainModel, "--lora", adapters+"all")
	changed := 0.0
	for i, x := range logits(mergedModel) {
		if math.Abs(x-loaded[i]) > 1e-4 {
			t.Errorf("logit %d is %v, with the adapter loaded %v", i, x, loaded[i])
		}
		changed = math.Max(changed, math.Abs(x-plain[i]))
	}
	if changed < 0.1 {
		t.Errorf("the adapter changes logits by at most %v", changed)
	}
	var info struct{ Inputs map[string]string }
	decode(t, call(t, nil, mergedModel, "info", "--json").succeed(t), &info)
	if len(info.Inputs["all/adapter_model.safetensors"]) != 64 || len(info.Inputs) != 2 {
		t.Errorf("inputs %v", info.Inputs)
	}
	wantError(t, iflowc(t, "compile", tinyModels+"llama", "--merge-lora", "../../spec/testdata/lora/gpt2/all"), exitUsage, "is the adapter for another model?")
}
