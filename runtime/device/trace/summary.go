//go:build unix

package trace

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// A Summary adds up the time of each region over steps.
type Summary struct {
	rows  []Row
	bytes []int64 // of each region's weight
	Steps int
	NS    int64 // of all steps, from the first to the last mark
}

// A Row is the time of one region over all steps and layers.
type Row struct {
	Region manifest.Region `json:"region"`
	Calls  int             `json:"calls"`
	BusyNS int64           `json:"busy_ns"` // mean over the threads
	WaitNS int64           `json:"wait_ns"` // time at barriers, mean over the threads
	Bytes  int64           `json:"bytes"`   // weight bytes read
	GBS    float64         `json:"gb_s"`    // Bytes / (BusyNS + WaitNS); 0: reads no matrix
	Share  float64         `json:"share"`   // fraction of the steps' time
}

// NewSummary returns an empty summary.
func NewSummary(m *manifest.Manifest) *Summary {
	s := &Summary{rows: make([]Row, len(m.Regions)), bytes: weightBytes(m)}
	for i, r := range m.Regions {
		s.rows[i].Region = r
	}
	return s
}

// Step adds the time of one step. Steps without marks are ignored.
func (s *Summary) Step(step device.StepTrace) {
	threads := 0
	var first, last int64
	for _, marks := range step.Threads {
		if len(marks) == 0 {
			continue // did not take part in this step
		}
		threads++
		if first == 0 || marks[0].NS < first {
			first = marks[0].NS
		}
		last = max(last, marks[len(marks)-1].NS)
	}
	if threads == 0 {
		return
	}
	s.Steps++
	s.NS += last - first
	for t, marks := range step.Threads {
		lead := t == 0
		spans(marks, len(s.rows), func(p span) {
			r := &s.rows[p.region]
			d := (p.end - p.begin) / int64(threads)
			if p.wait {
				r.WaitNS += d
				return
			}
			r.BusyNS += d
			if lead {
				r.Calls++
			}
		})
	}
}

// Rows returns the regions that ran, longest first.
func (s *Summary) Rows() []Row {
	var out []Row
	for i, r := range s.rows {
		if r.Calls == 0 {
			continue
		}
		r.Bytes = s.bytes[i] * int64(r.Calls)
		took := r.BusyNS + r.WaitNS
		if r.Bytes > 0 && took > 0 {
			r.GBS = float64(r.Bytes) / float64(took)
		}
		r.Share = float64(took) / float64(max(s.NS, 1))
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b Row) int { return cmp.Compare(b.BusyNS+b.WaitNS, a.BusyNS+a.WaitNS) })
	return out
}

// Write prints a table. limit is the machine's memory bandwidth in GB/s; 0: unknown.
func (s *Summary) Write(w io.Writer, limit float64) error {
	steps := float64(max(s.Steps, 1))
	_, err := fmt.Fprintf(w, "%d steps of %.0f µs in the mean\n%-28s %6s %10s %10s %7s %8s %9s  %s\n", s.Steps, float64(s.NS)/steps/1e3,
		"region", "calls", "µs a step", "waiting", "share", "GB/s", "of limit", "ops")
	if err != nil {
		return err
	}
	for _, r := range s.Rows() {
		gbs, of := "-", "-"
		if r.GBS > 0 {
			gbs = fmt.Sprintf("%.2f", r.GBS)
			if limit > 0 {
				of = fmt.Sprintf("%.0f %%", r.GBS/limit*100)
			}
		}
		_, err := fmt.Fprintf(w, "%-28s %6d %10.1f %10.1f %5.1f %% %8s %9s  %s\n", r.Region.Graph+"."+r.Region.Name, r.Calls/max(s.Steps, 1),
			float64(r.BusyNS+r.WaitNS)/steps/1e3, float64(r.WaitNS)/steps/1e3, r.Share*100, gbs, of, r.Region.Doc)
		if err != nil {
			return err
		}
	}
	return nil
}
