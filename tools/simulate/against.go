//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/iflowc/iflowc/passes/cost"
	"github.com/iflowc/iflowc/spec"
)

// A measurement is a row of what hosts speed prints.
type measurement struct {
	Devices   string    `json:"devices"` // "": one process
	Link      string    `json:"link"`
	Delay     float64   `json:"delay_s"`
	Bandwidth float64   `json:"bytes_per_s"`
	Rounds    []float64 `json:"tok_s"`
}

// speed returns the median of the rounds.
func (m *measurement) speed() float64 {
	s := slices.Sorted(slices.Values(m.Rounds))
	return s[len(s)/2]
}

// readMeasurements reads files of hosts speed. The first return value is the time of a
// token in one process.
func readMeasurements(files []string) (token float64, list []measurement, err error) {
	var one measurement
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return 0, nil, err
		}
		var rows []measurement
		if err := json.Unmarshal(data, &rows); err != nil {
			return 0, nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, m := range rows {
			switch {
			case len(m.Rounds) == 0 || slices.Min(m.Rounds) <= 0:
				return 0, nil, fmt.Errorf("%s: %q has no speed", file, m.Devices)
			case m.Devices == "":
				one.Rounds = append(one.Rounds, m.Rounds...)
			case !(m.Delay >= 0 && m.Bandwidth > 0):
				return 0, nil, fmt.Errorf("%s: the link of %q has no delay or bandwidth", file, m.Devices)
			default:
				list = append(list, m)
			}
		}
	}
	if one.Rounds == nil || list == nil {
		return 0, nil, errors.New("expected files of hosts speed, with the speed of one process and of a partitioned model")
	}
	return 1 / one.speed(), list, nil
}

// against prints measured speeds beside the predictions from the speed of one process and
// from each link's delay, as pings measured it, and bandwidth.
func against(w io.Writer, c *cost.Model, files []string, message cost.Range) error {
	token, list, err := readMeasurements(files)
	if err != nil {
		return err
	}
	one := measuredAs(c, token, 0)
	fmt.Fprintf(w, "%s: one process %.1f tok/s\n%-8s %-14s %12s %12s %12s %8s\n", c.Name, 1/token, "devices", "link", "ping/2, ms", "predicted", "measured", "ratio")
	worst := 0.0
	for _, m := range list {
		devices, err := spec.ParseDevices(m.Devices)
		if err != nil {
			return err
		}
		machine, err := one.Times(2, cost.Network{Bandwidth: m.Bandwidth, Delay: m.Delay})
		if err != nil {
			return err
		}
		machine.Network.Latency, machine.Control.Latency = message, message
		p := c.Predict(machine, cost.Spread(len(c.Layers), len(devices), len(devices[0].Devices)), cost.Load{Sequences: 1})
		ratio := p.Decode.Mid / m.speed()
		worst = max(worst, math.Abs(ratio-1))
		fmt.Fprintf(w, "%-8s %-14s %12.3f %12.2f %12.2f %8.2f\n", m.Devices, m.Link, 1e3*m.Delay, p.Decode.Mid, m.speed(), ratio)
	}
	fmt.Fprintf(w, "largest deviation %.0f %%\n", 100*worst)
	return nil
}
