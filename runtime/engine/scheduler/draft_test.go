//go:build unix

package scheduler_test

import (
	"math/rand/v2"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A guesser drafts random trees; their nodes are often the fake model's greedy token.
type guesser struct{ r *rand.Rand }

func (g guesser) Observe([]int32) {}

func (g guesser) Propose(history []int32, room speculate.Room) (d speculate.Draft) {
	texts := [][]int32{history}
	for i := range g.r.IntN(room.Nodes + 1) {
		p := min(i, max(0, i-g.r.IntN(3)))
		token := 8 + g.r.Int32N(50)
		if g.r.IntN(4) > 0 {
			token = devicetest.Greedy(texts[p], 1, salt)[0]
		}
		if d.Child(p-1, token) >= 0 {
			break
		}
		d.Tokens, d.Parent = append(d.Tokens, token), append(d.Parent, int32(p-1))
		texts = append(texts, append(append([]int32(nil), texts[p]...), token))
	}
	return d
}

// drafters returns no drafter, a guesser, or prompt lookup.
func drafters(i int) func() speculate.Drafter {
	switch i % 3 {
	case 1:
		return func() speculate.Drafter { return guesser{rand.New(rand.NewPCG(uint64(i), 5))} }
	case 2:
		return func() speculate.Drafter { return speculate.NewLookup() }
	}
	return nil
}
