package compiler

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/passes/cost"
)

// What a processor is taken to do where no profile of this machine says it: GB/s
// of a memory, and operations a second of a core in 8-bit integers.
const (
	usualRead = 40e9
	usualPeak = 200e9
)

// memoriesHere is this machine as devices: each memory with its processors, for
// what one memory gives is shared by all that read it.
// read is what one of them gives, in bytes a second; 0: not measured.
func memoriesHere(read float64) (*cost.Machine, error) {
	if read <= 0 {
		read = usualRead
	}
	m := &cost.Machine{Group: cost.Link{Latency: cost.Range{Low: 10e-6, Mid: 3e-6, High: 1e-6}, Bandwidth: 10e9, Style: cost.Direct, Float: 4}}
	m.Border = m.Group
	sizes := memories("/sys/devices/system/node")
	if len(sizes) == 0 {
		return nil, fmt.Errorf("devices auto: the size of this machine's memory cannot be read here; write the device string, or name a machine, such as auto:8xh100")
	}
	for i, bytes := range sizes {
		m.Devices = append(m.Devices, cost.Device{
			Name: fmt.Sprint(i), Memory: bytes, Read: read, Peak: usualPeak * float64(max(1, runtime.NumCPU()/len(sizes))),
			Reach: cost.Range{Low: 0.5, Mid: 0.75, High: 0.95}, Fixed: 10e-6,
		})
	}
	return m, nil
}

// memories lists the sizes of the memories that have processors, in bytes; where
// the system does not tell of nodes, all is one.
func memories(nodes string) (sizes []int64) {
	for i := 0; ; i++ {
		dir := filepath.Join(nodes, fmt.Sprintf("node%d", i))
		info, err := os.ReadFile(filepath.Join(dir, "meminfo"))
		if err != nil {
			break
		}
		if cpus, err := os.ReadFile(filepath.Join(dir, "cpulist")); err == nil && strings.TrimSpace(string(cpus)) == "" {
			continue
		}
		if n := totalOf(string(info)); n > 0 {
			sizes = append(sizes, n)
		}
	}
	if len(sizes) == 0 {
		if info, err := os.ReadFile("/proc/meminfo"); err == nil {
			if n := totalOf(string(info)); n > 0 {
				sizes = append(sizes, n)
			}
		}
	}
	return sizes
}

// totalOf reads MemTotal.
func totalOf(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		_, rest, ok := strings.Cut(line, "MemTotal:")
		if !ok {
			continue
		}
		if kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64); err == nil {
			return kb << 10
		}
	}
	return 0
}
