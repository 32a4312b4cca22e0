package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/irtest"
)

const adapters = "../../spec/testdata/lora/llama/"

// TestAdapters: a binary computes with an adapter of --lora what transformers does with
// PEFT, also on several devices, as does one into which compile --merge-lora has merged it.
func TestAdapters(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	text, err := os.ReadFile(adapters + "expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		IDs     []int `json:"ids"`
		Outputs map[string]struct {
			Logits [][]float64 `json:"logits"`
		} `json:"outputs"`
	}
	decode(t, string(text), &want)
	ask := []string{"logits", "--ids", join(want.IDs), "--last", "2", "--json"}
	compare := func(bin, adapter string, args ...string) {
		t.Helper()
		var got struct{ Logits [][]float64 }
		decode(t, call(t, nil, bin, append(ask[:len(ask):len(ask)], args...)...).succeed(t), &got)
		near(t, adapter, got.Logits, slices.Concat(want.Outputs[adapter].Logits...))
	}
	bin := tinyLlama(t)
	compare(bin, "")
	for name := range want.Outputs {
		if name != "" {
			compare(bin, name, "--lora", "x="+adapters+name)
		}
	}
	compare(bin, "all", "--lora", adapters+"all.gguf")
	merged := []string{"all"} // which TestMergeAdapter shares; TestMergeLoRA of codegen/compiler has them all
	if irtest.All() {
		merged = []string{"all", "patterns", "head", "rank_stabilized", "all.gguf"}
	}
	for _, name := range merged {
		compare(tinyLlama(t, "--merge-lora", adapters+name), strings.TrimSuffix(name, ".gguf"))
	}
	for _, devices := range irtest.Sample(t, 1, []string{"0&1", "0;1"}) { // as TestAdaptersOnRanks there
		spread := tinyLlama(t, "--devices", devices)
		for _, front := range fronts(2) {
			var got struct{ Logits [][]float64 }
			decode(t, (&ranked{spread, front}).call(t, append(ask[:len(ask):len(ask)], "--lora", adapters+"all")), &got)
			near(t, devices, got.Logits, slices.Concat(want.Outputs["all"].Logits...))
		}
	}
}

// TestAdaptersRefused: an adapter that does not fit is a wrong call, of the binary and of
// the compiler.
func TestAdaptersRefused(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	bin := tinyLlama(t)
	for name, want := range map[string]string{"dora": "use_dora", "no_such_layer": `"model.layers.2.self_attn.q_proj"`, "rank_300": "at most 256", "nan": "not finite"} {
		path := filepath.Join("..", "..", "spec", "testdata", "lora", "refused", name)
		wantError(t, call(t, nil, bin, "logits", "--ids", "1,2", "--lora", path), exitUsage, "--lora", want)
		wantError(t, iflowc(t, "compile", tinyModels+"llama", "--merge-lora", path, "-o", filepath.Join(t.TempDir(), "llama")), exitUsage, filepath.Join("refused", name), want)
	}
}
