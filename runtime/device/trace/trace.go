//go:build unix

// Package trace makes something to look at of the marks that a model's threads
// leave (device.Context.Trace): a file for Perfetto or chrome://tracing, and a
// table of where the time of steps goes.
package trace

import (
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// A span is what a thread did from one mark to the next.
type span struct {
	begin, end int64 // ns on the monotonic clock
	region     int   // index in the manifest's Regions
	layer      int
	wait       bool // for the other threads, at the region's end
}

// spans cuts the marks of one thread. The time up to the next mark belongs to
// the region that began last.
func spans(marks []device.Mark, regions int, f func(span)) {
	region, layer := -1, 0
	for i := 0; i+1 < len(marks); i++ {
		m := marks[i]
		if m.What >= 0 {
			region, layer = int(m.What), int(m.Layer)
		}
		if region < 0 || region >= regions || m.What == device.Done {
			continue
		}
		f(span{m.NS, marks[i+1].NS, region, layer, m.What == device.Wait})
	}
}

// weightBytes is, for each region, the size of one element of its matrix; 0: it
// reads none.
func weightBytes(m *manifest.Manifest) []int64 {
	size := map[string]int64{}
	for _, w := range m.Weights {
		size[w.Name] = w.Bytes
	}
	out := make([]int64, len(m.Regions))
	for i, r := range m.Regions {
		out[i] = size[r.Weight]
	}
	return out
}
