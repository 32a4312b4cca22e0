package compiler

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A machineCode is what a kernel became for one kind of GPU.
type machineCode struct {
	registers, shared int // of a thread; bytes of a block that the kernel names itself
	instructions      []string
	at                []int64       // their addresses
	back              map[int]int64 // instructions that branch back, to an address
}

// mainLoop is the loop with the most tensor-core instructions: their number, and that
// of all its instructions.
func (c *machineCode) mainLoop() (mma, all int) {
	for from, to := range c.back {
		n, size := 0, 0
		for i := from; i >= 0 && c.at[i] >= to; i-- {
			size++
			if strings.HasPrefix(c.instructions[i], "HMMA") || strings.HasPrefix(c.instructions[i], "HGMMA") {
				n++
			}
		}
		if n > mma || n == mma && size < all {
			mma, all = n, size
		}
	}
	return mma, all
}

var (
	archOf        = regexp.MustCompile(`^(?:arch = |\s*\.target\s+)(sm_\w+)`)
	registersOf   = regexp.MustCompile(`^\s*REG:(\d+) .*\bSHARED:(\d+)`)
	instructionOf = regexp.MustCompile(`^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)([^;]*)`)
	targetOf      = regexp.MustCompile(`\b0x([0-9a-f]+)\b`)
	spillsOf      = regexp.MustCompile(`Function properties for (\S+)\s+\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
)

// machineCodes reads what cuobjdump says of a fatbin: by GPU and kernel.
func machineCodes(dump string) map[string]map[string]*machineCode {
	out := map[string]map[string]*machineCode{}
	arch, kernel := "", ""
	at := func() *machineCode {
		if out[arch] == nil {
			out[arch] = map[string]*machineCode{}
		}
		if out[arch][kernel] == nil {
			out[arch][kernel] = &machineCode{back: map[int]int64{}}
		}
		return out[arch][kernel]
	}
	for line := range strings.Lines(dump) {
		switch {
		case archOf.MatchString(line):
			arch = archOf.FindStringSubmatch(line)[1]
		case strings.Contains(line, "Function : "), strings.HasPrefix(line, " Function "):
			_, name, _ := strings.Cut(line, "Function ")
			kernel = strings.Trim(name, " :\n")
		case strings.Contains(line, " REG:"):
			if m := registersOf.FindStringSubmatch(line); m != nil {
				c := at()
				c.registers, _ = strconv.Atoi(m[1])
				c.shared, _ = strconv.Atoi(m[2])
			}
		default:
			if m := instructionOf.FindStringSubmatch(line); m != nil {
				c := at()
				c.at = append(c.at, hexadecimal(m[1]))
				if to := targetOf.FindStringSubmatch(m[3]); strings.HasPrefix(m[2], "BRA") && to != nil && hexadecimal(to[1]) < c.at[len(c.at)-1] {
					c.back[len(c.instructions)] = hexadecimal(to[1])
				}
				c.instructions = append(c.instructions, m[2])
			}
		}
	}
	return out
}

func hexadecimal(s string) int64 {
	v, _ := strconv.ParseInt(s, 16, 64)
	return v
}

// spills are the kernels that keep registers in memory, by what ptxas says.
func spills(log string) (out []string) {
	for _, m := range spillsOf.FindAllStringSubmatch(log, -1) {
		if m[2] != "0" || m[3] != "0" {
			out = append(out, m[0])
		}
	}
	return out
}

// broken says which promises the code of a kernel breaks.
func (c *machineCode) broken(promises map[string]int, kernels []manifest.CUDAKernel, name, arch string) (out []string) {
	if c == nil || c.registers == 0 {
		return []string{"there is no code"}
	}
	for what, n := range promises {
		switch what {
		case "REG":
			if c.registers > n {
				out = append(out, fmt.Sprintf("%d registers, promised at most %d", c.registers, n))
			}
		case "SLOTS":
			if mma, all := c.mainLoop(); mma == 0 || all > n*mma {
				out = append(out, fmt.Sprintf("a main loop of %d instructions for %d tensor-core instructions, promised at most %d for each", all, mma, n))
			}
		case "BLOCKS":
			for _, k := range kernels {
				if have := c.blocks(k, arch); k.Name == name && have < n {
					out = append(out, fmt.Sprintf("%d blocks of %d threads fit on a multiprocessor (%d registers, %d bytes of shared memory), promised %d", have, k.Threads, c.registers, c.shared+k.Shared, n))
				}
			}
		default:
			have, begins := 0, regexp.MustCompile("^"+what)
			for _, i := range c.instructions {
				if begins.MatchString(i) {
					have++
				}
			}
			if have < n {
				out = append(out, fmt.Sprintf("%d instructions %s, promised at least %d", have, what, n))
			}
		}
	}
	return out
}

// A multiprocessor's threads and bytes of shared memory (CUDA C++ Programming
// Guide, compute capabilities); all have 64 K registers.
type multiprocessor struct{ threads, shared int }

var multiprocessors = map[string]multiprocessor{
	"sm_80": {2048, 164 << 10}, "sm_86": {1536, 100 << 10}, "sm_89": {1536, 100 << 10}, "sm_90": {2048, 228 << 10}, "sm_100": {2048, 228 << 10},
}

// blocks is how many blocks of a kernel a multiprocessor holds at once.
func (c *machineCode) blocks(k manifest.CUDAKernel, arch string) int {
	m, ok := multiprocessors[strings.TrimSuffix(arch, "a")]
	if !ok {
		return 0
	}
	registers := (c.registers + 7) / 8 * 8 * k.Threads
	shared := c.shared + k.Shared + 1024 // the system's own
	return min(m.threads/k.Threads, 65536/registers, m.shared/shared)
}

// TestMainLoop: of nested loops, the smallest with all tensor-core instructions is
// counted, and a promise that it breaks is reported.
func TestMainLoop(t *testing.T) {
	t.Parallel()
	dump := `arch = sm_90a
 Function k:
  REG:32 STACK:0 SHARED:0
	Function : k
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   IADD3 R2, R2, 0x1, RZ ;
        /*0020*/                   HGMMA.64x128x16.F32 R24, R104, gdesc[UR4], R24 ;
        /*0030*/                   HGMMA.64x128x16.F32 R24, R104, gdesc[UR4], R24 ;
        /*0040*/              @!P0 BRA 0x20 ;
        /*0050*/                   BRA 0x60 ;
        /*0060*/               @P1 BRA 0x10 ;
`
	c := machineCodes(dump)["sm_90a"]["k"]
	if mma, all := c.mainLoop(); mma != 2 || all != 3 {
		t.Errorf("%d tensor-core instructions of %d, want 2 of 3", mma, all)
	}
	if broken := c.broken(map[string]int{"SLOTS": 1}, nil, "k", "sm_90a"); len(broken) != 1 {
		t.Errorf("%q", broken)
	}
	if broken := c.broken(map[string]int{"SLOTS": 2}, nil, "k", "sm_90a"); len(broken) != 0 {
		t.Errorf("%q", broken)
	}
}
