package policy

import "github.com/iflowc/iflowc/runtime/sampling/speculate"

// Room returns the cost of a draft of at most nodes tokens in the next step. It assumes
// that the rest of the step is like the last one: max(others, tokens) further tokens,
// prefill tokens included. alike is the number of requests, this one included, that
// draft as much as it does.
func Room(times *StepTimes, nodes, others, tokens, alike int) speculate.Room {
	base := 1 + max(others, tokens)
	return speculate.Room{
		Nodes: max(0, nodes), Others: float64(base - 1), Alike: float64(alike),
		Time:    func(nodes int) float64 { return times.Step(base + alike*nodes) },
		Untried: func(nodes int) bool { return times.Untried(base + alike*nodes) },
	}
}
