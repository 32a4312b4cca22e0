package main

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

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/templates"
)

type compileFlags struct {
	modelFlags
	Target         string   `help:"Target: cpu, or with the code for GPUs beside it cuda; cuda-emu emulates that, for tests." enum:"cpu,cuda,cuda-emu" default:"cpu"`
	Arch           string   `help:"GPUs to compile for (default: all): sm_80, sm_86, sm_89, sm_90a, sm_100." placeholder:"LIST"`
	UnifiedSoftmax string   `help:"Softmax of decoding steps on GPUs relative to one constant: where calibration found the scores close together (auto), always or never; the results are the same." enum:"auto,on,off" default:"auto"`
	ISA            string   `name:"isa" help:"Instruction sets to build (default: all of the architecture)." placeholder:"LIST"`
	CC             string   `name:"cc" help:"C compiler." placeholder:"PATH"`
	Skip           []string `help:"Passes to leave out, to see what they gain." placeholder:"PASS,…"`
	KeepSources    string   `help:"Also write what was generated to this folder." type:"path" placeholder:"DIR"`
	EmbedWeights   bool     `help:"Put the weights into the binary."`
	Jobs           int      `short:"j" help:"Compilers at once (default: one a processor)." placeholder:"N"`
}

type compileCmd struct {
	compileFlags
	Calibrate string `help:"Text to calibrate on first: quantising then spares the columns that matter to it." type:"path" placeholder:"TEXT"`
	Feedback  bool   `help:"With --calibrate: let later columns of a row make up for the rounding of earlier ones (GPTQ); takes minutes and the memory of products of columns."`
	Out       string `short:"o" help:"The binary to make (default: the model's name)." type:"path" placeholder:"BIN"`
	Emit      string `help:"What to make: a binary, a shared library with a C header (lib), a Go package to import, or the generated C and IR (sources)." enum:"binary,lib,package,sources" default:"binary"`
	JSON      bool   `name:"json" help:"Print the summary as JSON."`
}

// A summary says what a compile made.
type summary struct {
	Binary      string  `json:"binary"`
	BinaryBytes int64   `json:"binary_bytes"`
	Weights     string  `json:"weights,omitempty"`
	WeightBytes int64   `json:"weight_bytes"`
	Regions     int     `json:"regions_per_layer"`
	Seconds     float64 `json:"seconds"`

	MemoryBytes int64   `json:"memory_bytes"`              // of one sequence of the whole context
	BoundTokS   float64 `json:"bound_tok_s,omitempty"`     // what the bandwidth allows, one sequence at a time
	BoundGBS    float64 `json:"bound_read_gb_s,omitempty"` // that bandwidth, as the machine's profile has it
}

// Run compiles a model.
func (c *compileCmd) Run(ctx context.Context) error {
	start := time.Now()
	if c.Calibrate != "" {
		var err error
		if c.Importance, err = c.calibrate(ctx, c.Calibrate, c.Feedback); err != nil {
			return err
		}
	}
	p, err := c.generate()
	if err != nil {
		return err
	}
	defer p.m.set.Close()
	if p.ranks != nil {
		if err := c.spreadable(c.Emit); err != nil {
			return err
		}
	}
	if c.Emit == "sources" {
		dir := c.Out
		if dir == "" {
			dir = p.m.Spec.Name + "-sources"
		}
		return p.writeSources(dir)
	}
	out := c.Out
	if out == "" {
		out = emitted(p.m.Spec.Name, c.Emit)
	}
	if st, err := os.Stat(out); err == nil && st.IsDir() && c.Emit != "package" {
		return usageError{fmt.Errorf("-o %s: is a folder; name the file to make", out)}
	}
	s, err := p.build(ctx, c.Emit, out)
	if err != nil {
		return err
	}
	s.Seconds = time.Since(start).Seconds()
	p.expect(s)
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(s)
	}
	_, err = fmt.Print(s.describe())
	return err
}

// A program is a model on its way to a binary.
type program struct {
	flags *compileFlags
	m     *model
	mod   *ir.Module
	cpu   *codegen.CPUModel
	cuda  *codegen.CUDAModel // with code for GPUs
	isas  []templates.ISA
	files map[string][]byte // of the generated Go module, but for its Go sources

	// Of a model on several devices: the program of each, and the module that
	// they were made from; mod and cpu are those of the model on one device.
	ranks       []*rank
	partitioned *ir.Module
}

// generate goes from the specification to the sources.
func (f *compileFlags) generate() (*program, error) {
	m, err := f.open()
	if err != nil {
		return nil, err
	}
	p := &program{flags: f, m: m}
	var cat *templates.Catalog
	skip, err := skipped(f.Skip)
	if err == nil {
		err = f.leadingOnProcessor(m)
	}
	if err == nil {
		p.mod, cat, err = f.onOne(m, passes.Options{Limit: -1, Skip: skip})
	}
	if err == nil && m.spread() {
		p.ranks, p.partitioned, err = f.modelFlags.ranks(m, p.mod, passes.Options{Limit: -1, Skip: skip})
	}
	if err == nil {
		if p.isas, err = pickISAsFor(f.ISA, f.activations(m.Spec)); err == nil {
			p.cpu, err = codegen.CPU(p.mod, cat, m.context)
		}
		if err == nil {
			err = f.activationsUsed(p.cpu)
		}
		if err == nil && f.forGPU() {
			err = p.forGPUs()
		}
	}
	if err != nil {
		m.set.Close()
		return nil, err
	}
	return p, nil
}

// forGPU says whether the target has code for GPUs; "" is the processor.
func (f *compileFlags) forGPU() bool { return f.Target == "cuda" || f.Target == "cuda-emu" }

// activationsUsed says whether any kernel takes the activations asked for.
func (f *compileFlags) activationsUsed(cpu *codegen.CPUModel) error {
	if f.Activations != "bf16" || slices.ContainsFunc(cpu.Kernels, func(k codegen.Kernel) bool { return k.Act(k.Type) == f.Activations }) {
		return nil
	}
	return usageError{fmt.Errorf("--activations %s: no weight of this model has kernels for them; --quant %s gives it such weights", f.Activations, f.Activations)}
}

// build compiles and packs, makes what is to be emitted, and puts the results
// at out.
func (p *program) build(ctx context.Context, emit, out string) (*summary, error) {
	cache, err := toolchain.OpenCache("")
	if err != nil {
		return nil, err
	}
	defer cache.Close()
	cc, err := toolchain.FindCompilerFor(ctx, p.flags.CC, toolchain.TargetFromEnv())
	if err != nil {
		return nil, err
	}
	bar := newProgress()
	defer bar.done()
	b := &toolchain.Builder{Cache: cache, CC: cc, Jobs: p.flags.Jobs, Progress: bar.units}
	if p.ranks != nil {
		return p.buildRanks(ctx, cache, b, bar, emit, out)
	}
	libs, err := libraries(ctx, b, p.cpu, p.isas)
	if err != nil {
		return nil, err
	}
	weights, err := packWeights(ctx, cache, p.m.set, p.cpu.Manifest.Weights, bar.bytes)
	if err != nil {
		return nil, err
	}
	gpu, err := p.cudaFiles(ctx, b)
	if err != nil {
		return nil, err
	}
	if err := p.describe(libs, gpu); err != nil {
		return nil, err
	}
	if p.flags.KeepSources != "" {
		if err := p.writeSources(p.flags.KeepSources); err != nil {
			return nil, err
		}
	}
	switch emit {
	case "lib":
		bar.stage("linking the library")
		return p.emitLibrary(ctx, cache, cc.Path, weights, out)
	case "package":
		return p.emitPackage([]string{weights}, []string{"weights"}, out)
	}
	bar.stage("linking the binary")
	bin, err := codegen.BuildBinary(ctx, cache, p.files)
	if err != nil {
		return nil, err
	}
	return p.place(bin, weights, out)
}

// place puts binary and weights at out and out.weights.
func (p *program) place(bin, packed, out string) (*summary, error) {
	s := &summary{Binary: out, Regions: p.cpu.Regions}
	ws, err := os.Stat(packed)
	if err != nil {
		return nil, err
	}
	s.WeightBytes = ws.Size()
	if p.flags.EmbedWeights {
		if err := codegen.Embed(bin, packed, out); err != nil {
			return nil, err
		}
	} else {
		s.Weights = out + ".weights"
		if err := placeFile(packed, s.Weights, 0o644); err != nil {
			return nil, err
		}
		if err := placeFile(bin, out, 0o755); err != nil {
			return nil, err
		}
	}
	bs, err := os.Stat(out)
	if err != nil {
		return nil, err
	}
	s.BinaryBytes = bs.Size()
	return s, nil
}

// describe completes the manifest and gathers the files of the Go module.
func (p *program) describe(libs []library, gpu map[string][]byte) error {
	man := &p.cpu.Manifest
	var err error
	if man.Libs, p.files, err = manifestLibs(libs); err != nil {
		return err
	}
	maps.Copy(p.files, gpu)
	p.files["model.ir"] = []byte(p.mod.String())
	if err := p.identity(); err != nil {
		return err
	}
	man.Hash = p.hash(p.cpu.Step)
	p.files["model.json"], err = json.MarshalIndent(man, "", " ")
	return err
}

// identity adds what the model is beyond its code: tokenizer, specification, and
// what the manifest says of them.
func (p *program) identity() error {
	tok, data, err := p.m.tokenizer()
	if err != nil {
		return err
	}
	p.files["tokenizer.bin"] = data
	if p.files["model.yaml"], err = p.m.Spec.YAML(); err != nil {
		return err
	}
	p.m.identify(&p.cpu.Manifest, tok)
	return nil
}

// hash names the program by everything that decides what it computes.
func (p *program) hash(steps string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range p.files {
			if !strings.HasPrefix(n, "lib-") && !yield(n) {
				return
			}
		}
	}) {
		fmt.Fprintf(h, "%s %d\n", name, len(p.files[name]))
		h.Write(p.files[name])
	}
	h.Write([]byte(steps))
	return hex.EncodeToString(h.Sum(nil))
}

// writeSources writes everything that was generated, for people.
func (p *program) writeSources(dir string) error {
	files := map[string]string{"step.c": p.cpu.Step, "pool.c": templates.ThreadPool(), "model.ir": p.mod.String()}
	for name, text := range templates.Headers() {
		files[filepath.Join("include", name)] = text
	}
	maps.Copy(files, p.cudaSources())
	maps.Copy(files, p.rankSources())
	for _, isa := range p.isas {
		for _, k := range p.cpu.Kernels {
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
