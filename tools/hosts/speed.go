//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// launchers are the commands that start a rank on each of two hosts, by MPI.
var launchers = map[string]string{
	"openmpi": "mpirun.openmpi --host host-a,host-b -n 2 --bind-to none",
	"mpich":   "mpirun.mpich -hosts host-a,host-b -ppn 1 -n 2",
}

// A measurement is the speed of one sequence in tokens per second, one for each round.
type measurement struct {
	Devices   string    `json:"devices"` // "": one process
	Link      string    `json:"link"`
	Delay     float64   `json:"delay_s"`     // one way, as pings measure it
	Bandwidth float64   `json:"bytes_per_s"` // of the link
	Rounds    []float64 `json:"tok_s"`
}

// speed measures a model on two hosts of one core each, for every delay and
// bandwidth, in interleaved rounds. Each argument is a program: the model whole, or
// compiled for two devices.
func speed(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("speed", flag.ExitOnError)
	delays := flags.String("delays", "0s,1ms,5ms,20ms", "one-way delays of the link")
	bandwidths := flags.String("bandwidths", "100Mbit,1Gbit,10Gbit", "bandwidths of the link")
	mpi := flags.String("mpi", "openmpi", "openmpi or mpich")
	rounds := flags.Int("rounds", 3, "interleaved rounds")
	tokens := flags.Int("tokens", 16, "tokens of a measurement")
	flags.Parse(args)
	if launchers[*mpi] == "" || flags.NArg() == 0 || *rounds < 1 || *tokens < 2 {
		return errors.New("usage: hosts speed [--mpi openmpi|mpich] [--delays LIST] [--bandwidths LIST] WHOLE [PARTITIONED]…")
	}
	if err := Missing(); err != nil {
		return err
	}
	h, err := Build([2]int{0, 1})
	if err != nil {
		return err
	}
	defer h.Close()
	b := &bencher{Hosts: h, launcher: strings.Fields(launchers[*mpi]), tokens: *tokens}
	var links []string
	for d := range strings.SplitSeq(*delays, ",") {
		for w := range strings.SplitSeq(*bandwidths, ",") {
			links = append(links, d+","+w)
		}
	}
	list, err := b.plan(flags.Args(), links)
	if err != nil {
		return err
	}
	for range *rounds {
		for i := range list {
			if err := b.measure(ctx, &list[i]); err != nil {
				return err
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(list)
}

// A bencher runs the models' own benchmark on the hosts.
type bencher struct {
	*Hosts
	launcher []string
	tokens   int
	programs map[string]string // by devices
}

// plan copies the programs to the hosts and lists the measurements.
func (b *bencher) plan(programs, links []string) (list []measurement, err error) {
	b.programs = map[string]string{}
	for i, file := range programs {
		folder := strconv.Itoa(i)
		shards, err := filepath.Glob(file + ".weights*")
		if err != nil {
			return nil, err
		}
		for _, x := range []*Host{b.A, b.B} {
			if err := x.Put(folder, append(shards, file)...); err != nil {
				return nil, err
			}
		}
		devices, err := devicesOf(file)
		if err != nil {
			return nil, err
		}
		b.programs[devices] = folder + "/" + filepath.Base(file)
		if devices == "" {
			list = append(list, measurement{})
			continue
		}
		for _, l := range links {
			list = append(list, measurement{Devices: devices, Link: l})
		}
	}
	return list, nil
}

// devicesOf returns the device string of a compiled model; "": it is whole.
func devicesOf(file string) (string, error) {
	out, err := exec.Command(file, "info", "--json").Output()
	if err != nil {
		return "", fmt.Errorf("%s info: %w", file, err)
	}
	var info struct {
		Partition *struct{ Devices string }
	}
	if err = json.Unmarshal(out, &info); err != nil || info.Partition == nil {
		return "", err
	}
	return info.Partition.Devices, nil
}

// jobLimit is how long one measurement may take.
const jobLimit = 10 * time.Minute

// measure adds a round.
func (b *bencher) measure(ctx context.Context, m *measurement) error {
	args := []string{b.programs[m.Devices], "bench", "--prompt", "0", "--gen", strconv.Itoa(b.tokens), "--batch", "1", "--threads", "1", "--json"}
	if m.Devices != "" {
		s, err := ParseShape(m.Link)
		if err == nil && s.Bandwidth == 0 {
			err = fmt.Errorf("link %q: expected a bandwidth", m.Link)
		}
		if err != nil {
			return err
		}
		b.Link.Set(s)
		delay, err := b.Ping()
		if err != nil {
			return err
		}
		m.Delay += (delay.Seconds() - m.Delay) / float64(len(m.Rounds)+1) // the mean of the rounds
		m.Bandwidth = s.Bandwidth
		args = slices.Concat(b.launcher, args)
	}
	ctx, cancel := context.WithTimeout(ctx, jobLimit)
	defer cancel()
	cmd := b.A.Command(ctx, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	var rows []struct {
		Speed struct {
			Median float64 `json:"median"`
		} `json:"tok_s"`
	}
	if err := json.Unmarshal(out, &rows); err != nil || len(rows) != 1 {
		return fmt.Errorf("%s: unexpected output %q", strings.Join(args, " "), out)
	}
	m.Rounds = append(m.Rounds, rows[0].Speed.Median)
	fmt.Fprintf(os.Stderr, "%-8s %-14s %9.3f ms one way %9.1f tok/s\n", m.Devices, m.Link, 1e3*m.Delay, rows[0].Speed.Median)
	return nil
}
