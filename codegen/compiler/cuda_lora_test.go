package compiler

import (
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
)

// TestEmulatedAdapters: with the adapters that PEFT saved, models of the CUDA target compute
// what transformers does, under emulation.
func TestEmulatedAdapters(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	for _, name := range irtest.Sample(t, 2, adaptedModels(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			likeTransformers(t, name, loraModels+name, Options{Quant: "f32", Target: "cuda-emu"}, emulatedModel)
		})
	}
}
