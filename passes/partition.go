package passes

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
)

// Partition places layers on device groups and splits them within each group
// (pipeline and tensor parallel).
var Partition = &Pass{
	Name:  "partition",
	Brief: "places layers and heads on devices",
	Doc: "Places layers on the groups of the device string (an annotation), and splits the layers of a group with several ranks (Megatron-LM, §3; Inferflow report, Table 4). Query, key, value, gate and up projections are split by rows, so that each rank has whole heads and a part of the hidden columns. Output and down projections are split by columns. One all_reduce adds their partial sums before the residual, or a single one for both if they meet in one sum. " +
		"The KV cache is split by heads. If there are more ranks than KV heads, several ranks hold the same KV head. Experts are distributed over the ranks. A head with more outputs than inputs is split by rows and gathered. Every rank computes the ops that cannot be split.",
	Tolerance: 1e-9, // partial sums
	Run:       partition,
}

func partition(env *Env, m *ir.Module) error {
	if len(env.Devices) == 0 || len(env.Devices) == 1 && len(env.Devices[0]) == 1 {
		return nil
	}
	tpSize := len(env.Devices[0])
	for _, g := range env.Devices {
		if len(g) != tpSize {
			return fmt.Errorf("device groups of %d and %d ranks: all groups need the same size, because their layers form one loop; name the same number of devices in each group, or all in one group, and give a group more layers with *N", tpSize, len(g))
		}
	}
	if len(env.Devices) > 1 {
		if err := placeLayers(env.Devices, m); err != nil {
			return err
		}
	}
	if tpSize == 1 {
		return nil
	}
	geo, err := geometries(m, tpSize)
	if err != nil {
		return err
	}
	for _, st := range m.States {
		if geo[st] == nil && !draftsOnly(m, st) {
			env.notice("the heads of %s are not divided among the devices of a group, because its output is needed whole", st)
		}
	}
	s := &sharder{env: env, mod: m, n: tpSize, names: ir.NewNames(m), geo: geo, weights: map[string]*ir.Value{}, split: map[*ir.Value]bool{}, columns: map[stateColumns]*ir.Value{}}
	for _, g := range m.Graphs {
		if g.Name == ir.DraftGraph { // runs on one rank, see projector.draft
			continue
		}
		for _, rep := range g.FindOps("repeat") {
			if err := s.separate(g, rep.Body); err != nil {
				return err
			}
		}
		s.uses = ir.Uses(g)
		for _, rep := range g.FindOps("repeat") {
			if err := s.layer(rep); err != nil {
				return fmt.Errorf("splitting a layer among %d devices: %w", tpSize, err)
			}
		}
		if err := s.heads(g); err != nil {
			return fmt.Errorf("splitting the head among %d devices: %w", tpSize, err)
		}
	}
	return nil
}

// draftsOnly reports whether only the graph that proposes tokens uses a state.
func draftsOnly(m *ir.Module, st *ir.Value) bool {
	for _, g := range m.Graphs {
		for op := range g.All() {
			for _, a := range op.Args {
				if a.Value == st {
					return g.Name == ir.DraftGraph
				}
			}
		}
	}
	return false
}

func where(op *ir.Op) string { return fmt.Sprintf("%s: op %s", op.Pos, op.Def.Name) }
