package main

import "github.com/iflowc/iflowc/codegen"

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
