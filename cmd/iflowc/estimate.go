package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen"
)

// Shape of the step that check counts activations for: what an engine takes
// when nobody says otherwise.
const (
	checkTokens = 512
	checkWanted = 64
)

// A need is the memory that a device must have for one sequence of the whole
// context, in bytes.
type need struct {
	Device          string `json:"device"`
	WeightBytes     int64  `json:"weight_bytes"`
	StateBytes      int64  `json:"state_bytes"`
	ActivationBytes int64  `json:"activation_bytes"`
	Bytes           int64  `json:"bytes"`
}

// needs is what the program of one device takes.
func needs(device string, m *codegen.CPUModel, context int) need {
	n := need{Device: device, ActivationBytes: m.ActivationBytes(checkTokens, checkWanted, 1)}
	for _, w := range m.Manifest.Weights {
		n.WeightBytes += w.Bytes
	}
	for _, s := range m.Manifest.States {
		pages := int64((context + s.PageRows - 1) / s.PageRows)
		n.StateBytes += s.PageBytes * pages * int64(s.Count)
	}
	n.Bytes = n.WeightBytes + n.StateBytes + n.ActivationBytes
	return n
}

// needsOf is what each rank takes.
func needsOf(ranks []*rank, context int) []need {
	var out []need
	for _, r := range ranks {
		out = append(out, needs(r.Device, r.cpu, context))
	}
	return out
}

// expect adds to a summary what running the model will take and give: the
// memory of one sequence of the whole context, and the tokens a second that the
// bandwidth in this machine's profile allows.
func (p *program) expect(s *summary) {
	on := needsOf(p.ranks, p.m.context)
	if on == nil {
		on = []need{needs("cpu", p.cpu, p.m.context)}
	}
	for _, n := range on {
		s.MemoryBytes += n.Bytes
	}
	profile, _, err := p.flags.measurements()
	if err != nil || profile == nil || profile.Machine == nil || len(profile.Machine.ReadGBs) == 0 || p.cpu.Manifest.Network != "decoder_only" {
		return
	}
	ws := p.cpu.Manifest.Weights
	for _, r := range p.ranks {
		ws = append(ws, r.cpu.Manifest.Weights...)
	}
	var read int64
	for _, w := range ws {
		if w.Layout != "row" || w.Rows == 1 { // a table that is looked up is not read through
			read += w.Bytes
		}
	}
	speeds := slices.Sorted(slices.Values(profile.Machine.ReadGBs))
	s.BoundGBS = speeds[len(speeds)/2]
	s.BoundTokS = s.BoundGBS * 1e9 / float64(max(read, 1))
}

// describe is the summary for people.
func (s *summary) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %.1f MB, weights %.1f MB, %d regions a layer, %.1f s\n", s.Binary, float64(s.BinaryBytes)/1e6, float64(s.WeightBytes)/1e6, s.Regions, s.Seconds)
	fmt.Fprintf(&b, "memory for one sequence of the whole context: %.1f MB", float64(s.MemoryBytes)/1e6)
	if s.BoundTokS > 0 {
		fmt.Fprintf(&b, "; at most %.0f tokens/s one by one, by the %.0f GB/s of this machine's profile", s.BoundTokS, s.BoundGBS)
	}
	b.WriteByte('\n')
	return b.String()
}
