//go:build unix

// Package trace presents the marks that a model's threads record
// (device.Context.Trace): as a file for Perfetto or chrome://tracing, and as a table of
// the time per region.
package trace

import (
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// A span is the activity of a thread from one mark to the next.
type span struct {
	begin, end int64 // ns on the monotonic clock
	region     int   // index in the manifest's Regions
	layer      int
	wait       bool // at the barrier that ends the region
}

// spans converts the marks of one thread to spans. The time up to the next mark belongs
// to the region that began last.
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

// weightBytes returns the bytes of one element of each region's matrix; 0: the region
// reads none.
func weightBytes(m *manifest.Manifest) []int64 {
	size := map[string]int64{}
	for _, w := range m.Weights {
		size[w.Name] = w.Bytes
	}
	out := make([]int64, len(m.Regions))
	for i, r := range m.Regions {
		out[i] = size[matrix(r)]
	}
	return out
}

// matrix returns the name of the only matrix that each call of a region reads
// completely, or "".
func matrix(r manifest.Region) string {
	if len(r.Products) != 1 || r.Products[0].Experts > 0 {
		return ""
	}
	return r.Products[0].Weight
}
