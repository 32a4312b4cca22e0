package codegen

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// commRegion lists an exchange with other ranks, which the host makes, and emits
// the row ops behind it.
func (g *cudaGen) commRegion(s *cudaSchedule, op *ir.Op, after []*ir.Op) error {
	talk := manifest.CUDAComm{Op: op.Def.Name}
	var v *ir.Value // whose rows they are
	switch op.Def.Name {
	case "send":
		v, talk.Peer = op.Args[0].Value, op.Int("to")
	case "recv":
		v, talk.Peer = op.Results[0], op.Int("from")
	default:
		v, talk.Op = op.Args[0].Value, "exchange"
		plan := &g.model.Plan
		plan.Members = max(plan.Members, op.Int("members"))
		plan.PartCols = max(plan.PartCols, round16(v.Type.Cols()))
		after = append([]*ir.Op{op}, after...)
	}
	talk.Cols = round16(v.Type.Cols())
	var err error
	if talk.Slot, err = g.slotOf(v); err != nil {
		return fmt.Errorf("%s: %w", pos(op), err)
	}
	s.launches = append(s.launches, manifest.CUDALaunch{Kernel: -1, Rows: v.Role(), Comm: &talk})
	if len(after) == 0 {
		return nil
	}
	return g.rowRegion(s, after)
}

// slotOf is the number of a value's buffer.
func (g *cudaGen) slotOf(v *ir.Value) (int, error) {
	if i := slices.Index(g.list, g.slots[v]); i >= 0 && g.outputAt(v) < 0 {
		return i, nil
	}
	return 0, fmt.Errorf("%s has no buffer of its own that could be sent", v)
}
