//go:build unix

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/passes/cost"
)

// network prints the speed of two ranks on two machines for each delay and
// bandwidth of the network between them. The speed of one process is measured, so
// that only what the network adds is an estimate.
func network(w io.Writer, args []string) error {
	f := flag.NewFlagSet("network", flag.ContinueOnError)
	name := f.String("model", "smollm2-135m-instruct", "model of the library, or what iflowc ir MODEL --after lower prints, in a file FILE.ir")
	measured := f.String("measured", "", "speed of one process with as many threads as a rank has: 12.3ms for a token, or 81tok/s")
	window := f.Int("context", 0, "tokens of the sequence")
	delays := f.String("delays", "0ms,1ms,5ms,20ms", "delays of a message in one direction")
	bandwidths := f.String("bandwidths", "100Mbit,1Gbit,10Gbit", "bandwidths in one direction")
	message := f.String("message", "", "time of a message besides delay and bandwidth, such as 100us (default: that of MPI over TCP)")
	files := f.String("against", "", "files of hosts speed, with commas between them, to compare predictions with")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	own, err := messageTime(*message)
	if err != nil {
		return err
	}
	if *window < 0 || *window > 1<<24 {
		return fmt.Errorf("--context %d: expected 0 to %d tokens", *window, 1<<24)
	}
	c, err := costsOf(libraryDir, *name)
	if err != nil {
		return err
	}
	if err := c.Split(2); err != nil {
		return fmt.Errorf("%s cannot be split: %w", *name, err)
	}
	if *files != "" {
		return against(w, c, strings.Split(*files, ","), own)
	}
	token, err := tokenTime(*measured)
	if err != nil {
		return err
	}
	one := measuredAs(c, token, *window)
	fmt.Fprintf(w, "%s: one process %.2f ms a token, %.1f tok/s; two machines with one rank each, one sequence, tok/s\n", c.Name, 1e3*token, 1/token)
	fmt.Fprintf(w, "%-8s %-10s %24s %24s\n", "delay", "bandwidth", "0;1", "0&1")
	for delay := range strings.SplitSeq(*delays, ",") {
		for bandwidth := range strings.SplitSeq(*bandwidths, ",") {
			m, err := between(one, delay, bandwidth)
			if err != nil {
				return err
			}
			m.Network.Latency, m.Control.Latency = own, own
			layer, tensor := predicted(c, m, *window)
			fmt.Fprintf(w, "%-8s %-10s %24s %24s\n", delay, bandwidth, layer, tensor)
		}
	}
	return nil
}

// messageTime parses the time of a message besides delay and bandwidth; "": that of MPI.
func messageTime(text string) (cost.Range, error) {
	if text == "" {
		return cost.MPIMessage, nil
	}
	t, err := cost.ParseDelay(text)
	if err != nil {
		return cost.Range{}, fmt.Errorf("--message: %w", err)
	}
	return cost.Sure(t), nil
}

// tokenTime parses the time of a token in seconds.
func tokenTime(text string) (float64, error) {
	t, err := cost.ParseDelay(text)
	if speed, ok := strings.CutSuffix(text, "tok/s"); ok {
		t, err = strconv.ParseFloat(strings.TrimSpace(speed), 64)
		t = 1 / t
	}
	if err != nil || !(t >= 1e-7 && t <= 1e5) {
		return 0, fmt.Errorf("--measured %q: expected the time of a token or the speed of one process, such as 12.3ms or 81tok/s", text)
	}
	return t, nil
}

// measuredAs returns a machine on which one process takes this long for a token:
// the time is proportional to the bytes that a part reads.
func measuredAs(c *cost.Model, token float64, window int) *cost.Machine {
	m := cost.CPUs(cost.Device{Memory: math.MaxInt64, Read: 1, Peak: math.Inf(1)})
	d := &m.Devices[0]
	d.Reach, d.Fixed = cost.Sure(1), 0
	bytes := 1 / c.Predict(m, cost.Spread(len(c.Layers), 1, 1), cost.Load{Sequences: 1, Context: window}).Decode.Mid
	d.Read = bytes / token
	return m
}

// between returns two such machines with a network between them.
func between(one *cost.Machine, delay, bandwidth string) (*cost.Machine, error) {
	d, err := cost.ParseDelay(delay)
	if err != nil {
		return nil, fmt.Errorf("--delays: %w", err)
	}
	b, err := cost.ParseBandwidth(bandwidth)
	if err != nil {
		return nil, fmt.Errorf("--bandwidths: %w", err)
	}
	return one.Times(2, cost.Network{Bandwidth: b, Delay: d})
}

// predicted returns the tokens per second of one sequence, pipeline and tensor parallel.
func predicted(c *cost.Model, m *cost.Machine, window int) (layer, tensor cost.Range) {
	load := cost.Load{Sequences: 1, Context: window}
	layer = c.Predict(m, cost.Spread(len(c.Layers), 2, 1), load).Decode
	tensor = c.Predict(m, cost.Spread(len(c.Layers), 1, 2), load).Decode
	return layer, tensor
}
