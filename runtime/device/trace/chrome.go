//go:build unix

package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// A Writer writes events in Chrome's trace format, which Perfetto also reads. The file
// has one process with a track for the engine's steps, one for each thread of the model
// and one for the scheduler. Times are in microseconds since the first event. A Writer
// is safe for concurrent use.
type Writer struct {
	mu       sync.Mutex
	out      *bufio.Writer
	manifest *manifest.Manifest
	bytes    []int64 // of each region's weight
	origin   int64   // ns on the monotonic clock
	named    map[int]bool
	count    int
	err      error
}

// Track numbers; thread i of the model has track trackThread+i.
const (
	trackScheduler = 1
	trackSteps     = 2
	trackThread    = 10
)

// NewWriter starts a trace file.
func NewWriter(w io.Writer, m *manifest.Manifest) *Writer {
	t := &Writer{out: bufio.NewWriterSize(w, 1<<16), manifest: m, bytes: weightBytes(m), named: map[int]bool{}, origin: now()}
	_, t.err = t.out.WriteString(`{"displayTimeUnit":"ms","traceEvents":[`)
	t.put(event{Name: "process_name", Phase: "M", Args: map[string]any{"name": m.Name}})
	return t
}

// now returns the time on the clock of device.Mark, in nanoseconds.
func now() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// An event is one line of the trace format.
type event struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	TS    float64        `json:"ts"`            // µs
	Dur   float64        `json:"dur,omitempty"` // µs, for phase X
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Cat   string         `json:"cat,omitempty"`
	Scope string         `json:"s,omitempty"` // for phase i
	Args  map[string]any `json:"args,omitempty"`
}

func (t *Writer) put(e event) {
	if t.err != nil {
		return
	}
	e.PID = 1
	line, err := json.Marshal(e)
	if err != nil {
		t.err = err
		return
	}
	if t.count++; t.count > 1 {
		t.out.WriteByte(',')
	}
	t.out.WriteByte('\n')
	_, t.err = t.out.Write(line)
}

// track writes the track's name before its first event and returns id.
func (t *Writer) track(id int, name string) int {
	if !t.named[id] {
		t.named[id] = true
		t.put(event{Name: "thread_name", Phase: "M", TID: id, Args: map[string]any{"name": name}})
		t.put(event{Name: "thread_sort_index", Phase: "M", TID: id, Args: map[string]any{"sort_index": id}})
	}
	return id
}

func (t *Writer) at(ns int64) float64 { return float64(ns-t.origin) / 1e3 }

// Step writes the events of one step: the whole step, and the regions of each thread.
func (t *Writer) Step(s device.StepTrace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var begin, end int64
	for i, marks := range s.Threads {
		if len(marks) == 0 {
			continue
		}
		if begin == 0 || marks[0].NS < begin {
			begin = marks[0].NS
		}
		end = max(end, marks[len(marks)-1].NS)
		track := t.track(trackThread+i, fmt.Sprintf("thread %d", i))
		spans(marks, len(t.manifest.Regions), func(p span) { t.span(track, p) })
	}
	if begin == 0 {
		return
	}
	t.put(event{
		Name: fmt.Sprintf("%s, %d tokens", t.manifest.Graphs[s.Graph].Name, s.Tokens), Phase: "X", Cat: "step",
		TS: t.at(begin), Dur: float64(end-begin) / 1e3, TID: t.track(trackSteps, "steps"),
		Args: map[string]any{"tokens": s.Tokens, "output rows": s.OutRows, "sequences": s.Seqs},
	})
	t.put(event{Name: "step", Phase: "C", TS: t.at(begin), Args: map[string]any{"tokens": s.Tokens, "sequences": s.Seqs}})
}

func (t *Writer) span(track int, p span) {
	e := event{Phase: "X", TS: t.at(p.begin), Dur: float64(p.end-p.begin) / 1e3, TID: track}
	if p.wait {
		e.Name, e.Cat = "wait", "barrier"
	} else {
		r := t.manifest.Regions[p.region]
		e.Name, e.Cat = r.Name, "region"
		e.Args = map[string]any{"layer": p.layer, "ops": r.Doc}
		if n := t.bytes[p.region]; n > 0 {
			e.Args["weight"], e.Args["weight bytes"] = matrix(r), n
		}
	}
	t.put(e)
}

// Decision records a decision of the scheduler at the current time.
func (t *Writer) Decision(name string, args map[string]any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(event{Name: name, Phase: "i", Scope: "t", Cat: "scheduler", TS: t.at(now()), TID: t.track(trackScheduler, "scheduler"), Args: args})
}

// Close completes the JSON. It does not close the underlying writer.
func (t *Writer) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	t.out.WriteString("\n]}\n")
	return t.out.Flush()
}
