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

// Assumed speeds of a CPU without a profile of this machine: bytes/s of a memory,
// and 8-bit integer operations per second of a core.
const (
	usualRead = 40e9
	usualPeak = 200e9
)

// memoriesHere describes this machine as devices: each NUMA node with its cores,
// because they share the bandwidth of its memory. read is that bandwidth in
// bytes/s; 0 if it was not measured.
func memoriesHere(read float64) (*cost.Machine, error) {
	if read <= 0 {
		read = usualRead
	}
	sizes := memories("/sys/devices/system/node")
	if len(sizes) == 0 {
		return nil, fmt.Errorf("devices auto: the size of this machine's memory cannot be read here; write the device string, or name a machine, such as auto:8xh100")
	}
	var list []cost.Device
	for i, bytes := range sizes {
		list = append(list, cost.Device{Name: fmt.Sprint(i), Memory: bytes, Read: read, Peak: usualPeak * float64(max(1, runtime.NumCPU()/len(sizes)))})
	}
	return cost.CPUs(list...), nil
}

// memories lists the sizes of the NUMA nodes that have cores, in bytes. If the
// system does not list nodes, all memory is one.
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

// totalOf parses MemTotal, in bytes.
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
