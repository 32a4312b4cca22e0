//go:build unix

package cuda

import (
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/dtype"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A roof holds the peak rates of a GPU for a roofline model, which replaces a missing
// profile.
type roof struct {
	bytes  float64 // memory bandwidth, bytes/s
	cached float64 // L2 bandwidth, bytes/s
	l2     float64 // L2 size, bytes
	lanes  float64 // scalar operations/s
	tensor float64 // 16-bit tensor core multiply-adds/s with mma.sync
	sms    float64 // multiprocessors
}

// roof computes the peak rates from clocks, bus width and multiprocessors. For unknown
// attributes it assumes those of a small GPU.
func (g *GPU) roof() roof {
	or := func(v, otherwise int) float64 {
		if v > 0 {
			return float64(v)
		}
		return float64(otherwise)
	}
	clocks := float64(max(g.Processors, 1)) * or(g.ClockKHz, 1_000_000) * 1e3
	r := roof{bytes: 2 * or(g.MemoryKHz, 5_000_000) * 1e3 * or(g.BusBits, 256) / 8, l2: or(g.L2Bytes, 4<<20), lanes: 64 * clocks, tensor: 512 * clocks, sms: float64(max(g.Processors, 1))}
	if g.Compute == 80 || g.Compute >= 90 { // other GPUs have half the tensor core throughput
		r.tensor *= 2
	}
	r.cached = 3 * r.bytes
	return r
}

// Estimated fraction of the tensor core peak that each implementation reaches.
// flat_gemm reads its input rows from memory again for each panel.
const (
	shareFlat   = 0.25
	shareGemm   = 0.6
	shareCublas = 0.9
)

// launchTime is the cost of one more kernel inside a graph, in seconds.
const launchTime = 2e-6

// estimate returns the row count from which on each implementation of a matmul is the
// fastest, by a roofline model; -1: never. It considers those that may be selected.
// Measured profiles are more accurate.
func (g *GPU) estimate(s *manifest.Matmul, may func(impl string) bool) []int {
	from := make([]int, len(s.Impls))
	for i := range from {
		from[i] = -1
	}
	r := g.roof()
	last := -1
	for rows := 1; rows < dispatch.Rows; rows++ {
		best, least := 0, math.Inf(1)
		for i, name := range s.Impls {
			if !may(name) {
				continue
			}
			if t := r.time(s, name, rows); t < least*0.99 { // prefer the implementation for fewer rows in a tie
				best, least = i, t
			}
		}
		if best > last { // an implementation for more rows is never followed by one for fewer
			from[best], last = rows, best
		}
	}
	return from
}

// time returns a lower bound for the time of an implementation, in seconds.
func (r roof) time(s *manifest.Matmul, impl string, rows int) float64 {
	weights := float64(s.N) * float64(s.K)
	dt, ok := dtype.Parse(s.DType)
	if !ok {
		return math.Inf(1)
	}
	bytes := weights * float64(dt.BlockBytes()) / float64(dt.Block())
	mul, unpack := 1.0, 0.5 // scalar operations per weight and row, and per weight
	mma := 2.0              // 16-bit multiply-adds per weight and row: unquantized weights are split into two numbers
	if dt.IsBlock() {
		mul, unpack, mma = 0.25, 0.75, 0.5
	}
	// Each pass reads all weights; after the first pass they may be in L2.
	passes := func(per int, lanes, tensor float64) float64 {
		n := float64((rows + per - 1) / per)
		again := r.bytes
		if bytes < r.l2/2 {
			again = r.cached
		}
		read := bytes/r.bytes + (n-1)*bytes/again
		return max(read, n*weights*lanes/r.lanes, n*weights*tensor/(shareFlat*r.tensor))
	}
	switch impl {
	case "gemv":
		return passes(1, unpack+mul, 0)
	case "gemv4":
		return launchTime + passes(4, unpack+4*mul, 0)
	case "flat_gemm":
		return launchTime + passes(8, unpack, 8*mma)
	case "flat_gemm32":
		return launchTime + passes(32, unpack, 32*mma)
	}
	up := func(n, tile int) float64 { return float64((n + tile - 1) / tile) }
	if impl == implGemm { // whole waves of blocks, each a tile of both factors
		waves := math.Ceil(up(rows, manifest.GemmTile) * up(s.N, manifest.GemmTile) / r.sms)
		macs := waves * r.sms * manifest.GemmTile * manifest.GemmTile * float64(s.K)
		return 3*launchTime + max(bytes/r.bytes, macs/(shareGemm*r.tensor))
	}
	macs := weights * up(rows, manifest.GemmTile) * manifest.GemmTile
	return 4*launchTime + bytes/r.bytes + 4*weights/r.cached + macs/(shareCublas*r.tensor)
}
