package compiler

import (
	"context"
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/dtype"
	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/spec"
)

// The step for which check counts activations: the engine's defaults.
const (
	checkTokens  = 512
	checkOutRows = 64
)

// A Need is the memory of a device for one sequence with a full context, in
// bytes.
type Need struct {
	Device          string `json:"device"`
	WeightBytes     int64  `json:"weight_bytes"`
	StateBytes      int64  `json:"state_bytes"`
	FixedBytes      int64  `json:"fixed_state_bytes,omitempty"` // fixed-size states
	AdapterBytes    int64  `json:"adapter_bytes,omitempty"`     // LoRA adapters
	ActivationBytes int64  `json:"activation_bytes"`
	Bytes           int64  `json:"bytes"`
}

// need returns the memory of one device's program for a sequence of so many tokens.
func (m *Model) need(r *Rank, tokens int) Need {
	device := "cpu"
	if r.Rank != nil {
		device = r.Device
	}
	n := Need{Device: device, ActivationBytes: r.CPU.ActivationBytes(checkTokens, checkOutRows, 1)}
	for _, w := range r.CPU.Manifest.Weights {
		n.WeightBytes += w.Bytes
	}
	for _, s := range r.CPU.Manifest.States {
		if s.CellBytes > 0 {
			n.FixedBytes += s.CellBytes * int64(s.Count)
			continue
		}
		pages := int64((tokens + s.PageRows - 1) / s.PageRows)
		n.StateBytes += s.PageBytes * pages * int64(s.Count)
	}
	n.Bytes = n.WeightBytes + n.StateBytes + n.FixedBytes + n.ActivationBytes
	return n
}

// Needs returns the memory that each device of the program takes, with the given
// adapters loaded. The error says why one does not fit the model.
func (p *Program) Needs(adapters []*lora.Adapter) ([]Need, error) {
	var out []Need
	for _, r := range p.parts() {
		n, man := p.need(r, p.Context), &r.CPU.Manifest
		for _, a := range adapters {
			bytes, err := a.SizeRank(man.Sites, man.RowOrders, p.whole.CPU.Manifest.Sites)
			if err != nil {
				return nil, InputError{err}
			}
			n.AdapterBytes += bytes
			n.Bytes += bytes
		}
		out = append(out, n)
	}
	return out, nil
}

// SizeText returns a number of bytes for people.
func SizeText(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e8:
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0f kB", float64(n)/1e3)
}

// SmallerWeights is an estimate for the model with its matrices in a smaller
// type.
type SmallerWeights struct {
	Quant       string  `json:"quant"` // the value of --quant
	WeightBytes int64   `json:"weight_bytes"`
	Speedup     float64 `json:"decode_speedup"` // ratio of the bandwidth bounds
}

// offered are the sizes in the comparison.
var offered = []string{"q8", "q4"}

// estimate adds the cost of running the model to the result: the types and bits
// of the weights, the memory of one sequence with a full context, and the
// decode speed that the bandwidth in this machine's profile allows. The GPU that a
// binary will run on is unknown.
func (p *Program) estimate(context.Context) error {
	r, man := &p.result, &p.whole.CPU.Manifest
	r.Name, r.Network, r.ChatTemplate, r.Context = man.Name, man.Network, man.Template != "", p.Context
	for _, part := range p.parts() {
		n := p.need(part, p.Context)
		r.MemoryBytes += n.Bytes
		r.StateBytes += n.StateBytes
	}
	r.WeightType, r.BitsPerWeight = p.WeightTypes()
	r.Warnings = p.warnings
	read := readBytes(p.weights())
	if p.Spec.Quant == tensor.Invalid {
		if err := p.compareSizes(read); err != nil {
			return err
		}
	}
	if p.opt.forGPU() {
		return nil
	}
	profile, _, err := p.opt.Measurements()
	if err != nil || profile == nil || profile.Machine == nil || len(profile.Machine.ReadGBs) == 0 || man.Network != "decoder_only" {
		return nil // no bound without a profile
	}
	speeds := slices.Sorted(slices.Values(profile.Machine.ReadGBs))
	r.BoundGBS = speeds[len(speeds)/2]
	r.BoundTokS = r.BoundGBS * 1e9 / float64(max(read, 1))
	return nil
}

// weights returns the weights of all parts.
func (p *Program) weights() (list []manifest.Weight) {
	for _, part := range p.parts() {
		list = append(list, part.CPU.Manifest.Weights...)
	}
	return list
}

// WeightTypes returns the type with the most bytes, and the mean bits per weight.
func (p *Program) WeightTypes() (name string, bits float64) {
	bytes, elements, byType := int64(0), int64(0), map[dtype.Type]int64{}
	for _, w := range p.weights() {
		bytes += w.Bytes
		elements += int64(w.Rows) * int64(w.Cols)
		byType[w.DType] += w.Bytes
	}
	var most dtype.Type
	for t, n := range byType {
		if n > byType[most] || n == byType[most] && t < most {
			most = t
		}
	}
	return most.String(), 8 * float64(bytes) / float64(max(elements, 1))
}

// compareSizes adds estimates for the offered sizes that are smaller, unless the weights
// are already quantized. With types for all weights, as of a budget, none is.
func (p *Program) compareSizes(read int64) error {
	if t, ok := dtype.Parse(p.result.WeightType); !ok || !t.IsFloat() {
		return nil
	}
	bytes := weightBytes(p.weights())
	for _, name := range offered {
		t, err := spec.ParseType(name)
		if err != nil {
			return err
		}
		one, r, s := *p.Model, *p.Model.Model, *p.Spec
		s.Devices, s.Quant, r.Spec, one.Model, one.opt.Notice = "", t, &s, &r, nil
		step, err := one.Step()
		if err != nil {
			return err
		}
		weights := step.Manifest.Weights
		if small := weightBytes(weights); small < bytes {
			p.result.Smaller = append(p.result.Smaller, SmallerWeights{name, small, float64(read) / float64(max(readBytes(weights), 1))})
		}
	}
	return nil
}

// weightBytes returns the bytes of weights in a file.
func weightBytes(weights []manifest.Weight) (n int64) {
	for _, w := range weights {
		n += w.Bytes
	}
	return n
}

// readBytes returns the bytes of weights that a decode step reads. Lookup
// tables are not read completely.
func readBytes(weights []manifest.Weight) (n int64) {
	for _, w := range weights {
		if w.Layout != "row" || w.Rows == 1 {
			n += w.Bytes
		}
	}
	return n
}
