package compiler

import (
	"fmt"
	"regexp"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/tools/check/sass"
)

var spillsOf = regexp.MustCompile(`Function properties for (\S+)\s+\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)

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
