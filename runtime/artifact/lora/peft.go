package lora

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/tensorfile"
	"github.com/iflowc/iflowc/runtime/kit/regular"
)

const (
	peftConfigFile = "adapter_config.json"
	peftWeights    = "adapter_model.safetensors"
	peftPrefix     = "base_model.model." // of every tensor

	// maxConfig is the most bytes of adapter_config.json. Patterns of 10,000 layers need 1 MB.
	maxConfig = 4 << 20
)

// peftConfig has the fields of adapter_config.json that set the scales. Absent fields
// have PEFT's defaults.
type peftConfig struct {
	Type     string      `json:"peft_type"`
	Rank     int         `json:"r"`
	Alpha    float64     `json:"lora_alpha"`
	RSLoRA   bool        `json:"use_rslora"`
	Ranks    patternList `json:"rank_pattern"`
	Alphas   patternList `json:"alpha_pattern"`
	InitWith any         `json:"init_lora_weights"`
}

const (
	mergeFirst      = "merge the adapter into the model with PEFT's merge_and_unload, and compile the result"
	reasonALoRA     = "the adapter takes effect only after its invocation tokens (aLoRA), which is not supported; train a plain LoRA adapter"
	reasonEmbedding = "adapters of embeddings are not supported; " + mergeFirst
)

// refusals are the settings of adapter_config.json that change the computation in ways
// that are not supported, if they are set.
var refusals = []struct{ key, reason string }{
	{"use_dora", "DoRA, which rescales whole matrices, is not supported; " + mergeFirst},
	{"use_qalora", "QA-LoRA, which averages inputs, is not supported; train a plain LoRA adapter"},
	{"lora_bias", "biases of B are not supported; train with lora_bias=False, or " + mergeFirst},
	{"modules_to_save", "whole layers saved with the adapter are not supported; " + mergeFirst},
	{"layer_replication", "the adapter repeats layers of the model, which is not supported; " + mergeFirst},
	{"trainable_token_indices", "trained tokens are not supported; " + mergeFirst},
	{"target_parameters", "adapters of parameters, such as the experts of a layer in one tensor, are not supported; train with target_modules"},
	{"alora_invocation_tokens", reasonALoRA},
	{"arrow_config", "routing between adapters (Arrow) is not supported; use one of its adapters"},
	{"megatron_config", "adapters of Megatron's parallel layers are not supported; train with transformers' model"},
}

// changesBase are the initializations with which PEFT changes the model's matrices, so
// that the adapter belongs to the changed model (PEFT's subtract_mutated_init).
var changesBase = []string{"pissa", "corda", "olora"}

// openPEFT reads a folder as PEFT saves it.
func openPEFT(dir string) (*Adapter, error) {
	config, err := readPEFTConfig(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no %s; want a folder as PEFT's save_pretrained writes it, or a GGUF file", dir, peftConfigFile)
	}
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, peftWeights)
	file, size, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no %s; an adapter_model.bin can run code when Python reads it and is not supported: save the adapter again with PEFT's save_pretrained", dir, peftWeights)
	}
	if err != nil {
		return nil, err
	}
	a, err := newAdapter(path, file, size, tensorfile.Safetensors, config.take)
	if err != nil {
		return nil, err
	}
	a.files = append(a.files, filepath.Join(dir, peftConfigFile))
	return a, nil
}

func readPEFTConfig(dir string) (*peftConfig, error) {
	data, err := regular.ReadIn(dir, peftConfigFile, maxConfig)
	if err != nil {
		return nil, err
	}
	c, err := parsePEFTConfig(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, peftConfigFile), err)
	}
	return c, nil
}

func parsePEFTConfig(data []byte) (*peftConfig, error) {
	c := &peftConfig{Rank: 8, Alpha: 8}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, err
	}
	if c.Type != "LORA" {
		return nil, fmt.Errorf("peft_type is %.40q; only \"LORA\" is supported: %s", c.Type, mergeFirst)
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	for _, r := range refusals {
		if isSet(all[r.key]) {
			return nil, fmt.Errorf("%s is set: %s", r.key, r.reason)
		}
	}
	if init, ok := c.InitWith.(string); ok && slices.ContainsFunc(changesBase, func(p string) bool { return strings.HasPrefix(strings.ToLower(init), p) }) {
		return nil, fmt.Errorf("init_lora_weights is %.40q, which changes the model's own weights; convert the adapter: call save_pretrained with path_initial_model_for_weight_conversion", init)
	}
	return c, nil
}

// isSet reports whether Python takes a JSON value as true.
func isSet(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// take takes the pairs X.lora_A.weight and X.lora_B.weight of a PEFT folder.
func (c *peftConfig) take(a *Adapter, f *tensorfile.File) error {
	index := map[string]int{}
	copies := map[string]string{} // of the model's matrix, which PEFT saves beside the adapter of an output head
	for _, t := range f.Tensors {
		name, isB, ok := peftName(t.Name)
		if base, isBase := strings.CutSuffix(t.Name, ".base_layer.weight"); isBase {
			copies[strings.TrimPrefix(base, peftPrefix)] = t.Name
			continue
		}
		if !ok {
			return fmt.Errorf("tensor %q: %s", t.Name, whyNotPEFT(t.Name))
		}
		if err := a.add(index, name, isB, t); err != nil {
			return err
		}
	}
	for name, copied := range copies {
		if _, ok := index[name]; !ok {
			return fmt.Errorf("tensor %q: %s", copied, whyNotPEFT(copied))
		}
	}
	for key, l := range map[string]patternList{"rank_pattern": c.Ranks, "alpha_pattern": c.Alphas} {
		if err := l.check(a.pairs); err != nil {
			return fmt.Errorf("%s in %s: %w", key, peftConfigFile, err)
		}
	}
	for i := range a.pairs {
		p := &a.pairs[i]
		rank := int(c.Ranks.lookup(p.Name, float64(c.Rank)))
		if len(p.a.Shape) > 0 && p.a.Shape[0] != rank {
			return fmt.Errorf("tensor %q has shape %v, but %s says that its rank is %d; the two files are of different adapters", p.a.Name, p.a.Shape, peftConfigFile, rank)
		}
		by := float64(rank)
		if c.RSLoRA {
			by = math.Sqrt(by)
		}
		p.Scale = c.Alphas.lookup(p.Name, c.Alpha) / by
	}
	return nil
}

// peftName returns the name of the matrix of the model to which a tensor belongs. PEFT
// writes base_model.model.NAME.lora_A.weight, with the adapter's name behind lora_A in
// files that other programs wrote.
func peftName(tensor string) (name string, isB, ok bool) {
	parts := strings.Split(strings.TrimPrefix(tensor, peftPrefix), ".")
	last := len(parts) - 1
	if parts[last] != "weight" {
		return "", false, false
	}
	for _, at := range []int{last - 1, last - 2} {
		if at >= 1 && (parts[at] == "lora_A" || parts[at] == "lora_B") {
			return strings.Join(parts[:at], "."), parts[at] == "lora_B", true
		}
	}
	return "", false, false
}

// whyNotPEFT explains why a tensor cannot be used.
func whyNotPEFT(name string) string {
	switch {
	case strings.Contains(name, "lora_magnitude_vector"):
		return refusals[0].reason
	case strings.Contains(name, "lora_embedding_"):
		return reasonEmbedding
	case strings.HasSuffix(name, ".bias"):
		return "biases in adapters are not supported; train with bias=\"none\", or " + mergeFirst
	}
	return "not a LoRA matrix of a linear layer; want names that end in .lora_A.weight or .lora_B.weight: " + mergeFirst
}
