package cost

import (
	"fmt"
	"strconv"
	"strings"
)

// A known device has the values of its data sheet; links are per direction.
// Utilization and latency are estimates: decode kernels commonly reach three
// quarters of the bandwidth, and a message takes as long as small all-reduces
// of collective libraries.
type known struct {
	name       string
	memory     int64   // bytes
	read, peak float64 // GB/s; TFLOP/s of dense f16
	link       float64 // GB/s
	latency    Range   // µs per message
}

const gb = 1_000_000_000

var devices = []known{
	{"v100", 32 * gb, 900, 112, 12.5, Range{15, 8, 5}},
	{"a100", 80 * gb, 2039, 312, 300, Range{4, 2, 1}},
	{"h100", 80 * gb, 3350, 989, 450, Range{4, 2, 1}},
	{"h200", 141 * gb, 4800, 989, 450, Range{4, 2, 1}},
	{"l4", 24 * gb, 300, 121, 25, Range{15, 8, 5}},
	{"rtx4090", 24 * gb, 1008, 165, 25, Range{15, 8, 5}},
}

// gpu and cpu are the estimates for devices of a kind, and threads the link of CPUs
// in a machine.
var (
	gpu     = Device{Reach: Range{0.6, 0.75, 0.85}, Fixed: 5e-6}
	cpu     = Device{Reach: Range{0.5, 0.75, 0.95}, Fixed: 10e-6}
	threads = Link{Latency: Range{10e-6, 3e-6, 1e-6}, Bandwidth: 10e9, Style: Direct, Float: 4}
)

// CPUs returns a machine of memories with processors, with their sizes, speeds and
// names.
func CPUs(memories ...Device) *Machine {
	m := &Machine{Group: threads, Border: threads}
	for _, d := range memories {
		d.Reach, d.Fixed = cpu.Reach, cpu.Fixed
		m.Devices = append(m.Devices, d)
	}
	return m
}

// most is the maximum number of devices of a machine.
const most = 4096

// Names returns the names of the devices that Known knows.
func Names() string {
	var names []string
	for _, d := range devices {
		names = append(names, d.name)
	}
	return strings.Join(names, ", ")
}

// Known returns a machine by number and kind of devices, such as "8xh100": GPUs
// of one host, whose TP groups use rings.
func Known(text string) (*Machine, error) {
	count, name, ok := strings.Cut(strings.ToLower(text), "x")
	n, err := strconv.Atoi(count)
	if !ok || err != nil || n < 1 || n > most {
		return nil, fmt.Errorf("machine %q: expected a number of devices and their kind, such as 8xh100; kinds: %s; several machines are %s", text, Names(), severalForm)
	}
	for _, d := range devices {
		if d.name == name {
			return d.machine(n), nil
		}
	}
	return nil, fmt.Errorf("machine %q: %q is unknown; known are %s", text, name, Names())
}

// KnownAs is Known for n devices by the name from their driver, such as "NVIDIA
// H100 80GB HBM3".
func KnownAs(n int, driver string) (*Machine, error) {
	plain := strings.ReplaceAll(strings.ToLower(driver), " ", "")
	best := -1
	for i, d := range devices {
		if strings.Contains(plain, d.name) && (best < 0 || len(d.name) > len(devices[best].name)) {
			best = i
		}
	}
	if best < 0 || n < 1 || n > most {
		return nil, fmt.Errorf("%d devices %q: unknown; known are %s", n, driver, Names())
	}
	return devices[best].machine(n), nil
}

func (d known) machine(n int) *Machine {
	m := &Machine{
		Group: Link{
			Latency:   Range{d.latency.Low * 1e-6, d.latency.Mid * 1e-6, d.latency.High * 1e-6},
			Bandwidth: d.link * 1e9, Style: Ring, Float: 4,
		},
	}
	m.Border = m.Group
	for range n {
		m.Devices = append(m.Devices, Device{
			Name: d.name, Memory: d.memory / 20 * 19, Read: d.read * 1e9, Peak: d.peak * 1e12,
			Reach: gpu.Reach, Fixed: gpu.Fixed,
		})
	}
	return m
}
