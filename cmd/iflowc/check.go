//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/kit/destination"
	"gopkg.in/yaml.v3"
)

type checkCmd struct {
	modelFlags
	Target string `help:"Target: cpu, or cuda for CPU and GPU code." enum:"cpu,cuda,cuda-emu" default:"cpu"`
	JSON   bool   `name:"json" help:"Print one JSON document."`

	LoRA []string `name:"lora" placeholder:"PATH" help:"LoRA adapters, PEFT folders or GGUF files: check that they fit the model, and count their memory."`
}

// A verdict is the result of check.
type verdict struct {
	Supported     bool            `json:"supported"`
	Name          string          `json:"name"`
	Network       string          `json:"network"`
	Parameters    int64           `json:"parameters"`
	WeightBytes   int64           `json:"weight_bytes"`
	WeightType    string          `json:"weight_type"`     // of most of the weights
	BitsPerWeight float64         `json:"bits_per_weight"` // of all weights
	StateBytes    int64           `json:"state_bytes_per_sequence"`
	FixedBytes    int64           `json:"fixed_state_bytes_per_sequence,omitempty"`
	Context       int             `json:"context"`
	AdapterBytes  int64           `json:"adapter_bytes,omitempty"`
	Devices       []compiler.Need `json:"devices"`
	UnusedTensors []string        `json:"unused_tensors"`
	Warnings      []string        `json:"warnings,omitempty"` // about the weight types

	Medusa *manifest.Medusa `json:"medusa,omitempty"`
}

// Run checks a model by its spec, its configuration and the headers of its
// weight files. It does everything that compile does before it calls a C
// compiler and reads weights.
func (c *checkCmd) Run(ctx context.Context) error {
	opt := c.options()
	opt.Target = c.Target
	m, err := compiler.Open(ctx, c.Spec, opt)
	if err != nil {
		return err
	}
	defer m.Close()
	p, err := m.Generate(ctx)
	if err != nil {
		return err
	}
	man := p.Manifest()
	v := verdict{Supported: true, Name: m.Spec.Name, Network: m.Net.Topology(), Parameters: man.Params, Context: m.Context,
		UnusedTensors: append([]string{}, m.Unused...), Warnings: p.Warnings(), Medusa: man.Medusa}
	if v.Devices, err = c.needs(p); err != nil {
		return err
	}
	for _, d := range v.Devices {
		v.WeightBytes += d.WeightBytes
		v.AdapterBytes += d.AdapterBytes
		v.StateBytes += d.StateBytes
		v.FixedBytes += d.FixedBytes
	}
	v.WeightType, v.BitsPerWeight = p.WeightTypes()
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(v)
	}
	v.print(os.Stdout)
	return nil
}

// needs returns the memory of the program with the adapters of --lora.
func (c *checkCmd) needs(p *compiler.Program) ([]compiler.Need, error) {
	var adapters []*lora.Adapter
	for _, path := range c.LoRA {
		a, err := lora.Open(path)
		if err != nil {
			return nil, usageError{fmt.Errorf("--lora %s: %w", path, err)}
		}
		defer a.Close()
		adapters = append(adapters, a)
	}
	return p.Needs(adapters)
}

func (v *verdict) print(w io.Writer) {
	fmt.Fprintf(w, "%s: supported (%s)\n", v.Name, v.Network)
	fmt.Fprintf(w, "  parameters  %.1f M\n", float64(v.Parameters)/1e6)
	fmt.Fprintf(w, "  weights     %.1f MB of %s, %.1f bits per weight\n", float64(v.WeightBytes)/1e6, v.WeightType, v.BitsPerWeight)
	fmt.Fprintf(w, "  KV cache    %.1f MB for a sequence of %d tokens\n", float64(v.StateBytes)/1e6, v.Context)
	if v.FixedBytes > 0 {
		fmt.Fprintf(w, "  states      %.1f MB of fixed-size states for a sequence of any length\n", float64(v.FixedBytes)/1e6)
	}
	if v.AdapterBytes > 0 {
		fmt.Fprintf(w, "  adapters    %.1f MB\n", float64(v.AdapterBytes)/1e6)
	}
	for _, d := range v.Devices {
		more := ""
		if d.FixedBytes > 0 {
			more = fmt.Sprintf(" fixed-size states %.1f,", float64(d.FixedBytes)/1e6)
		}
		if d.AdapterBytes > 0 {
			more += fmt.Sprintf(" adapters %.1f,", float64(d.AdapterBytes)/1e6)
		}
		fmt.Fprintf(w, "  on %-8s %.1f MB: weights %.1f, KV cache %.1f,%s activations %.1f\n", d.Device,
			float64(d.Bytes)/1e6, float64(d.WeightBytes)/1e6, float64(d.StateBytes)/1e6, more, float64(d.ActivationBytes)/1e6)
	}
	if v.Medusa != nil {
		fmt.Fprintf(w, "  medusa      %s\n", v.Medusa)
	}
	for _, t := range v.UnusedTensors {
		fmt.Fprintf(w, "  unused      %s\n", t)
	}
}

type importCmd struct {
	modelFlags
	Out string `short:"o" help:"Output file (default: standard output)." type:"path" placeholder:"FILE"`
}

// Run prints the model spec derived from a folder or file.
func (c *importCmd) Run(ctx context.Context) error {
	if c.Out != "" {
		if err := destination.Check("-o", c.Out); err != nil {
			return usageError{err}
		}
	}
	m, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	if _, err := m.Lower(); err != nil { // of a tensor that is missing, or that no module reads
		return err
	}
	text, err := m.Spec.YAML()
	if err != nil {
		return err
	}
	dir, err := modelDirFrom(m.Spec.ModelDir, c.Out)
	if err != nil {
		return err
	}
	text = append(dir, text...)
	if c.Out == "" {
		_, err = os.Stdout.Write(text)
		return err
	}
	return toolchain.WriteFile(c.Out, text, 0o644)
}

// modelDirFrom returns the model_dir line for a model spec at file (standard
// output: the working directory); nothing if both are one folder.
func modelDirFrom(folder, file string) ([]byte, error) {
	target, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	from, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	if rel, err := filepath.Rel(from, target); err == nil && !strings.HasPrefix(rel, "..") {
		target = filepath.ToSlash(rel)
	}
	if target == "." {
		return nil, nil
	}
	return yaml.Marshal(map[string]string{"model_dir": target})
}
