package templates

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/ir/tensor"
)

var (
	benchShape   = flag.String("shape", "4096x4096", "benchmark: N x K of the weights")
	benchRows    = flag.String("rows", "1,4,16,512", "benchmark: row counts")
	benchThreads = flag.Int("threads", runtime.NumCPU(), "benchmark: threads")
	benchISA     = flag.String("isa", ISAs()[0].Name, "benchmark: instruction set")
	benchCC      = flag.String("cc", "gcc", "benchmark: C compiler")
	benchTypes   = flag.String("types", "", "benchmark: weight types; all when empty")
)

type benchFuncs struct {
	alloc func(n int64) *byte
	run   func(mm uintptr, w *byte, copyBytes int64, copies, k, panels, rows int32, act, y *byte, threads, reps int32, seconds *float64) int32
}

// BenchmarkMatmul times every kernel on weights that come from memory, not
// from a cache: GB/s of weights, the share of the read bandwidth that a probe
// measured just before, and 10⁹ multiply-adds·2 a second. Best of the
// repetitions. For example: go test ./templates -run NONE -bench Matmul -types q4_b64 -rows 1,512 -benchtime 30x
func BenchmarkMatmul(b *testing.B) {
	c := load1(b)
	isa, ok := findISA(*benchISA)
	if !ok || !slices.ContainsFunc(runnable(), func(s ISA) bool { return s.Name == isa.Name }) {
		b.Skipf("this processor has no %s", *benchISA)
	}
	var n, k int
	if _, err := fmt.Sscanf(*benchShape, "%dx%d", &n, &k); err != nil || n%16 != 0 {
		b.Fatalf("-shape %q: want NxK, N a multiple of 16", *benchShape)
	}
	text, err := os.ReadFile("testdata/bench.c")
	if err != nil {
		b.Fatal(err)
	}
	sources := map[string]string{"bench": string(text)}
	kernels := benchKernels(b, c)
	for _, v := range kernels {
		sources[v.k.Symbol(v.dt)] = source(b, v.k, v.dt, isa.Name)
	}
	lib := library(b, *benchCC, isa, sources)
	var f benchFuncs
	purego.RegisterLibFunc(&f.alloc, lib, "bench_alloc")
	purego.RegisterLibFunc(&f.run, lib, "bench_run")
	const pool = 256 << 20
	memory := f.alloc(pool)
	y := f.alloc(int64(512 * n * 4))
	act := f.alloc(int64(tileBytes("f32", k, 1) * 512))
	if memory == nil || y == nil || act == nil {
		b.Fatal("not enough memory")
	}
	for _, v := range kernels {
		for _, r := range strings.Split(*benchRows, ",") {
			rows, err := strconv.Atoi(r)
			if err != nil || rows < 1 || rows > 512 {
				b.Fatalf("-rows %q: want counts from 1 to 512", *benchRows)
			}
			b.Run(fmt.Sprintf("%s·%s/%s/%d", v.dt, v.k.Act(v.dt), v.k.Impl, rows), func(b *testing.B) {
				size := int64(packedBytes(v.dt, n, k))
				seconds := make([]float64, max(b.N, 64))
				best := func(mm uintptr, reps int) float64 {
					if f.run(mm, memory, size, int32(pool/size), int32(k), int32(n/16), int32(rows), act, y, int32(*benchThreads), int32(reps), &seconds[0]) != 0 {
						b.Fatal("threads could not be started")
					}
					return slices.Min(seconds[:reps])
				}
				probe := best(0, min(max(b.N, 8), 64))
				t := best(symbol(b, lib, v.k.Symbol(v.dt)), b.N)
				b.ReportMetric(float64(size)/t*1e-9, "GB/s")
				b.ReportMetric(100*probe/t, "%read")
				b.ReportMetric(2*float64(n)*float64(k)*float64(rows)/t*1e-9, "GOP/s")
			})
		}
	}
}

type benchKernel struct {
	dt tensor.DType
	k  *Kernel
}

func benchKernels(b *testing.B, c *Catalog) []benchKernel {
	var out []benchKernel
	for dt := tensor.F32; dt <= tensor.Q2B32; dt++ {
		if *benchTypes != "" && !slices.Contains(strings.Split(*benchTypes, ","), dt.String()) {
			continue
		}
		for _, act := range []string{Act(dt), "bf16"} {
			for _, k := range c.CandidatesFor("matmul", dt, act) {
				out = append(out, benchKernel{dt, k})
			}
		}
	}
	return out
}

// packedBytes is the size of n×k weights in panels.
func packedBytes(dt tensor.DType, n, k int) int {
	if !dt.IsBlock() {
		return n * k * dt.BlockBytes()
	}
	one := packCodes(dt, make([]byte, 16*dt.Block()))
	size := len(one) + 32
	if tensor.HasBase(dt) {
		size += 32
	}
	return n / 16 * ((k + dt.Block() - 1) / dt.Block()) * size
}
