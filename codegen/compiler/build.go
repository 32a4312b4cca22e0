package compiler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/kit/destination"
	"github.com/iflowc/iflowc/spec"
	"github.com/iflowc/iflowc/templates"
)

// A Result describes the files of a build.
type Result struct {
	Binary      string  `json:"binary"` // the output file or folder
	BinaryBytes int64   `json:"binary_bytes"`
	Weights     string  `json:"weights,omitempty"` // "": inside the binary
	WeightBytes int64   `json:"weight_bytes"`
	Regions     int     `json:"regions_per_layer"`
	Seconds     float64 `json:"seconds"`

	Name          string  `json:"name"`
	Network       string  `json:"network"`                 // decoder_only, encoder_only, encoder_decoder
	ChatTemplate  bool    `json:"chat_template,omitempty"` // the model has a chat template
	WeightType    string  `json:"weight_type"`             // type of most of the weights
	BitsPerWeight float64 `json:"bits_per_weight"`         // mean over all weights
	Context       int     `json:"context"`                 // maximum tokens of a sequence
	StateBytes    int64   `json:"state_bytes"`             // KV cache of one sequence with a full context

	MemoryBytes int64   `json:"memory_bytes"`              // of one sequence with a full context
	BoundTokS   float64 `json:"bound_tok_s,omitempty"`     // bandwidth bound at batch 1
	BoundGBS    float64 `json:"bound_read_gb_s,omitempty"` // that bandwidth, from the machine's profile

	Smaller []SmallerWeights `json:"smaller,omitempty"` // estimates for smaller sizes; none if the weights are quantized

	Warnings []string `json:"warnings,omitempty"` // about the weight types
}

// Build compiles, packs and links the program, and writes the results to the
// place in the options. Each file is written completely or not at all.
func (p *Program) Build(ctx context.Context) (*Result, error) {
	start := time.Now()
	defer p.finish()
	if p.opt.Out == "" {
		p.opt.Out = defaultOut(p.Spec.Name, p.opt.Emit)
	}
	p.result = Result{Binary: p.opt.Out}
	if p.opt.Emit == "sources" {
		if err := p.opt.checkOutputs(p.opt.Out); err != nil {
			return nil, err
		}
		return &p.result, p.writeSources(p.opt.Out)
	}
	if err := p.run(ctx, backEnd); err != nil {
		return nil, err
	}
	p.result.Seconds = time.Since(start).Seconds()
	return &p.result, nil
}

// finish closes the build's cache.
func (p *Program) finish() {
	if p.cache != nil {
		p.cache.Close()
		p.cache = nil
	}
}

// prepare checks the output path, and opens the cache and the compiler.
func (p *Program) prepare(ctx context.Context) (err error) {
	p.files = map[string][]byte{}
	if err := p.opt.checkOutputs(p.opt.Out); err != nil {
		return err
	}
	if p.cache, err = toolchain.OpenCache(""); err != nil {
		return err
	}
	cc, err := toolchain.FindCompilerFor(ctx, p.opt.CC, toolchain.TargetFromEnv())
	if err != nil {
		return err
	}
	p.cc = &toolchain.Builder{Cache: p.cache, CC: cc, Jobs: p.opt.Jobs, Progress: func(done, total int, unit string) {
		p.opt.progress(Progress{Stage: "compiling", Done: int64(done), Total: int64(total), Unit: unit})
	}}
	return nil
}

// checkOutputs returns an error before the work starts if the result or the
// sources cannot be written to the paths in the options.
func (o *Options) checkOutputs(out string) error {
	var err error
	switch o.Emit {
	case "package":
		err = checkPackage(out)
	case "sources":
		err = destination.CheckFolder("-o", out)
	case "lib":
		if err = destination.Check("-o", out); err == nil {
			err = destination.Check("-o", libraryHeader(out))
		}
	default:
		err = destination.Check("-o", out)
	}
	if err == nil && o.KeepSources != "" {
		err = destination.CheckFolder("--keep-sources", o.KeepSources)
	}
	if err != nil {
		return InputError{err}
	}
	return nil
}

// compileC compiles and links each part's step and kernels, for each
// instruction set.
func (p *Program) compileC(ctx context.Context) error {
	for i, r := range p.parts() {
		p.result.Regions = max(p.result.Regions, r.CPU.Regions)
		libs, err := libraries(ctx, p.cc, r.CPU, p.isas)
		if err != nil {
			return err
		}
		for _, l := range libs {
			data, err := os.ReadFile(l.path)
			if err != nil {
				return err
			}
			name := p.addFile(i, "lib-"+l.isa.Name, ".so", data)
			r.CPU.Manifest.Libs = append(r.CPU.Manifest.Libs, manifest.Lib{ISA: l.isa.Name, File: name, Needs: l.isa.Needs})
		}
	}
	return nil
}

// compileCUDA compiles the GPU code of the parts that have GPU code.
func (p *Program) compileCUDA(ctx context.Context) error {
	for i, r := range p.parts() {
		if r.CUDA == nil {
			continue
		}
		if err := p.gpuFiles(ctx, r, func(name, ext string, data []byte) string { return p.addFile(i, name, ext, data) }); err != nil {
			return err
		}
	}
	return nil
}

// packWeights packs each part's weights. A program accepts only the weights file
// that it was compiled with, or any of the same shapes if there was none.
func (p *Program) packWeights(ctx context.Context) (err error) {
	if p.opt.NoWeights {
		return nil
	}
	for i, r := range p.parts() {
		if r.packed, err = packWeights(ctx, p.cache, p.source(), r.CPU.Pack, p.weightsPath(p.ending(i)), func(done, total int64) {
			p.opt.progress(Progress{Stage: "packing weights", Done: done, Total: total, Unit: "bytes"})
		}); err != nil {
			return err
		}
		if r.CPU.Manifest.WeightsID, err = weightsID(r.packed); err != nil {
			return err
		}
	}
	return nil
}

// addFile adds a file of a rank's part of the model to the Go module and returns its
// name. If an earlier rank has an equal file, it returns that file's name.
func (p *Program) addFile(part int, stem, ext string, data []byte) string {
	name := func(rank int) string {
		if p.ranks == nil {
			return stem + ext
		}
		return fmt.Sprintf("%s-rank%d%s", stem, rank, ext)
	}
	for i := range part {
		if same := name(i); len(data) > 0 && slices.Equal(p.files[same], data) {
			return same
		}
	}
	p.files[name(part)] = data
	return name(part)
}

// describe completes the manifests and collects the files of the Go module. A
// partitioned model has a manifest for users and one per rank for its program.
func (p *Program) describe(context.Context) error {
	man := &p.whole.CPU.Manifest
	p.files["tokenizer.bin"] = p.tokData
	var err error
	if p.files["model.yaml"], err = p.Spec.YAML(); err != nil {
		return err
	}
	p.identify(man, p.tok)
	ir, steps := p.Module, ""
	if p.ranks != nil {
		ir = p.partitioned
		man.Weights, man.Matmuls, man.Regions, man.Libs = nil, nil, nil, nil
	}
	p.files["model.ir"] = []byte(ir.String())
	for _, r := range p.parts() {
		steps += r.CPU.Step
	}
	man.Hash = p.hash(steps)
	if p.ranks != nil {
		if err := p.describeRanks(man); err != nil {
			return err
		}
	}
	p.files["model.json"], err = json.MarshalIndent(man, "", " ")
	return err
}

// describeRanks adds the ranks to the model's manifest, and their own.
func (p *Program) describeRanks(man *manifest.Manifest) error {
	plan, err := spec.ParseDevices(p.Spec.Devices)
	if err != nil {
		return InputError{err}
	}
	man.Partition = &manifest.Partition{Devices: plan.String()}
	for name := range p.files {
		if strings.Contains(name, "-rank") {
			man.Partition.Files = append(man.Partition.Files, name)
		}
	}
	for i, r := range p.ranks {
		own := &r.CPU.Manifest
		own.Format, own.Compiler, own.Name, own.Hash, own.Network = man.Format, man.Compiler, man.Name, man.Hash, man.Network
		own.Vocab, own.Context, own.BOS, own.Pad = man.Vocab, man.Context, man.BOS, man.Pad
		data, err := json.MarshalIndent(own, "", " ")
		if err != nil {
			return err
		}
		file := fmt.Sprintf("rank%d.json", i)
		p.files[file] = data
		man.Partition.Files = append(man.Partition.Files, file)
		man.Partition.Ranks = append(man.Partition.Ranks, manifest.Rank{
			Device: strings.TrimPrefix(r.Device, "dev"), Stage: r.Stage, TPRank: r.TPRank, TPSize: r.TPSize, Lo: r.Lo, Hi: r.Hi,
			Manifest: file, Weights: p.ending(i), Traffic: r.CPU.Traffic})
	}
	slices.Sort(man.Partition.Files)
	return nil
}

// ending returns the suffix of a part's weights file.
func (p *Program) ending(part int) string {
	if p.ranks == nil {
		return "weights"
	}
	return fmt.Sprintf("weights.%dof%d", part, len(p.ranks))
}

// hash identifies the program by all inputs that determine its results.
func (p *Program) hash(steps string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		if strings.HasPrefix(name, "lib-") {
			continue
		}
		fmt.Fprintf(h, "%s %d\n", name, len(p.files[name]))
		h.Write(p.files[name])
	}
	h.Write([]byte(steps))
	return hex.EncodeToString(h.Sum(nil))
}

// keepSources writes the generated sources if the options name a folder.
func (p *Program) keepSources(context.Context) error {
	if p.opt.KeepSources == "" {
		return nil
	}
	return p.writeSources(p.opt.KeepSources)
}

// writeSources writes all generated sources to a folder.
func (p *Program) writeSources(dir string) error {
	files := map[string]string{"step.c": p.whole.CPU.Step, "pool.c": templates.ThreadPool(), "model.ir": p.Module.String()}
	for name, text := range templates.Headers() {
		files[filepath.Join("include", name)] = text
	}
	maps.Copy(files, p.cudaSources())
	maps.Copy(files, p.rankSources())
	for _, isa := range p.isas {
		for _, k := range p.whole.CPU.Kernels {
			src, err := k.Source(k.Type, isa.Name)
			if err != nil {
				return err
			}
			files[filepath.Join(isa.Name, k.Symbol(k.Type)+".c")] = src
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := toolchain.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// rankSources returns the generated sources of a partitioned model: a folder
// for each rank, and the C code of the transports.
func (p *Program) rankSources() map[string]string {
	out := map[string]string{}
	for i, r := range p.ranks {
		dir := fmt.Sprintf("rank%d", i)
		out[filepath.Join(dir, "step.c")] = r.CPU.Step
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
