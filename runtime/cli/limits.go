//go:build unix

package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
)

// limits are the machine's limits, measured in the same run as the model, with
// the same number of threads. A GPU's bandwidth is that of its device.Info. 0: unknown.
type limits struct {
	ReadGBS float64 `json:"read_gb_s,omitempty"`
	I8GOPS  float64 `json:"int8_gop_s,omitempty"`
	F32GOPS float64 `json:"f32_gop_s,omitempty"`
	// Peaks of the model's matmul kernels with weights in the cache, by kernelOf.
	Kernels map[string]float64 `json:"kernels_gop_s,omitempty"`
}

// work returns the least time for bytes of memory and operations that run at gops at
// most. Limits that are unknown take no time.
func (l *limits) work(bytes, ops, gops float64) work {
	w := work{bytes: bytes, ops: ops}
	if l.ReadGBS > 0 {
		w.seconds = bytes / l.ReadGBS / 1e9
	}
	if gops > 0 {
		w.seconds = max(w.seconds, ops/gops/1e9)
	}
	return w
}

// arithmetic returns the time of a work's operations at the CPU's peak, in seconds; 0:
// unknown.
func (l *limits) arithmetic(w work) float64 {
	if l.I8GOPS == 0 || l.F32GOPS == 0 {
		return 0
	}
	return (w.int8Ops/l.I8GOPS + (w.ops-w.int8Ops)/l.F32GOPS) / 1e9
}

// probeBytes is how much memory the measurement reads: more than any cache. Tests, whose
// models compute nothing, read less.
var probeBytes int64 = 192 << 20

// Enough rounds of arithmetic that one is undisturbed.
const (
	probeRounds = 5
	probeTime   = 20 * time.Millisecond
)

// A meter measures the machine repeatedly during the benchmark, because its
// bandwidth may change by half within seconds.
type meter struct {
	dev     device.Device
	threads int
	region  *device.Region // nil: the device has its own memory
	reads   []float64      // GB/s, one per measurement
	peak    limits
}

// newMeter maps the memory that is read. The first reading is a warm-up.
func (m *model) newMeter(threads int) (*meter, error) {
	if info := m.eng.Device().Info(); info.OwnMemory {
		return &meter{dev: m.eng.Device(), threads: threads, reads: []float64{info.ReadGBs}}, nil
	}
	region, err := device.Map(probeBytes, "memory for the bandwidth measurement")
	if err != nil {
		return nil, err
	}
	t := &meter{dev: m.eng.Device(), threads: threads, region: region}
	for i := 0; i < len(region.Bytes); i += 4096 {
		region.Bytes[i] = 1 // allocates real pages instead of the shared zero page
	}
	readSpeed(region.Bytes, threads)
	return t, nil
}

func (t *meter) close() {
	if t.region != nil {
		t.region.Free()
	}
}

// read measures the bandwidth: the better of two passes. It returns that of a device
// with its own memory; 0: unknown.
func (t *meter) read() float64 {
	if t.region == nil {
		return t.reads[0]
	}
	g := max(readSpeed(t.region.Bytes, t.threads), readSpeed(t.region.Bytes, t.threads))
	t.reads = append(t.reads, g)
	return g
}

// peaks measures arithmetic, if the library has probes, and the peaks of the model's
// kernels. The best round is the limit.
func (t *meter) peaks(ctx context.Context, m *model, isa string) error {
	for range probeRounds {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.peak.I8GOPS = max(t.peak.I8GOPS, t.dev.Peak(device.MultiplyAddI8, t.threads, probeTime))
		t.peak.F32GOPS = max(t.peak.F32GOPS, t.dev.Peak(device.MultiplyAddF32, t.threads, probeTime))
	}
	if t.region == nil || m.bin.Partitioned() {
		return nil
	}
	lib, err := m.bin.CPU(isa)
	if err != nil {
		return err
	}
	if _, err := lib.Symbol("ifl_probe_matmul"); err != nil {
		return nil
	}
	t.peak.Kernels, err = kernelPeaks(ctx, lib, m.manifest.Matmuls, t.threads)
	return err
}

// limits returns the peaks and the median of the readings so far.
func (t *meter) limits() limits {
	l := t.peak
	sorted := slices.Sorted(slices.Values(t.reads))
	l.ReadGBS = median(sorted)
	return l
}

// text describes the bandwidth for the line above a table; "" if it is unknown.
func (l *limits) text() string {
	if l.ReadGBS == 0 {
		return ""
	}
	return fmt.Sprintf("; this machine reads %.1f GB/s", l.ReadGBS)
}

// readSpeed returns the GB/s that all threads read together. The standard
// library's search for an absent byte reads 32 bytes per instruction, which no
// plain Go loop does.
func readSpeed(b []byte, threads int) float64 {
	part := len(b) / threads
	var wg sync.WaitGroup
	start := time.Now()
	for k := range threads {
		wg.Go(func() {
			if bytes.IndexByte(b[k*part:(k+1)*part], 0xff) >= 0 {
				panic("bug: the probed memory was written to")
			}
		})
	}
	wg.Wait()
	return float64(part*threads) / time.Since(start).Seconds() / 1e9
}
