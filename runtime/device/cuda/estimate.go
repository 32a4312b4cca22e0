//go:build unix

package cuda

import (
	"cmp"
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
	issue  float64 // instructions of warps/s
	tensor float64 // 16-bit tensor core multiply-adds/s with mma.sync
	blas   float64 // the same with the instructions that cuBLASLt uses
	sms    float64 // multiprocessors
}

// smallGPU is the assumed memory bandwidth of an unknown GPU: 5 GHz over 256 bits.
const smallGPU = 320e9

// peakBytes returns the memory bandwidth in bytes/s: two transfers per clock over the
// whole bus. It returns 0 if the driver does not report the clock or the width.
func (g *GPU) peakBytes() float64 { return 2 * float64(g.MemoryKHz) * 1e3 * float64(g.BusBits) / 8 }

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
	r := roof{bytes: cmp.Or(g.peakBytes(), smallGPU), l2: or(g.L2Bytes, 4<<20), issue: 4 * clocks, tensor: 512 * clocks, sms: float64(max(g.Processors, 1))}
	if g.Compute == 80 || g.Compute >= 90 { // other GPUs have half the tensor core throughput
		r.tensor *= 2
	}
	if r.blas = r.tensor; g.Compute >= 90 { // wgmma, tcgen05
		r.blas *= 2
	}
	r.cached = 3 * r.bytes
	return r
}

// Estimated fraction of the peak that each implementation reaches: of the issue slots,
// and of the tensor cores.
const (
	shareIssue  = 0.75
	shareGemm   = 0.6
	shareCublas = 0.9
)

// instructions are the instructions of a warp per 16 rows and 64 columns of weights, as
// nvcc compiles the main loops for sm_90a: of q4_b64, and of 16-bit floats.
var instructions = map[string]struct {
	rows           int // activation rows that share one reading of the weights
	block, float16 float64
}{
	"gemv":        {1, 28, 74},
	"gemv4":       {4, 72, 186},
	"flat_gemm":   {16, 83, 128},
	"flat_gemm32": {32, 133, 178},
	"flat_gemm64": {64, 231, 305},
}

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
	if p, ok := instructions[impl]; ok {
		issued, mma := p.float16, 2.0 // 16-bit multiply-adds per weight and row: activations are split into two numbers
		if dt.IsBlock() {
			issued, mma = p.block, 0.5
		}
		n, again := float64((rows+p.rows-1)/p.rows), r.bytes
		if bytes < r.l2/2 { // after the first pass
			again = r.cached
		}
		t := max(bytes/r.bytes+(n-1)*bytes/again, n*issued*weights/1024/(shareIssue*r.issue))
		if p.rows > 4 {
			t = max(t, n*float64(p.rows)*weights*mma/(shareGemm*r.tensor))
		}
		if impl != "gemv" {
			t += launchTime // of the kernel that packs the rows
		}
		return t
	}
	up := func(n, tile int) float64 { return float64((n + tile - 1) / tile) }
	if impl == implGemm { // whole waves of blocks, each a tile of both factors
		waves := math.Ceil(up(rows, manifest.GemmTile) * up(s.N, manifest.GemmTile) / r.sms)
		macs := waves * r.sms * manifest.GemmTile * manifest.GemmTile * float64(s.K)
		return 3*launchTime + max(bytes/r.bytes, macs/(shareGemm*r.tensor))
	}
	macs := weights * up(rows, manifest.GemmTile) * manifest.GemmTile
	return 4*launchTime + bytes/r.bytes + 4*weights/r.cached + macs/(shareCublas*r.blas)
}
