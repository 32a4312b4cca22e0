//go:build unix

package cli

import (
	"context"
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/binary"
	"github.com/iflowc/iflowc/runtime/device/tune"
)

// measureGPU times the matmuls and the attention of the model on a GPU.
func (c *tuneCmd) measureGPU(ctx context.Context, m *model, rows []int) (*dispatch.Profile, error) {
	if c.Threads != 0 || c.ISA != "" {
		return nil, wrong(fmt.Errorf("--threads and --isa are for CPUs; omit them with --device %s", c.Device))
	}
	if rows == nil {
		rows = tune.DefaultRows()
	}
	packed, data, err := m.bin.Weights("")
	if err != nil {
		return nil, err
	}
	m.packed = packed
	m.warnRandom(packed, "")
	notice := func(format string, args ...any) { fmt.Fprintf(m.Stderr, format+"\n", args...) }
	d, t, err := m.bin.TimerOn(c.Device, data, rows[len(rows)-1], notice)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	machine := tune.ThisMachine()
	machine.Kernels, machine.GPU = m.manifest.Hash, d.Fingerprint()
	note := func() error {
		read, err := t.ReadGBs()
		machine.ReadGBs = append(machine.ReadGBs, read)
		if err == nil && !machine.GPU.Emulated {
			if err := t.Clocks(machine.GPU); err != nil {
				notice("the clocks are not recorded: %v", err)
			}
		}
		return err
	}
	if err := note(); err != nil {
		return nil, err
	}
	bar := newProgress(m.Stderr, "measured", 0)
	defer bar.end()
	shapes := t.Shapes()
	cells, err := tune.Measure(ctx, t, shapes, tune.Options{Rows: rows, Budget: c.Budget, Progress: func(done, total int, what string) {
		bar.total = total
		bar.step(done)
	}})
	if err != nil {
		return nil, err
	}
	splits, err := t.Splits()
	if err != nil {
		return nil, err
	}
	if err := note(); err != nil {
		return nil, err
	}
	p := &dispatch.Profile{Format: dispatch.Format, Device: tune.Describe(machine), Order: "any", Splits: splits, Machine: &machine}
	for i, s := range shapes {
		p.Shapes = append(p.Shapes, tune.Summarize(s, cells[i]))
	}
	return p, nil
}

// place returns the default of -o, where later starts find the profile.
func (c *tuneCmd) place(program string) string {
	switch {
	case c.Out != "":
		return c.Out
	case c.Device != "":
		return program + binary.GPUProfile
	}
	return program + binary.CPUProfile
}
