package tune

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
)

// ThisMachine is the fingerprint of this machine as far as the system tells:
// Linux's /proc and /sys, elsewhere the architecture and the processors.
func ThisMachine() dispatch.Machine {
	m := dispatch.Machine{Arch: runtime.GOARCH, Cores: runtime.NumCPU()}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		identify(&m, string(text))
	}
	m.Caches = caches("/sys/devices/system/cpu/cpu0/cache")
	return m
}

// identify fills in the processor's identity from the first entry of
// /proc/cpuinfo, as x86 and (family and model apart) ARM write it.
func identify(m *dispatch.Machine, cpuinfo string) {
	number := func(text string) int {
		n, err := strconv.ParseInt(text, 0, 32)
		if err != nil {
			return 0
		}
		return int(n)
	}
	first, _, _ := strings.Cut(cpuinfo, "\n\n")
	for line := range strings.Lines(first) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "vendor_id", "CPU implementer":
			m.Vendor = value
		case "model name":
			m.CPU = value
		case "cpu family", "CPU architecture":
			m.Family = number(value)
		case "model", "CPU part":
			m.Model = number(value)
		}
	}
}

// caches lists the data caches below a folder of sysfs.
func caches(dir string) (out []dispatch.Cache) {
	list, err := filepath.Glob(filepath.Join(dir, "index*"))
	if err != nil {
		return nil
	}
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	for _, index := range list {
		level, err := strconv.Atoi(read(filepath.Join(index, "level")))
		kib, ok := strings.CutSuffix(read(filepath.Join(index, "size")), "K")
		size, err2 := strconv.ParseInt(kib, 10, 64)
		if err != nil || err2 != nil || !ok || read(filepath.Join(index, "type")) == "Instruction" {
			continue
		}
		out = append(out, dispatch.Cache{Level: level, Bytes: size << 10})
	}
	return out
}

// LastCache is the size of the largest cache, or 32 MiB when the system does
// not tell.
func LastCache(m dispatch.Machine) int64 {
	last := int64(0)
	for _, c := range m.Caches {
		last = max(last, c.Bytes)
	}
	if last == 0 {
		return 32 << 20
	}
	return last
}

// Matches says whether measurements made on one machine hold on another: the
// same kind of processor (architecture, vendor, family, model), the same
// variant of the kernels and as many threads; or the same model of GPU. Clock, memory and compiler may
// differ; they move crossings much less than they move times.
func Matches(made, here dispatch.Machine) bool {
	if a, b := made.GPU, here.GPU; a != nil || b != nil {
		return a != nil && b != nil && a.Name == b.Name && a.Compute == b.Compute && a.Processors == b.Processors && a.Emulated == b.Emulated
	}
	return made.Arch == here.Arch && made.Vendor == here.Vendor && made.Family == here.Family && made.Model == here.Model &&
		made.Threads == here.Threads && made.ISA == here.ISA && made.Vendor != ""
}

// Describe names a machine, or the GPU that was measured, in one line: "AMD EPYC
// (family 25, model 17), 2 threads, avx512".
func Describe(m dispatch.Machine) string {
	if g := m.GPU; g != nil {
		text := fmt.Sprintf("%s (compute capability %d.%d, %d multiprocessors)", g.Name, g.Compute/10, g.Compute%10, g.Processors)
		if g.Emulated {
			text += ": the emulation of CUDA, whose times mean nothing"
		}
		return text
	}
	name := m.CPU
	if name == "" {
		name = m.Arch
	}
	text := fmt.Sprintf("%s (family %d, model %d), %d threads", name, m.Family, m.Model, m.Threads)
	if m.Threads == 1 {
		text = strings.TrimSuffix(text, "s")
	}
	if m.ISA != "" {
		text += ", " + m.ISA
	}
	return text
}
