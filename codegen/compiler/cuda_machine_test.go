package compiler

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A machineCode is what a kernel became for one kind of GPU.
type machineCode struct {
	registers, shared int // of a thread; bytes of a block that the kernel names itself
	instructions      []string
}

var (
	archOf        = regexp.MustCompile(`^(?:arch = |\s*\.target\s+)(sm_\w+)`)
	registersOf   = regexp.MustCompile(`^\s*REG:(\d+) .*\bSHARED:(\d+)`)
	instructionOf = regexp.MustCompile(`^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)`)
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
			out[arch][kernel] = &machineCode{}
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
				c.instructions = append(c.instructions, m[1])
			}
		}
	}
	return out
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
