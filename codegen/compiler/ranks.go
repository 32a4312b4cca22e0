package compiler

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A Rank is the program of one device and its code.
type Rank struct {
	*passes.Rank                    // nil: the whole model is on one device
	CPU          *codegen.CPUModel  // C code of its step
	CUDA         *codegen.CUDAModel // nil: on a CPU

	packed string // path of its packed weights
}

// Partitioned reports whether the model runs on more than one device.
func (m *Model) Partitioned() bool {
	groups, err := devices(m.Spec.Devices)
	return err == nil && (len(groups) > 1 || len(groups) == 1 && len(groups[0]) > 1)
}

// project returns the program of each rank and the context of its later passes.
// Weights keep their types of whole, the model's module for one device; if it
// is nil, project makes it.
func (m *Model) project(whole *ir.Module) (list []*passes.Rank, envs []*passes.Env, partitioned *ir.Module, err error) {
	if whole == nil {
		if whole, err = m.OneDevice(passes.Options{Limit: -1, After: "quantize"}); err != nil {
			return nil, nil, nil, err
		}
	}
	if partitioned, err = m.Lower(); err != nil {
		return nil, nil, nil, err
	}
	env, err := m.env()
	if err != nil {
		return nil, nil, nil, err
	}
	if err := passes.Run(env, partitioned, []*passes.Pass{passes.Partition}, passes.Options{Limit: -1}); err != nil {
		return nil, nil, nil, InputError{fmt.Errorf("--devices %s: %w", m.Spec.Devices, err)}
	}
	if list, err = passes.Project(partitioned, env.Devices); err != nil {
		return nil, nil, nil, InputError{err}
	}
	told := map[string]bool{}
	for i, r := range list {
		own := *env
		own.Devices = nil
		own.Types.Weights = slices.Clone(env.Types.Weights)
		for _, w := range r.Module.Weights {
			if of := whole.Weight(r.Of[w.Name]); of != nil {
				own.Types.Weights = append(own.Types.Weights, passes.TypeRule{Pattern: w.Name, Type: of.Type.Elem})
			}
		}
		own.Notice = func(format string, args ...any) {
			if line := fmt.Sprintf(format, args...); !told[line] {
				told[line] = true
				m.opt.notice("rank %d: %s", i, line)
			}
		}
		envs = append(envs, &own)
	}
	return list, envs, partitioned, nil
}

// Ranks returns the program of each device of a partitioned model after the
// passes that opt allows, with its C code, and the partitioned module. whole is
// the model's module for one device (see OneDevice), or nil.
func (m *Model) Ranks(whole *ir.Module, opt passes.Options) ([]*Rank, *ir.Module, error) {
	list, envs, partitioned, err := m.project(whole)
	if err != nil {
		return nil, nil, err
	}
	var out []*Rank
	for i, r := range list {
		if err := passes.Run(envs[i], r.Module, passes.Pipeline, opt); err != nil {
			return nil, nil, fmt.Errorf("rank %d: %w", i, err)
		}
		cpu, err := codegen.CPU(r.Module, envs[i].Kernels, m.Context)
		if err != nil {
			return nil, nil, InputError{fmt.Errorf("rank %d: %w", i, err)}
		}
		if err := m.addSites(cpu, partitioned); err != nil {
			return nil, nil, fmt.Errorf("rank %d: %w", i, err)
		}
		out = append(out, &Rank{Rank: r, CPU: cpu})
	}
	m.countResults(out)
	return out, partitioned, nil
}

// countResults adds the results that the first rank of the last stage returns to rank 0.
func (m *Model) countResults(list []*Rank) {
	last := list[len(list)-1].Stage
	at := slices.IndexFunc(list, func(r *Rank) bool { return r.Stage == last })
	if at == 0 {
		return
	}
	cpu := list[at].CPU
	var whole manifest.Manifest
	m.medusa(&whole)
	for i := range cpu.Traffic {
		if g := &cpu.Manifest.Graphs[i]; !g.Follows() {
			cpu.Traffic[i].Returns(&whole, g)
		}
	}
}

// RankModule returns the module of one rank after the passes that opt allows.
func (m *Model) RankModule(number int, opt passes.Options) (*ir.Module, error) {
	if !m.Partitioned() {
		return nil, InputError{fmt.Errorf("--rank %d: the model is on one device; name several with --devices", number)}
	}
	list, envs, _, err := m.project(nil)
	if err != nil {
		return nil, err
	}
	if number < 0 || number >= len(list) {
		return nil, InputError{fmt.Errorf("--rank %d: there are ranks 0 to %d on %s", number, len(list)-1, m.Spec.Devices)}
	}
	if opt.After == "partition" {
		opt.After = "lower" // the rank's module includes the pass partition
	}
	return list[number].Module, passes.Run(envs[number], list[number].Module, passes.Pipeline, opt)
}

// Step returns the C code of the model's step. For a partitioned model it has
// the matmuls and kernels of all ranks, each once.
func (m *Model) Step() (*codegen.CPUModel, error) {
	if !m.Partitioned() {
		mod, err := m.Module(passes.Options{Limit: -1})
		if err != nil {
			return nil, err
		}
		return m.Code(mod)
	}
	ranks, _, err := m.Ranks(nil, passes.Options{Limit: -1})
	if err != nil {
		return nil, err
	}
	all := *ranks[0].CPU
	for _, r := range ranks[1:] {
		for _, matmul := range r.CPU.Manifest.Matmuls {
			if !slices.ContainsFunc(all.Manifest.Matmuls, func(s manifest.Matmul) bool {
				return s.Name == matmul.Name && s.N == matmul.N && s.K == matmul.K && s.DType == matmul.DType
			}) {
				all.Manifest.Matmuls = append(slices.Clip(all.Manifest.Matmuls), matmul)
			}
		}
		for _, k := range r.CPU.Kernels {
			if !slices.ContainsFunc(all.Kernels, func(h codegen.Kernel) bool { return h.Symbol(h.Type) == k.Symbol(k.Type) }) {
				all.Kernels = append(slices.Clip(all.Kernels), k)
			}
		}
	}
	return &all, nil
}

// Code generates the C of a module's step.
func (m *Model) Code(mod *ir.Module) (*codegen.CPUModel, error) {
	cat, err := Kernels()
	if err != nil {
		return nil, err
	}
	cpu, err := codegen.CPU(mod, cat, m.Context)
	if err != nil {
		return nil, InputError{err}
	}
	return cpu, m.addSites(cpu, mod)
}
