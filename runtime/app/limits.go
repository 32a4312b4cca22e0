//go:build unix

package app

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/iflowc/iflowc/runtime/load"
)

// limits are what this machine can do, measured in the same run as the model,
// with the same number of threads.
type limits struct {
	ReadGBS float64 `json:"read_gb_s"`
	I8GOPS  float64 `json:"int8_gop_s,omitempty"`
	F32GOPS float64 `json:"f32_gop_s,omitempty"`
}

// peak is the limit in GOP/s of a model's multiply-adds, 0 when not known.
func (l *limits) peak(int8 bool) float64 {
	if int8 {
		return l.I8GOPS
	}
	return l.F32GOPS
}

// Sizes of the measurement: more memory than any cache holds, and enough
// rounds that one is undisturbed. The best round is the limit.
const (
	probeBytes  = 256 << 20
	probeRounds = 5
	probeTime   = 40 * time.Millisecond
)

// measureLimits measures reading speed and, where the library has probes,
// arithmetic.
func (m *model) measureLimits(ctx context.Context, threads int) (limits, error) {
	var l limits
	region, err := load.Map(probeBytes, "memory for the bandwidth measurement")
	if err != nil {
		return l, err
	}
	defer region.Free()
	for i := 0; i < len(region.Bytes); i += 4096 {
		region.Bytes[i] = 1 // real pages, not the shared one of zeros
	}
	for range probeRounds {
		if ctx.Err() != nil {
			return l, ctx.Err()
		}
		l.ReadGBS = max(l.ReadGBS, readSpeed(region.Bytes, threads))
	}
	for range probeRounds {
		if ctx.Err() != nil {
			return l, ctx.Err()
		}
		l.I8GOPS = max(l.I8GOPS, m.eng.Library().Probe(load.ProbeI8, threads, probeTime))
		l.F32GOPS = max(l.F32GOPS, m.eng.Library().Probe(load.ProbeF32, threads, probeTime))
	}
	return l, nil
}

// readSpeed is how many GB/s threads read together. The standard library's
// search for a byte that is not there reads 32 bytes an instruction, which no
// plain loop of Go does.
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
