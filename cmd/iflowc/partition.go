package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/spec"
	"github.com/iflowc/iflowc/templates"
)

// A rank is the program of one device of a partitioned model, and its code.
type rank struct {
	*passes.Rank
	cpu  *codegen.CPUModel
	cuda *codegen.CUDAModel // nil: the processor computes it
}

// spread says whether the model is to run on more than one device.
func (m *model) spread() bool {
	groups, err := devices(m.Spec.Devices)
	return err == nil && (len(groups) > 1 || len(groups) == 1 && len(groups[0]) > 1)
}

// programs gives the program of each rank, with what the passes after partition
// may consult of it. Weights have the types that they have in whole, the module
// of the model on one device; nil: it is made here.
func (f *modelFlags) programs(m *model, whole *ir.Module) (list []*passes.Rank, envs []*passes.Env, partitioned *ir.Module, err error) {
	if whole == nil {
		if whole, _, err = f.onOne(m, passes.Options{Limit: -1, After: "quantize"}); err != nil {
			return nil, nil, nil, err
		}
	}
	if partitioned, err = spec.Lower(m.Model); err != nil {
		return nil, nil, nil, usageError{err}
	}
	env, err := f.env(m.Model)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := passes.Run(env, partitioned, []*passes.Pass{passes.Partition}, passes.Options{Limit: -1}); err != nil {
		return nil, nil, nil, usageError{fmt.Errorf("--devices %s: %w", m.Spec.Devices, err)}
	}
	if list, err = passes.Project(partitioned, env.Devices); err != nil {
		return nil, nil, nil, usageError{err}
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
				notice("rank %d: %s", i, line)
			}
		}
		envs = append(envs, &own)
	}
	return list, envs, partitioned, nil
}

// ranks goes on from the ranks' programs after all passes to their code.
func (f *modelFlags) ranks(m *model, whole *ir.Module, opt passes.Options) ([]*rank, *ir.Module, error) {
	list, envs, partitioned, err := f.programs(m, whole)
	if err != nil {
		return nil, nil, err
	}
	var out []*rank
	for i, r := range list {
		if err := passes.Run(envs[i], r.Module, passes.Pipeline, opt); err != nil {
			return nil, nil, fmt.Errorf("rank %d: %w", i, err)
		}
		cpu, err := codegen.CPU(r.Module, envs[i].Kernels, m.context)
		if err != nil {
			return nil, nil, usageError{fmt.Errorf("rank %d: %w", i, err)}
		}
		out = append(out, &rank{Rank: r, cpu: cpu})
	}
	return out, partitioned, nil
}

// rankProgram is the program of one rank after the passes that opt allows.
func (f *modelFlags) rankProgram(m *model, number int, opt passes.Options) (*ir.Module, error) {
	if !m.spread() {
		return nil, usageError{fmt.Errorf("--rank %d: the model is on one device; name several with --devices", number)}
	}
	list, envs, _, err := f.programs(m, nil)
	if err != nil {
		return nil, err
	}
	if number < 0 || number >= len(list) {
		return nil, usageError{fmt.Errorf("--rank %d: there are ranks 0 to %d on %s", number, len(list)-1, m.Spec.Devices)}
	}
	if opt.After == "partition" {
		opt.After = "lower" // all of partition is in it
	}
	return list[number].Module, passes.Run(envs[number], list[number].Module, passes.Pipeline, opt)
}

// ofRanks is the code that all ranks have between them: every site and kernel
// once.
func (f *modelFlags) ofRanks(m *model) (*codegen.CPUModel, *templates.Catalog, error) {
	ranks, _, err := f.ranks(m, nil, passes.Options{Limit: -1})
	if err != nil {
		return nil, nil, err
	}
	cat, err := templates.Load()
	if err != nil {
		return nil, nil, err
	}
	all := *ranks[0].cpu
	for _, r := range ranks[1:] {
		for _, site := range r.cpu.Manifest.Sites {
			if !slices.ContainsFunc(all.Manifest.Sites, func(s manifest.Site) bool {
				return s.Name == site.Name && s.N == site.N && s.K == site.K && s.DType == site.DType
			}) {
				all.Manifest.Sites = append(slices.Clip(all.Manifest.Sites), site)
			}
		}
		for _, k := range r.cpu.Kernels {
			if !slices.ContainsFunc(all.Kernels, func(h codegen.Kernel) bool { return h.Symbol(h.Type) == k.Symbol(k.Type) }) {
				all.Kernels = append(slices.Clip(all.Kernels), k)
			}
		}
	}
	return &all, cat, nil
}

// onOne lowers the model and gives it to the passes as if it ran on one device.
func (f *modelFlags) onOne(m *model, opt passes.Options) (*ir.Module, *templates.Catalog, error) {
	one := *m.Model
	s := *m.Spec
	s.Devices, one.Spec = "", &s
	return f.module(&model{Model: &one, set: m.set, context: m.context}, opt)
}

// spreadable says what cannot be made of a partitioned model.
func (f *compileFlags) spreadable(emit string) error {
	switch {
	case f.EmbedWeights:
		return usageError{fmt.Errorf("--embed-weights with --devices: each rank of a partitioned model reads a weights file of its own")}
	case emit == "lib":
		return usageError{fmt.Errorf("--emit lib with --devices: only a binary or a package runs on several devices")}
	}
	return nil
}

// buildRanks compiles and packs each rank's program and makes the binary of all
// of them.
func (p *program) buildRanks(ctx context.Context, cache *toolchain.Cache, b *toolchain.Builder, bar *progress, emit, out string) (*summary, error) {
	plan, err := spec.ParseDevices(p.m.Spec.Devices)
	if err != nil {
		return nil, usageError{err}
	}
	s := &summary{Binary: out, Weights: out + ".weights.*"}
	man := &p.cpu.Manifest
	man.Partition = &manifest.Partition{Devices: plan.String()}
	p.files = map[string][]byte{}
	var packed, endings []string
	for i, r := range p.ranks {
		s.Regions = max(s.Regions, r.cpu.Regions)
		libs, err := libraries(ctx, b, r.cpu, p.isas)
		if err != nil {
			return nil, err
		}
		if err := p.rankLibs(i, libs); err != nil {
			return nil, err
		}
		if err := p.gpuFiles(ctx, b, r.cuda, &r.cpu.Manifest, p.rankFile(i)); err != nil {
			return nil, err
		}
		path, err := packWeights(ctx, cache, p.m.source(), r.cpu.Pack, bar.bytes)
		if err != nil {
			return nil, err
		}
		packed, endings = append(packed, path), append(endings, fmt.Sprintf("weights.%dof%d", i, len(p.ranks)))
		man.Partition.Ranks = append(man.Partition.Ranks, manifest.Rank{
			Device: strings.TrimPrefix(r.Device, "dev"), Stage: r.Stage, Member: r.Member, Members: r.Members, Lo: r.Lo, Hi: r.Hi,
			Manifest: fmt.Sprintf("rank%d.json", i), Weights: endings[i], Traffic: r.cpu.Traffic})
	}
	if err := p.describeRanks(); err != nil {
		return nil, err
	}
	if p.flags.KeepSources != "" {
		if err := p.writeSources(p.flags.KeepSources); err != nil {
			return nil, err
		}
	}
	if emit == "package" {
		return p.emitPackage(packed, endings, out)
	}
	bar.stage("linking the binary")
	bin, err := codegen.BuildBinary(ctx, cache, p.files)
	if err != nil {
		return nil, err
	}
	return s, p.placeRanks(s, bin, packed, endings, out)
}

// placeRanks puts the binary at out, and each rank's weights beside it.
func (p *program) placeRanks(s *summary, bin string, packed, endings []string, out string) error {
	if err := s.placeWeights(packed, endings, out); err != nil {
		return err
	}
	if err := placeFile(bin, out, 0o755); err != nil {
		return err
	}
	info, err := os.Stat(out)
	if err == nil {
		s.BinaryBytes = info.Size()
	}
	return err
}

// rankFile puts a file of a rank among the files and gives its name: of an equal
// file of a rank before it, where there is one.
func (p *program) rankFile(number int) func(name string, data []byte) string {
	return func(name string, data []byte) string {
		for i := range number {
			if same := fmt.Sprintf("rank%d-%s", i, name); slices.Equal(p.files[same], data) && len(data) > 0 {
				return same
			}
		}
		name = fmt.Sprintf("rank%d-%s", number, name)
		p.files[name] = data
		return name
	}
}

// rankLibs puts a rank's libraries among the files; ranks with the same code
// share them.
func (p *program) rankLibs(number int, libs []library) error {
	man := &p.ranks[number].cpu.Manifest
	for _, l := range libs {
		data, err := os.ReadFile(l.path)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("lib-%s-%d.so", l.isa.Name, number)
		for i := range number {
			if same := fmt.Sprintf("lib-%s-%d.so", l.isa.Name, i); slices.Equal(p.files[same], data) {
				name = same
				break
			}
		}
		p.files[name] = data
		man.Libs = append(man.Libs, manifest.Lib{ISA: l.isa.Name, File: name, Needs: l.isa.Needs})
	}
	return nil
}

// describeRanks completes the manifests and gathers the files of the Go module.
// The model's own manifest says what users see; each rank's says what it runs.
func (p *program) describeRanks() error {
	man := &p.cpu.Manifest
	if err := p.identity(); err != nil {
		return err
	}
	p.files["model.ir"] = []byte(p.partitioned.String())
	man.Weights, man.Sites, man.Regions, man.Libs = nil, nil, nil, nil
	steps := ""
	for _, r := range p.ranks {
		steps += r.cpu.Step
	}
	man.Hash = p.hash(steps)
	for i, r := range p.ranks {
		own := &r.cpu.Manifest
		own.Format, own.Compiler, own.Name, own.Hash, own.Network = man.Format, man.Compiler, man.Name, man.Hash, man.Network
		own.Vocab, own.Context, own.BOS, own.Pad = man.Vocab, man.Context, man.BOS, man.Pad
		data, err := json.MarshalIndent(own, "", " ")
		if err != nil {
			return err
		}
		p.files[man.Partition.Ranks[i].Manifest] = data
	}
	for name := range p.files {
		if strings.HasPrefix(name, "lib-") || strings.HasPrefix(name, "rank") {
			man.Partition.Files = append(man.Partition.Files, name)
		}
	}
	slices.Sort(man.Partition.Files)
	var err error
	p.files["model.json"], err = json.MarshalIndent(man, "", " ")
	return err
}

// rankSources are the generated sources of a model on several devices, for
// people: a folder for each rank, and the C of the transports.
func (p *program) rankSources() map[string]string {
	out := map[string]string{}
	for i, r := range p.ranks {
		dir := fmt.Sprintf("rank%d", i)
		out[filepath.Join(dir, "step.c")] = r.cpu.Step
		out[filepath.Join(dir, "model.ir")] = r.Module.String()
	}
	if p.ranks == nil {
		return out
	}
	out["model.ir"] = p.partitioned.String()
	for _, src := range templates.Comm() {
		out[filepath.Join("comm", src.Name)] = src.Text
	}
	return out
}
