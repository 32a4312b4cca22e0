//go:build unix

package cuda

import (
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// sizes are the sizes in bytes of a model's buffers.
type sizes struct {
	act, attention, experts, zeros int64
	counters                       int64 // of attention; they precede its partial results
	rows                           int64 // temporaries of row ops
	partial, arrived               int64 // of matmuls whose blocks divide K
	part, comm                     int64 // one rank's part of an exchange in the tensor-parallel group; the largest send or receive
	parts                          int64 // the parts of all ranks of the group
	slots                          []int64
	lora                           int64 // products of adapters' first matrices
	gemm                           gemmSizes
}

// step returns the bytes for the values of a step and the kernels' scratch memory.
func (s *sizes) step() int64 {
	n := s.act + s.counters + s.attention + s.experts + s.zeros + s.parts + s.rows + s.partial + s.arrived + s.lora + s.gemm.bytes()
	for _, slot := range s.slots {
		n += slot
	}
	return n
}

func (d *Device) sizes(cfg *device.Config) sizes {
	count := map[string]int{"tokens": cfg.MaxTokens, "out_rows": cfg.MaxOutRows, "sequences": cfg.MaxSeqs}
	rows, blocks, processors := int64(max(cfg.MaxTokens, cfg.MaxOutRows)), d.fillingBlocks(), d.GPU.Processors
	s := sizes{act: d.Plan.ActBytes * rows, rows: int64(d.Plan.RowFloats) * rows * 4, zeros: int64(cfg.MaxTokens) * 4}
	for _, sites := range d.Plan.Adapted {
		s.lora = max(s.lora, rows*int64(len(sites))*lora.MaxRank*4)
	}
	for _, slot := range d.Plan.Slots {
		s.slots = append(s.slots, int64(slot.Cols)*int64(count[slot.Rows])*4)
	}
	for _, a := range d.Plan.Attention {
		// Partial results exist only with several splits, and the number of blocks
		// limits them.
		parts := int64(max(blocks, a.Blocks)) * int64(a.Floats) * 4
		s.counters = max(s.counters, round64(int64(cfg.MaxTokens)*int64(a.Counters)*4))
		s.attention = max(s.attention, parts)
	}
	s.part = round64(rows * int64(d.Plan.PartCols) * 4)
	s.parts = int64(d.Plan.TPSize) * s.part
	for _, list := range d.Plan.Graphs {
		s.comm = max(s.comm, rows*int64(widest(list))*4)
		for l := range launches(list) {
			if d := l.Grid[2]; d.Parts > 0 && d.N > 1 { // several parts only if all blocks are resident
				s.partial = max(s.partial, int64(d.PerSM*processors)*int64(d.Parts)*4)
				s.arrived = int64(blocks) * 4
			}
		}
		s.gemm.need(d, list, func(l *manifest.CUDALaunch) int { return count[l.Rows] * max(l.Times, 1) })
	}
	for _, e := range d.Plan.Experts {
		pairs := rows * int64(e.TopK)
		lists := round64((2*(int64(e.Experts)+1) + 2*pairs + rows*int64(e.Experts)) * 4)
		s.experts = max(s.experts, lists+round64(rows*e.In)+round64(pairs*e.Hidden)+pairs*e.Out)
	}
	return s
}

func round64(n int64) int64 { return (n + 63) &^ 63 }

// kvBytes returns the size of the given number of KV cache pages.
func (d *Device) kvBytes(pages int) int64 {
	n := int64(0)
	for _, s := range d.Manifest.States {
		n += s.PageBytes * int64(s.Count)
	}
	return n * int64(pages)
}

// cellBytes returns the size of the given number of cells.
func (d *Device) cellBytes(cells int) int64 {
	n := int64(0)
	for _, bytes := range d.Manifest.CellBytes() {
		n += bytes
	}
	return n * int64(cells)
}

// ScratchBytes returns the bytes for the values of a step and its kernels' scratch
// memory.
func (d *Device) ScratchBytes(cfg *device.Config) int64 {
	s := d.sizes(cfg)
	return s.step()
}

// fits returns an error with the missing memory before anything is allocated.
func (d *Device) fits(cfg *device.Config, s *sizes) error {
	left, err := d.GPU.available()
	if err != nil {
		return err
	}
	step := s.step()
	for _, o := range cfg.Outputs {
		step += int64(o.Rows) * int64(o.Cols) * 4
	}
	weights, state := int64(len(cfg.Weights))-d.hostTables(), d.kvBytes(cfg.Pages)-d.hostKV(cfg.Pages)+d.cellBytes(cfg.Cells)
	if missing := weights + state + step - left; missing > 0 {
		mb := func(n int64) int64 { return (n + 999_999) / 1_000_000 }
		return fmt.Errorf("%s: %d MB are needed (weights %d, state %d, step %d), %d MB are free: %d MB are missing; lower the context, the concurrency or the number of KV cache pages, keep some data in host memory (host_kv_cache_percent, be_host_embeddings), or choose --device cpu",
			d.GPU.Name, mb(weights+state+step), mb(weights), mb(state), mb(step), left/1_000_000, mb(missing))
	}
	return nil
}
