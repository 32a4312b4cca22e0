package lora

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/tensorfile"
	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// openGGUF reads an adapter as llama.cpp stores it: NAME.weight.lora_a and
// NAME.weight.lora_b, where NAME.weight is the model's tensor. As in llama.cpp, the scale
// is alpha by rank, or 1 without an alpha; files say nothing about rsLoRA.
func openGGUF(path string) (*Adapter, error) {
	if ext := filepath.Ext(path); ext == ".safetensors" || ext == ".json" || ext == ".bin" {
		return nil, fmt.Errorf("%s: one file of an adapter; give the folder with adapter_config.json and adapter_model.safetensors", path)
	}
	file, size, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	return newAdapter(path, file, size, tensorfile.GGUF, (*Adapter).fromGGUF)
}

func (a *Adapter) fromGGUF(f *tensorfile.File) error {
	for _, want := range [][2]string{{"general.type", "adapter"}, {"adapter.type", "lora"}} {
		if got, _ := f.Meta[want[0]].(string); got != want[1] {
			return fmt.Errorf("%s is %.40q; want %q: the file is not a LoRA adapter", want[0], got, want[1])
		}
	}
	if f.Meta["adapter.alora.invocation_tokens"] != nil {
		return fmt.Errorf("adapter.alora.invocation_tokens: %s", reasonALoRA)
	}
	alpha, ok := f.Meta["adapter.lora.alpha"].(float32)
	if v := f.Meta["adapter.lora.alpha"]; v != nil && !ok {
		return fmt.Errorf("adapter.lora.alpha is a %T; want f32", v)
	}
	index := map[string]int{}
	for _, t := range f.Tensors {
		name, isA := strings.CutSuffix(t.Name, ".weight.lora_a")
		name, isB := strings.CutSuffix(name, ".weight.lora_b")
		switch {
		case !isA && !isB:
			return fmt.Errorf("tensor %q is not a LoRA matrix of a linear layer; want names that end in .weight.lora_a or .weight.lora_b: train an adapter that changes only linear layers", t.Name)
		case name == "token_embd":
			return fmt.Errorf("tensor %q: %s", t.Name, reasonEmbedding)
		}
		if err := a.add(index, name, isB, t); err != nil {
			return err
		}
	}
	for i := range a.pairs {
		p := &a.pairs[i]
		p.Scale = 1
		if alpha != 0 && len(p.a.Shape) > 0 && p.a.Shape[0] > 0 {
			p.Scale = float64(alpha) / float64(p.a.Shape[0])
		}
	}
	return nil
}
