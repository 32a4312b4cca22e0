package compiler

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/passes/cost"
	"github.com/iflowc/iflowc/runtime/device/cuda"
	"github.com/iflowc/iflowc/spec"
)

// place chooses the devices if the model spec or the flag says auto, by the
// memory and speed of the model in the machine's arrangements. It keeps the
// reasons for explain.
func (m *Model) place() error {
	name, ok := spec.AutoDevices(m.Spec.Devices)
	if !ok {
		return nil
	}
	m.Spec.Devices = ""
	if cost.IsFile(name) && m.opt.Devices == "" { // of a model spec
		if !filepath.IsLocal(name) {
			return InputError{fmt.Errorf("devices: %q leads out of the model spec's folder; put the file beside it, or name it by --devices", name)}
		}
		name = filepath.Join(filepath.Dir(m.Spec.File), name)
	}
	machine, err := m.opt.machineNamed(name)
	if err != nil {
		return InputError{err}
	}
	c, err := m.costs()
	if err != nil {
		return err
	}
	load := cost.Load{Sequences: max(1, m.Spec.Engine.Queries), Context: m.planned()}
	choice, err := c.Choose(machine, load)
	if err != nil {
		return InputError{err}
	}
	if n := len(choice.Plan); n > 1 || len(choice.Plan[0].Ranks) > 1 {
		m.Spec.Devices = choice.Plan.String()
	}
	m.Placement = choice.Explain(load)
	if name == "" && len(machine.Devices) == 1 {
		m.Placement += "  this machine's processors share one memory: a part of them computes no faster than all together, so they are one device\n"
	}
	return nil
}

// costs lowers the model twice: with the types of its weights, and with its
// layers split, for the exchanges.
func (m *Model) costs() (*cost.Model, error) {
	typed, err := m.placedOn(nil, "quantize")
	if err != nil {
		return nil, err
	}
	split := func(n int) (*ir.Module, error) {
		group := make([]passes.Device, n)
		for i := range group {
			group[i].Name = fmt.Sprintf("dev%d", i)
		}
		return m.placedOn([][]passes.Device{group}, "partition")
	}
	c, err := cost.Of(typed, split)
	if err != nil {
		return nil, InputError{err}
	}
	return c, nil
}

// placedOn returns the model's module after a pass, placed on the given
// devices.
func (m *Model) placedOn(on [][]passes.Device, after string) (*ir.Module, error) {
	mod, err := m.Lower()
	if err != nil {
		return nil, err
	}
	env, err := m.env()
	if err != nil {
		return nil, err
	}
	env.Devices, env.Notice = on, nil
	return mod, passes.Run(env, mod, passes.Pipeline, passes.Options{After: after, Limit: -1})
}

// machineNamed returns the machine that "auto" in a device string means: this
// machine's memories ("" or "host"), its GPUs ("gpu"), or one that cost.Named knows.
func (o *Options) machineNamed(name string) (*cost.Machine, error) {
	if name == "" {
		name = cost.Host
	}
	return cost.Named(name, func(kind string) (*cost.Machine, error) {
		switch kind {
		case cost.Host:
			return memoriesHere(o.readHere())
		case cost.GPU:
			return gpusHere()
		}
		return cost.Known(kind)
	})
}

// readHere returns this machine's measured memory bandwidth in bytes/s, 0 without a
// measurement.
func (o *Options) readHere() float64 {
	p, _, err := o.Measurements()
	if err != nil || p == nil || p.Machine == nil || len(p.Machine.ReadGBs) == 0 {
		return 0
	}
	speeds := slices.Sorted(slices.Values(p.Machine.ReadGBs))
	return speeds[len(speeds)/2] * 1e9
}

// gpusHere lists the driver's GPUs; their speeds come from data sheets.
func gpusHere() (*cost.Machine, error) {
	driver, err := cuda.OpenDriver("")
	if err != nil {
		return nil, fmt.Errorf("devices auto:gpu: %w; name the machine, such as auto:8xh100", err)
	}
	var first string
	n := 0
	for ; ; n++ {
		gpu, err := driver.OpenGPU(n)
		if err != nil && n == 0 {
			return nil, fmt.Errorf("devices auto:gpu: %w; name the machine, such as auto:8xh100", err)
		}
		if err != nil {
			break
		}
		if n == 0 {
			first = gpu.Name
		} else if gpu.Name != first {
			return nil, fmt.Errorf("devices auto:gpu: GPU %d is a %s, GPU 0 a %s: devices of one kind are expected; write the device string, with shares", n, gpu.Name, first)
		}
	}
	return cost.KnownAs(n, first)
}
