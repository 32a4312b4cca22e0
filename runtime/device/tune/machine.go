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

// ThisMachine returns the fingerprint of this machine, read from Linux's /proc and
// /sys. On other systems it contains only the architecture and the number of CPUs.
func ThisMachine() dispatch.Machine {
	m := dispatch.Machine{Arch: runtime.GOARCH, Cores: runtime.NumCPU()}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		identify(&m, string(text))
	}
	m.Caches = caches("/sys/devices/system/cpu/cpu0/cache")
	return m
}

// identify sets the CPU's identity from the first entry of /proc/cpuinfo. It knows the
// keys of x86 and ARM.
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

// caches lists the data caches below a sysfs folder.
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

// llc returns the size of the largest cache in bytes, or 32 MiB if it is unknown.
// $IFLOWC_LLC overrides it: a virtual machine may report the whole LLC of its host.
func llc(m dispatch.Machine) (int64, error) {
	if text := os.Getenv("IFLOWC_LLC"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1<<10 || n > 1<<40 {
			return 0, fmt.Errorf("IFLOWC_LLC: expected a number of bytes, have %q", text)
		}
		return n, nil
	}
	largest := int64(0)
	for _, c := range m.Caches {
		largest = max(largest, c.Bytes)
	}
	if largest == 0 {
		return 32 << 20, nil
	}
	return largest, nil
}

// Matches reports whether measurements made on one machine apply to another: the same
// CPU model (architecture, vendor, family, model), kernel variant and number of
// threads, or the same GPU model. Clock, memory and compiler may differ: they change
// crossings much less than times.
func Matches(made, here dispatch.Machine) bool {
	if a, b := made.GPU, here.GPU; a != nil || b != nil {
		return a != nil && b != nil && a.Name == b.Name && a.Compute == b.Compute && a.Processors == b.Processors && a.Emulated == b.Emulated
	}
	return made.Arch == here.Arch && made.Vendor == here.Vendor && made.Family == here.Family && made.Model == here.Model &&
		made.Threads == here.Threads && made.ISA == here.ISA && made.Vendor != ""
}

// Describe returns one line about a machine or its measured GPU, such as "AMD EPYC
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
