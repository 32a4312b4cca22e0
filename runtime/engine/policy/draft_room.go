package policy

import "github.com/iflowc/iflowc/runtime/sampling/speculate"

// Room is what a draft of at most so many nodes costs in the next step. The others
// of the step are taken to compute what they did in the last one: so many requests
// or, if these are more, tokens, prompts among them; alike of the requests, this
// one among them, to draft as much as it does.
func Room(times *StepTimes, nodes, others, tokens, alike int) speculate.Room {
	base := 1 + max(others, tokens)
	return speculate.Room{
		Nodes: max(0, nodes), Others: float64(base - 1), Alike: float64(alike),
		Time:    func(nodes int) float64 { return times.Step(base + alike*nodes) },
		Untried: func(nodes int) bool { return times.Untried(base + alike*nodes) },
	}
}
