package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/spec"
	"github.com/iflowc/iflowc/templates"
)

// Kernels returns the catalog of CPU kernels; it is read once.
var Kernels = sync.OnceValues(templates.Load)

// Lower returns the model's module before any pass, for one device.
func (m *Model) Lower() (*ir.Module, error) {
	mod, err := spec.Lower(m.Model)
	if err != nil {
		return nil, InputError{err}
	}
	for _, v := range mod.States {
		for _, f := range v.State.Fields {
			if width := f.Shape[len(f.Shape)-1]; width%f.Elem.Block() != 0 {
				return nil, InputError{fmt.Errorf("the KV cache cannot be of type %s: heads of %d numbers are not whole blocks of %d; --kv f16 takes any", f.Elem, width, f.Elem.Block())}
			}
		}
	}
	return mod, nil
}

// Module returns the model's module after the passes that opt allows. A
// partitioned model's module contains the ranks' exchanges; see Ranks for each
// rank's program.
func (m *Model) Module(opt passes.Options) (*ir.Module, error) {
	mod, err := m.Lower()
	if err != nil {
		return nil, err
	}
	env, err := m.env()
	if err != nil {
		return nil, err
	}
	return mod, passes.Run(env, mod, passes.Pipeline, opt)
}

// OneDevice is like Module, with the model on one device.
func (m *Model) OneDevice(opt passes.Options) (*ir.Module, error) {
	one, r, s := *m, *m.Model, *m.Spec
	s.Devices, r.Spec, one.Model = "", &s, &r
	return one.Module(opt)
}

// activations returns the activation type of the options or else the spec.
func (m *Model) activations() string { return cmp.Or(m.opt.Activations, m.Spec.Activations) }

// env returns the context of passes.
func (m *Model) env() (*passes.Env, error) {
	s := m.Spec
	cat, err := Kernels()
	if err != nil {
		return nil, err
	}
	env := &passes.Env{Ops: ops.Table, Kernels: cat, Notice: m.opt.notice}
	env.Types.Default = s.Quant
	if err := env.Types.SetActivations(m.activations()); err != nil {
		return nil, InputError{err}
	}
	env.Types.Threshold = s.TensorQuantThreshold
	if err := env.Types.SetSparseOutliers(cmp.Or(m.opt.SparseOutliers, s.DeltaTensorRatio)); err != nil {
		return nil, InputError{err}
	}
	types, err := m.WeightTypes()
	if err != nil {
		return nil, InputError{err}
	}
	for _, t := range types {
		env.Types.Weights = append(env.Types.Weights, passes.TypeRule{Pattern: t.Weight, Type: t.Type})
	}
	if env.Devices, err = devices(s.Devices); err != nil {
		return nil, InputError{err}
	}
	p, _, err := m.opt.Measurements()
	if err != nil {
		return nil, err
	}
	if p != nil {
		env.Profile = measured{p}
	}
	return env, nil
}

// devices converts a device string for the passes.
func devices(text string) ([][]passes.Device, error) {
	if text == "" {
		return nil, nil
	}
	plan, err := spec.ParseDevices(text)
	if err != nil {
		return nil, err
	}
	var out [][]passes.Device
	for _, g := range plan {
		var group []passes.Device
		for _, d := range g.Devices {
			name := "cpu"
			if !d.CPU {
				name = fmt.Sprintf("dev%d", d.N)
			}
			group = append(group, passes.Device{Name: name, Share: g.Share})
		}
		out = append(out, group)
	}
	return out, nil
}

// measured is a profile file for the passes.
type measured struct{ *dispatch.Profile }

// Choose returns the rules of a shape in the form of an annotation: each
// implementation once, from the row count where it is first the fastest. A
// profile that a binary reads at start is followed exactly.
func (p measured) Choose(n, k int, dt tensor.DType, impls []string) ([]passes.Case, bool) {
	for _, s := range p.Shapes {
		if s.N != n || s.K != k || s.DType != dt.String() {
			continue
		}
		var cases []passes.Case
		for _, r := range s.Rules {
			if slices.ContainsFunc(cases, func(c passes.Case) bool { return c.Impl == r.Impl }) {
				continue
			}
			cases = append(cases, passes.Case{Rows: r.Rows, Impl: r.Impl})
		}
		return cases, len(cases) > 0
	}
	return nil, false
}
