//go:build unix

package main

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/iflowc/iflowc/passes/cost"
)

const testLibrary = "../../" + libraryDir

// TestSchedules runs the three ways of Table 5 in a time that only waits pass:
// the engine on ranks gives what the cost model foretells, hybrid is ahead of
// layer in latency and of tensor in throughput, and every token is the one that
// the sequence gets alone.
func TestSchedules(t *testing.T) {
	t.Parallel()
	c, err := costsOf(testLibrary, "falcon-40b-instruct")
	if err != nil {
		t.Fatal(err)
	}
	c = c.ReportExchanges()
	synctest.Test(t, func(t *testing.T) {
		rows, err := schedules(t.Context(), c, cost.Report(), 24)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			p := c.Predict(cost.Report(), cost.Spread(len(c.Layers), r.Stages, r.TPSize), cost.Load{Sequences: r.Stages})
			t.Logf("%s: %.1f of one, %.1f of %d, bubble %.2f; estimated %.1f, %.1f", r.Name, r.One.Speed, r.All.Speed, r.Stages, r.All.Bubble, p.Decode.Mid, p.Throughput.Mid)
			if math.Abs(r.One.Speed/p.Decode.Mid-1) > 0.03 || math.Abs(r.All.Speed/p.Throughput.Mid-1) > 0.08 {
				t.Errorf("%s: not what was estimated", r.Name)
			}
			if want := 1 - 1/float64(r.Stages); math.Abs(r.One.Bubble-want) > 0.05 || r.All.Bubble > 0.12 {
				t.Errorf("%s: bubble %.2f with one sequence, expected %.2f; %.2f with %d", r.Name, r.One.Bubble, want, r.All.Bubble, r.Stages)
			}
		}
		layer, tensor, hybrid := rows[0], rows[1], rows[2]
		if hybrid.One.Speed < 1.3*layer.One.Speed || hybrid.All.Speed < 1.7*tensor.All.Speed || layer.All.Speed < 1.1*hybrid.All.Speed {
			t.Error("the order of the three ways is not the report's")
		}
	})
}

// TestStyles: what ranks exchange takes as long as the cost model says, in each
// of the ways.
func TestStyles(t *testing.T) {
	t.Parallel()
	layer := cost.Part{Read: 1e6, MACs: 1, Gives: []int{1000, 1000}}
	c := &cost.Model{Name: "m", Layers: []cost.Part{layer, layer}, Hidden: 1000}
	for style, name := range map[cost.Style]string{cost.Direct: "direct", cost.Ring: "ring", cost.Hub: "hub"} {
		dev := cost.Device{Read: 1e9, Peak: 1e12, Reach: cost.Sure(1)}
		m := &cost.Machine{Devices: []cost.Device{dev, dev, dev}, Group: cost.Link{Latency: cost.Sure(1e-3), Bandwidth: 4e6, Style: style, Float: 4}}
		plan := cost.Spread(2, 1, 3)
		p := c.Predict(m, plan, cost.Load{Sequences: 1})
		synctest.Test(t, func(t *testing.T) {
			got, err := measure(t.Context(), &ranks{model: c, machine: m, plan: plan}, 1, 10)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.Speed/p.Decode.Mid-1) > 0.02 {
				t.Errorf("%s: %.2f tokens a second, estimated %.2f", name, got.Speed, p.Decode.Mid)
			}
		})
	}
}

func TestLibraryErrors(t *testing.T) {
	t.Parallel()
	if _, err := costsOf(testLibrary, "none"); err == nil || !strings.Contains(err.Error(), "repository's root") {
		t.Errorf("a model that is not there: %v", err)
	}
	if err := size("demo", "8xnothing", "1", 10); err == nil {
		t.Error("an unknown machine was taken")
	}
}
