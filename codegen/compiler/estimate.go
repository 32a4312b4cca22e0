package compiler

import (
	"context"
	"slices"
)

// Shape of the step that check counts activations for: what an engine takes
// when nobody says otherwise.
const (
	checkTokens  = 512
	checkOutRows = 64
)

// A Need is the memory that a device must have for one sequence of the whole
// context, in bytes.
type Need struct {
	Device          string `json:"device"`
	WeightBytes     int64  `json:"weight_bytes"`
	StateBytes      int64  `json:"state_bytes"`
	ActivationBytes int64  `json:"activation_bytes"`
	Bytes           int64  `json:"bytes"`
}

// need is what the program of one device takes.
func (m *Model) need(r *Rank) Need {
	device := "cpu"
	if r.Rank != nil {
		device = r.Device
	}
	n := Need{Device: device, ActivationBytes: r.CPU.ActivationBytes(checkTokens, checkOutRows, 1)}
	for _, w := range r.CPU.Manifest.Weights {
		n.WeightBytes += w.Bytes
	}
	for _, s := range r.CPU.Manifest.States {
		pages := int64((m.Context + s.PageRows - 1) / s.PageRows)
		n.StateBytes += s.PageBytes * pages * int64(s.Count)
	}
	n.Bytes = n.WeightBytes + n.StateBytes + n.ActivationBytes
	return n
}

// Needs are what the program's devices need.
func (p *Program) Needs() []Need {
	var out []Need
	for _, r := range p.parts() {
		out = append(out, p.need(r))
	}
	return out
}

// estimate adds to the result what running the model will take and give: the
// memory of one sequence of the whole context, and the tokens a second that the
// bandwidth in this machine's profile allows.
func (p *Program) estimate(context.Context) error {
	var read int64
	for _, r := range p.parts() {
		p.result.MemoryBytes += p.need(r).Bytes
		for _, w := range r.CPU.Manifest.Weights {
			if w.Layout != "row" || w.Rows == 1 { // a table that is looked up is not read through
				read += w.Bytes
			}
		}
	}
	profile, _, err := p.opt.Measurements()
	if err != nil || profile == nil || profile.Machine == nil || len(profile.Machine.ReadGBs) == 0 || p.whole.CPU.Manifest.Network != "decoder_only" {
		return nil // the estimate is left out
	}
	speeds := slices.Sorted(slices.Values(profile.Machine.ReadGBs))
	p.result.BoundGBS = speeds[len(speeds)/2]
	p.result.BoundTokS = p.result.BoundGBS * 1e9 / float64(max(read, 1))
	return nil
}
