package compiler

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/tools/check/sass"
)

var spillsOf = regexp.MustCompile(`entry function '(\S+)' for '(\S+)'\n.*\n\s+\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)

// mostSpilled is the most bytes of registers that a thread may keep in memory around its
// main loop. The loop stores none, and one in a hundred of its instructions may load them
// again, from L1: unpack of q2_b16 for sm_90a loads one word in 323 instructions, with 64
// registers as with 80. ptxas gives all registers to loads that it moves forward,
// and puts addresses that it needs before or after the loop into memory: at most 44 bytes
// in all gates, by flat_gemm64 for sm_80, which loads them again for 512 columns.
const mostSpilled = 48

// spills are the kernels that keep registers in memory, by what ptxas says, and what is
// wrong with that.
func spills(log string, code map[string]map[string]*sass.Kernel) (out []string) {
	for _, m := range spillsOf.FindAllStringSubmatch(log, -1) {
		n, _ := strconv.Atoi(m[3])
		if n == 0 && m[4] == "0" {
			continue
		}
		if c := code[m[2]][m[1]]; c != nil {
			if l, ok := c.MainLoop(); ok && l.Ops["STL"] == 0 && 100*l.Ops["LDL"] <= l.Instructions && n <= mostSpilled {
				continue
			}
		}
		out = append(out, fmt.Sprintf("%s for %s spills %s bytes of registers and loads %s", m[1], m[2], m[3], m[4]))
	}
	return out
}

// broken says which promises the code of a kernel breaks.
func broken(c *sass.Kernel, promises map[string]int, kernels []manifest.CUDAKernel, name, arch string) (out []string) {
	if c == nil || c.Registers == 0 {
		return []string{"there is no code"}
	}
	for what, n := range promises {
		switch what {
		case "REG":
			if c.Registers > n {
				out = append(out, fmt.Sprintf("%d registers, promised at most %d", c.Registers, n))
			}
		case "SLOTS":
			if mma, all := c.TensorLoop(); mma == 0 || all > n*mma {
				out = append(out, fmt.Sprintf("a main loop of %d instructions for %d tensor-core instructions, promised at most %d for each", all, mma, n))
			}
		case "BLOCKS":
			for _, k := range kernels {
				if have := c.Resident(arch, k.Threads, k.Shared); k.Name == name && have < n {
					out = append(out, fmt.Sprintf("%d blocks of %d threads fit on an SM (%d registers, %d bytes of shared memory), promised %d", have, k.Threads, c.Registers, c.Shared+k.Shared, n))
				}
			}
		default:
			if have := c.Count(regexp.MustCompile(what)); have < n {
				out = append(out, fmt.Sprintf("%d instructions %s, promised at least %d", have, what, n))
			}
		}
	}
	return out
}
