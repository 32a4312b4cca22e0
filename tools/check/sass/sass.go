// Package sass reads the machine code of GPU kernels, as cuobjdump prints it, and
// derives from a kernel's main loop how many bytes of weights it keeps in flight and how
// many instructions it spends on them.
package sass

import (
	"regexp"
	"strconv"
	"strings"
)

// A Kernel is the machine code of a kernel for one architecture.
type Kernel struct {
	Registers int // per thread
	Shared    int // bytes of static shared memory per block
	Code      []Instruction
}

// An Instruction is one instruction, without its predicate.
type Instruction struct {
	At       int    // address
	Op       string // with modifiers: "LDG.E.NA.128.CONSTANT"
	Operands string
}

var (
	archOf        = regexp.MustCompile(`^(?:arch = |\s*\.target\s+)(sm_\w+)`)
	registersOf   = regexp.MustCompile(`^\s*REG:(\d+) .*\bSHARED:(\d+)`)
	instructionOf = regexp.MustCompile(`^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)\s*([^;]*);`)
)

// Parse reads the output of cuobjdump -res-usage -sass: the kernels by architecture and
// name.
func Parse(dump string) map[string]map[string]*Kernel {
	out := map[string]map[string]*Kernel{}
	arch, name := "", ""
	kernel := func() *Kernel {
		if out[arch] == nil {
			out[arch] = map[string]*Kernel{}
		}
		if out[arch][name] == nil {
			out[arch][name] = &Kernel{}
		}
		return out[arch][name]
	}
	for line := range strings.Lines(dump) {
		switch {
		case archOf.MatchString(line):
			arch = archOf.FindStringSubmatch(line)[1]
		case strings.Contains(line, "Function : "), strings.HasPrefix(line, " Function "):
			_, after, _ := strings.Cut(line, "Function ")
			name = strings.Trim(after, " :\n")
		case strings.Contains(line, " REG:"):
			if m := registersOf.FindStringSubmatch(line); m != nil {
				k := kernel()
				k.Registers, k.Shared = number(m[1], 10), number(m[2], 10)
			}
		default:
			if m := instructionOf.FindStringSubmatch(line); m != nil {
				k := kernel()
				k.Code = append(k.Code, Instruction{number(m[1], 16), m[2], strings.TrimSpace(m[3])})
			}
		}
	}
	return out
}

func number(text string, base int) int {
	n, err := strconv.ParseInt(text, base, 64)
	if err != nil {
		return 0 // the regular expressions admit only digits
	}
	return int(n)
}

// Count returns the number of instructions whose name begins with the expression.
func (k *Kernel) Count(begins *regexp.Regexp) (n int) {
	for _, i := range k.Code {
		if at := begins.FindStringIndex(i.Op); at != nil && at[0] == 0 {
			n++
		}
	}
	return n
}

// A multiprocessor's limits (CUDA C++ Programming Guide, compute capabilities); all have
// 64 K registers.
type multiprocessor struct{ threads, shared int }

var multiprocessors = map[string]multiprocessor{
	"sm_80": {2048, 164 << 10}, "sm_86": {1536, 100 << 10}, "sm_89": {1536, 100 << 10}, "sm_90": {2048, 228 << 10}, "sm_100": {2048, 228 << 10},
}

// Resident returns how many blocks of the given number of threads and bytes of dynamic
// shared memory fit on an SM.
func (k *Kernel) Resident(arch string, threads, shared int) int {
	m, ok := multiprocessors[strings.TrimSuffix(arch, "a")]
	if !ok {
		return 0
	}
	const system = 1024 // bytes of shared memory that every block needs
	registers := (k.Registers + 7) / 8 * 8 * threads
	return min(m.threads/threads, 65536/registers, m.shared/(k.Shared+shared+system))
}
