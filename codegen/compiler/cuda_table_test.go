package compiler

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/tools/check/sass"
)

var (
	rateTable     = flag.String("table", "", "derive from the machine code whether matmuls keep enough bytes in flight: all, or one MODEL/TYPE")
	rateTableFile = flag.String("table-file", "", "write the table of -table to this file as Markdown")
)

// A gpuKind is a GPU with the figures of its data sheet and an assumed latency of a
// load under bandwidth load.
type gpuKind struct {
	name, arch         string
	sms                int
	gbs, ghz, latencyS float64
}

var gpuKinds = []gpuKind{
	{"RTX A6000", "sm_86", 84, 768, 1.80, 600e-9},
	{"A100 80 GB", "sm_80", 108, 2039, 1.41, 580e-9},
	{"RTX 4090", "sm_89", 128, 1008, 2.52, 600e-9},
	{"H100 SXM", "sm_90a", 132, 3350, 1.755, 710e-9},
	{"L40S", "sm_89", 142, 864, 2.52, 600e-9},
	{"B200", "sm_100", 148, 8000, 1.85, 740e-9},
}

// needed returns the bytes per SM that must be under way at full bandwidth (Little's law).
func (g gpuKind) needed() float64 { return g.gbs * 1e9 * g.latencyS / float64(g.sms) }

// perClock returns the bytes that an SM gets per clock at full bandwidth.
func (g gpuKind) perClock() float64 { return g.gbs / float64(g.sms) / g.ghz }

// What the gate demands for one row: of the bytes that must be in flight, and of the four
// instructions that an SM can issue per clock. More rows are reported. Hidden rows of
// experts are packed in whole blocks of columns, which leaves a B200 fewer thread blocks
// than it can run at once: 84 % for DeepSeek-V3 in q4_b64. A trellis-coded weight takes
// some twelve instructions for four levels, which no GPU with fast memory can issue at full
// bandwidth: only their number is limited, so that it does not grow.
const (
	leastInFlight  = 0.9
	leastOfExperts = 0.8 // hidden rows
	mostIssued     = 2.5
	mostPerWeight  = 4.5 // instructions of a thread
	smallMatrix    = 2 << 20
)

// A rate is what one matmul of a model does on a GPU for some number of rows.
type rate struct {
	matrix   string
	rows     int
	blocks   int
	resident int     // blocks per SM
	inFlight float64 // bytes per SM
	all      float64 // bytes of the matrix per SM
	issued   float64 // instructions of warps per clock and SM at full bandwidth
	trellis  float64 // instructions of a thread per weight, if weights are trellis-coded
}

// short returns what full bandwidth lacks; "" if nothing.
func (r rate) short(g gpuKind) string {
	least := leastInFlight
	if strings.Contains(r.matrix, "_experts_hidden") {
		least = leastOfExperts
	}
	need := least * math.Min(g.needed(), r.all) // small matrices are in flight as a whole
	switch {
	case r.inFlight < need:
		return fmt.Sprintf("%s, %d rows: %.0f bytes in flight per SM, at least %.0f are needed", r.matrix, r.rows, r.inFlight, need)
	case r.trellis > mostPerWeight && r.rows == 1: // more rows need more, for each
		return fmt.Sprintf("%s, %d rows: %.1f instructions per weight, at most %.1f", r.matrix, r.rows, r.trellis, mostPerWeight)
	case r.trellis == 0 && r.issued > mostIssued:
		return fmt.Sprintf("%s, %d rows: %.1f instructions per clock, at most %.1f", r.matrix, r.rows, r.issued, mostIssued)
	}
	return ""
}

// TestCUDATable holds the matmuls of published models to the bytes in flight and the
// instructions that full bandwidth needs, derived from machine code, registers,
// occupancy and launches.
func TestCUDATable(t *testing.T) {
	if *rateTable == "" {
		t.Skip("-args -table all derives the table; it needs nvcc and takes minutes")
	}
	nvcc, err := toolchain.FindNVCC(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	models := []string{"llama2-7b", "llama3-8b-instruct", "qwen3-8b", "mixtral-8x7b-instruct", "deepseek-v3"}
	quants := []string{"q4_b64", "q8_b64", "f16"}
	if model, quant, one := strings.Cut(*rateTable, "/"); one {
		models, quants = []string{model}, []string{quant}
	}
	var rows []string
	for _, model := range models {
		for _, quant := range quants {
			g := &gated{model: model, quant: quant}
			for _, a := range toolchain.GPUArchs {
				g.archs = append(g.archs, a.Name)
			}
			m := g.cuda(t)
			_, code := g.compile(t, nvcc.Path, m, func(u codegen.CUDAUnit) bool { return u.Compute == 0 && strings.Contains(u.Source, "ifl_gemv<") }, g.archs)
			for _, rowCount := range []int{1, 16, 64} {
				line := fmt.Sprintf("| %s | %s | %d |", model, quant, rowCount)
				for _, gpu := range gpuKinds {
					line += " " + worst(t, gpu, rates(t, gpu, &m.Plan, code[gpu.arch], rowCount)) + " |"
				}
				t.Log(line)
				rows = append(rows, line)
			}
		}
	}
	if *rateTableFile != "" {
		head := "| model | weights | rows |"
		for _, g := range gpuKinds {
			head += fmt.Sprintf(" %s |", g.name)
		}
		text := head + "\n|" + strings.Repeat("---|", 3+len(gpuKinds)) + "\n" + strings.Join(rows, "\n") + "\n"
		if err := os.WriteFile(*rateTableFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// worst returns a cell of the table: the lowest share of the bytes that must be in
// flight, and the most instructions per clock, of a model's matmuls.
func worst(t *testing.T, gpu gpuKind, list []rate) string {
	share, issued, mark := math.Inf(1), 0.0, ""
	for _, r := range list {
		t.Logf("%s %s, %d rows: %d blocks, %d per SM, %.1f waves, %.0f bytes in flight per SM of %.0f, %.2f instructions per clock", gpu.name, r.matrix, r.rows,
			r.blocks, r.resident, float64(r.blocks)/float64(gpu.sms*max(r.resident, 1)), r.inFlight, gpu.needed(), r.issued)
		share, issued = math.Min(share, r.inFlight/math.Min(gpu.needed(), r.all)), math.Max(issued, r.issued)
		text := r.short(gpu)
		if text != "" || r.issued > mostIssued {
			mark = "**"
		}
		if text != "" && r.rows == 1 {
			t.Errorf("%s: %s", gpu.name, text)
		}
	}
	return fmt.Sprintf("%s%.0f %%, %.1f%s", mark, 100*share, issued, mark)
}

// rates returns the rates of the plan's large matmuls with the kernels that compute the
// given number of rows.
func rates(t *testing.T, gpu gpuKind, plan *manifest.CUDA, code map[string]*sass.Kernel, rows int) (out []rate) {
	var walk func(list []manifest.CUDALaunch)
	walk = func(list []manifest.CUDALaunch) {
		for i := range list {
			l := &list[i]
			walk(l.Body)
			if bytes, name := matrixOf(plan, l, rows); bytes > smallMatrix {
				r, err := rateOf(gpu, plan, l, code, rows, bytes)
				if err != nil {
					t.Error(err)
					continue
				}
				r.matrix = name
				if !slices.Contains(out, r) {
					out = append(out, r)
				}
			}
		}
	}
	for _, g := range plan.Graphs {
		walk(g)
	}
	return out
}

// matrixOf returns the bytes and the name of the matrix that a launch multiplies with
// the given number of rows; 0 if it multiplies none.
func matrixOf(plan *manifest.CUDA, l *manifest.CUDALaunch, rows int) (bytes float64, name string) {
	if l.Body != nil || l.Gemm != nil || l.Comm != nil {
		return 0, ""
	}
	kernel := plan.Kernels[l.Kernel].Name
	if l.Choice == nil {
		if _, part, ok := strings.Cut(kernel, "_experts_"); ok && (strings.HasPrefix(part, "hidden") || strings.HasPrefix(part, "down")) &&
			rows >= l.From && (l.To == 0 || rows <= l.To) {
			return math.Inf(1), kernel
		}
		return 0, ""
	}
	m := plan.Matmuls[l.Choice.Matmul]
	impl := 0
	for i, from := range m.Rows {
		if from > 0 && rows >= from {
			impl = i
		}
	}
	if !slices.Contains(l.Choice.Impls, impl) || !strings.Contains(kernel, "_gemv") && !strings.Contains(kernel, "_flat_gemm") {
		return 0, ""
	}
	dt, _ := tensor.ParseDType(m.DType)
	return float64(m.N) * float64(m.K) * float64(dt.BlockBytes()) / float64(dt.Block()), fmt.Sprintf("%s [%d, %d]", m.Name, m.N, m.K)
}

func rateOf(gpu gpuKind, plan *manifest.CUDA, l *manifest.CUDALaunch, code map[string]*sass.Kernel, rows int, bytes float64) (r rate, err error) {
	k := plan.Kernels[l.Kernel]
	machine := code[k.Name]
	if machine == nil {
		return r, fmt.Errorf("%s has no machine code for %s", k.Name, gpu.arch)
	}
	loop, ok := machine.MainLoop()
	if !ok {
		return r, fmt.Errorf("%s for %s: no loop loads weights", k.Name, gpu.arch)
	}
	r.rows, r.blocks, r.resident = rows, gridOf(gpu, l, rows), machine.Resident(gpu.arch, k.Threads, k.Shared)
	busy := math.Min(float64(r.blocks)/float64(gpu.sms), float64(r.resident))
	r.all = bytes / float64(gpu.sms)
	r.inFlight = math.Min(busy*float64(k.Threads)*perThread(loop, bytes/float64(r.blocks*k.Threads)), r.all)
	instructions := perByte(loop, bytes, plan, l)
	r.issued = instructions * gpu.perClock()
	if l.Choice != nil {
		dt, _ := tensor.ParseDType(plan.Matmuls[l.Choice.Matmul].DType)
		if tensor.TrellisOf(dt) != nil {
			r.trellis = 32 * instructions * float64(dt.BlockBytes()) / float64(dt.Block())
		}
	}
	return r, nil
}

// perThread returns the bytes of weights in flight per thread if threads have the given
// number of bytes on average. They take what an iteration reads at a time, so some of a
// small matrix's have none. One that has no more than it loads before the loop has all in
// flight.
func perThread(loop sass.Loop, average float64) float64 {
	of := math.Max(average, float64(loop.Bytes)) // of a thread with weights
	if of <= float64(loop.Opening) {
		return average
	}
	return math.Min(average/float64(loop.Bytes), 1) * loop.InFlight
}

// perByte returns the instructions of a warp per byte of weights. The loop of flat_gemm
// is inside one over chunks of 512 columns (128 or 64 of 16-bit floats).
func perByte(loop sass.Loop, bytes float64, plan *manifest.CUDA, l *manifest.CUDALaunch) float64 {
	instructions := float64(loop.Instructions)
	if strings.Contains(plan.Kernels[l.Kernel].Name, "_flat_gemm") && loop.Outer > 0 {
		m := plan.Matmuls[l.Choice.Matmul]
		chunk := 512 * 16 * bytes / (float64(m.N) * float64(m.K)) / 32 // of a thread
		instructions += float64(loop.Outer) * float64(loop.Bytes) / math.Max(chunk, float64(loop.Bytes))
	}
	return instructions / float64(32*loop.Bytes)
}

// gridOf returns the number of blocks of a launch.
func gridOf(gpu gpuKind, l *manifest.CUDALaunch, rows int) int {
	n := 1
	for _, d := range l.Grid {
		if d.Parts > 0 {
			n *= d.PartsOf(n, gpu.sms)
		} else {
			n *= d.Blocks(rows, 1)
		}
	}
	return n
}
