package irtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// WriteIndices adds a written index with the default value to some uses of array weights
// and states in the repeats of a module.
func WriteIndices(m *ir.Module, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x696e646578))
	for _, g := range m.Graphs {
		for _, rep := range g.FindOps("repeat") {
			for op := range rep.Body.All() {
				for i, a := range op.Args {
					if a.Index == nil && op.IndexCount(i) == 1 && rng.IntN(3) > 0 {
						op.Args[i].Index = []ir.Index{sameIndex(rng, rep.Int("lo"), rep.Int("hi"))}
					}
				}
			}
		}
	}
}

// sameIndex returns a formula that equals i for lo ≤ i < hi.
func sameIndex(rng *rand.Rand, lo, hi int) ir.Index {
	formulas := []string{
		"2*i/2", "(3*i+2)/3", fmt.Sprintf("i%%%d", hi), fmt.Sprintf("%d-(%d-i)", hi, hi), fmt.Sprintf("%d+(i-%d)", lo, lo), "i/2*2+i%2", fmt.Sprintf("(i+%d)%%%d", 5*hi, hi),
	}
	x, err := tensor.ParseIndex(formulas[rng.IntN(len(formulas))])
	if err != nil {
		panic("bug: " + err.Error())
	}
	return x
}
