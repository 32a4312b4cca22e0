package main

import "github.com/iflowc/iflowc/runtime/sampling/speculate"

// propose is how many tokens a drafter offers for a request's next step that
// knows how often it is right. It weighs them as drafters do, by the room that
// the engine gives (see engine.Room).
func (s *simulation) propose(q *live) int {
	if s.batch.NoDrafts {
		return 0
	}
	base := 1 + max(len(s.live)-1, s.others-1)
	alike := max(1, s.drafting)
	room := speculate.Room{
		Nodes: min(mostDraft, q.Output-s.outcome[q.index].tokens-1), Others: float64(base - 1), Alike: float64(alike),
		Time:    func(nodes int) float64 { return s.times.Step(base + alike*nodes) },
		Untried: func(nodes int) bool { return s.times.Untried(base + alike*nodes) },
	}
	return room.Length(func(int) float64 { return s.load.Accept }, mostDraft, 0)
}
