package main

import "github.com/iflowc/iflowc/runtime/engine/policy"

// propose returns the number of tokens that a drafter with a known acceptance rate
// proposes for a request's next step, within the engine's limit.
func (s *simulation) propose(q *live) int {
	if s.batch.NoDrafts {
		return 0
	}
	most := min(mostDraft, q.Output-s.outcome[q.index].tokens-1)
	room := policy.Room(&s.times, most, len(s.live)-1, s.others-1, max(1, s.drafting))
	return room.Length(func(int) float64 { return s.load.Accept }, mostDraft, 0)
}
