package main

import (
	"fmt"
	"slices"
	"strings"
)

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
