package cuda

import (
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// exchange adds an exchange with other ranks, which the host performs, to the schedule
// and emits the row ops after it.
func (e *emitter) exchange(s *schedule, r *layout.Region, x *layout.Exchange) error {
	talk := manifest.CUDAComm{Op: x.Op, Peer: x.Peer, Cols: x.Place.Pitch, Slot: x.Place.Buffer.Number}
	if x.TPSize > 0 {
		talk.Op = "exchange"
		p := &e.out.Plan
		p.TPSize, p.PartCols = max(p.TPSize, x.TPSize), max(p.PartCols, x.Place.Pitch)
	}
	s.launches = append(s.launches, manifest.CUDALaunch{Kernel: -1, Rows: r.Role, Comm: &talk})
	if x.Rows == nil {
		return nil
	}
	return e.rows(s, r, x.Rows)
}
