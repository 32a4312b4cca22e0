//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// viewTrace is a trace, summed over its steps.
type viewTrace struct {
	File  string         `json:"file"`
	Steps int            `json:"steps"`
	US    float64        `json:"us"` // of all steps
	Rows  []viewTraceRow `json:"rows"`
}

// A viewTraceRow is the time of one region, as means over the threads.
type viewTraceRow struct {
	Region int     `json:"region"` // index in Regions
	BusyUS float64 `json:"busy_us"`
	WaitUS float64 `json:"wait_us"`
}

// A traceEvent has the event fields that view reads.
type traceEvent struct {
	Name, Ph, Cat string
	Dur           float64
	TID           int
	Args          struct{ Ops string }
}

// trace sums the events of a file written by a binary's --trace.
func (d *viewData) trace(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return usageError{err}
	}
	defer f.Close()
	t := &viewTrace{File: path}
	rows := make([]viewTraceRow, len(d.Regions))
	last, threads := map[int]int{}, map[int]bool{}
	err = eachEvent(json.NewDecoder(f), func(e *traceEvent) {
		switch {
		case e.Ph != "X":
		case e.Cat == "step":
			t.Steps++
			t.US += e.Dur
		case e.Cat == "region":
			threads[e.TID] = true
			if last[e.TID] = d.regionNamed(e.Name, e.Args.Ops); last[e.TID] >= 0 {
				rows[last[e.TID]].BusyUS += e.Dur
			}
		case e.Cat == "barrier":
			if at, ok := last[e.TID]; ok && at >= 0 {
				rows[at].WaitUS += e.Dur
			}
		}
	})
	if err == nil && t.Steps == 0 {
		err = errors.New("the file has no steps; write it with the binary's --trace")
	}
	if err != nil {
		return usageError{fmt.Errorf("--trace %s: %w", path, err)}
	}
	for i, r := range rows {
		if r.BusyUS+r.WaitUS > 0 {
			n := float64(len(threads))
			t.Rows = append(t.Rows, viewTraceRow{i, r.BusyUS / n, r.WaitUS / n})
		}
	}
	if len(t.Rows) == 0 {
		return usageError{fmt.Errorf("--trace %s: the regions differ from those of %s; use the same model and flags for the binary and for view", path, d.Name)}
	}
	d.Trace = t
	return nil
}

// regionNamed returns the index of the region with this name and these ops, or -1.
func (d *viewData) regionNamed(name, ops string) int {
	for i, r := range d.Regions {
		if r.Name == name && strings.EqualFold(r.Doc, ops) {
			return i
		}
	}
	return -1
}

// eachEvent calls f with each event of a trace.
func eachEvent(dec *json.Decoder, f func(*traceEvent)) error {
	for {
		tok, err := dec.Token()
		if err != nil {
			return fmt.Errorf("not a trace: %w", err)
		}
		if tok == "traceEvents" {
			break
		}
	}
	if tok, err := dec.Token(); err != nil || tok != json.Delim('[') {
		return errors.New("not a trace: traceEvents is not a list")
	}
	for dec.More() {
		var e traceEvent
		if err := dec.Decode(&e); err != nil {
			return err
		}
		f(&e)
	}
	return nil
}
