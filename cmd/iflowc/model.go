package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/models"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/spec"
	"github.com/iflowc/iflowc/spec/checkpoint"
	"github.com/iflowc/iflowc/templates"
)

// modelFlags say which model, in which types.
type modelFlags struct {
	Spec        string `arg:"" help:"Specification, model_spec.json, model folder, .gguf or llama2.c file, or a name of the model library."`
	ModelDir    string `help:"Folder of the model's files." type:"path" placeholder:"DIR"`
	Quant       string `help:"Weight type: f32 f16 bf16 q8_b32t2 (or q8) q8_b32 q8_b64 q6_b64 q5_b64 q5_b32 q4_b64 q4_b32 q3h_b64 q3_b32 q2_b32." placeholder:"TYPE"`
	KV          string `name:"kv" help:"Type of cached keys and values: f32, f16 (the default, but of f32 weights), bf16 or q8_b32t2." placeholder:"TYPE"`
	Activations string `help:"How inputs of matmuls are rounded: f32 (not at all; with quantised weights slower), bf16 (with bf16 weights, which doubles the speed of prefill on processors with AVX512-BF16), int8 (plain blocks, with quantised weights) or int8+N (the N largest groups of columns of each row apart, which loses less; the default, N by the weights)." placeholder:"TYPE"`
	Devices     string `help:"Device string, such as 0;1 or 0&1; auto chooses by memory and speed, auto:8xh100 for another machine." placeholder:"STR"`
	Profile     string `help:"Measured profile of the device." type:"path" placeholder:"FILE"`
	Importance  string `help:"Importance matrix, as a model's verb calibrate or llama.cpp writes it: quantising spares the columns that matter." type:"path" placeholder:"FILE"`
	Order       string `help:"Order of summation: class (same tokens whatever the batch) or any." enum:"class,any" default:"class"`
	Context     int    `help:"Most positions of a sequence (default: the model's, at most 4096)." placeholder:"N"`

	Delta float64 `help:"Share of the entries of matrices of fewer than eight bits that are kept aside in float32, at most 0.05: where that lowers the error most." placeholder:"SHARE"`
}

// A model is a specification whose files are open.
type model struct {
	*spec.Model
	set         *checkpoint.Set
	calibration *pack.Calibration // nil: none
	context     int
	placed      string // why it is on these devices, where they were chosen
}

// source is what the model's weights are made from.
func (m *model) source() pack.Source { return pack.Source{Set: m.set, Calibration: m.calibration} }

// open loads the specification, opens the weight files and checks everything
// that can be checked without reading a weight.
func (f *modelFlags) open() (*model, error) {
	path, err := f.specPath()
	if err != nil {
		return nil, err
	}
	s, err := spec.Load(path, spec.Options{ModelDir: f.ModelDir, Quant: f.Quant, KV: f.KV, Devices: f.Devices, MaxContext: f.Context})
	if err != nil {
		return nil, usageError{err}
	}
	set, err := s.OpenWeights()
	if err != nil {
		return nil, usageError{err}
	}
	m, err := spec.Resolve(s, spec.HeadersOf(set))
	if err != nil {
		set.Close()
		return nil, usageError{err}
	}
	for _, line := range set.Notes() {
		notice("%s", line)
	}
	measured, err := f.calibration(s, set)
	if err != nil {
		set.Close()
		return nil, usageError{err}
	}
	opened := &model{Model: m, set: set, calibration: measured, context: contextOf(m)}
	if err := f.place(opened); err != nil {
		set.Close()
		return nil, err
	}
	return opened, nil
}

// calibration reads the calibration file that a flag or the specification names.
func (f *modelFlags) calibration(s *spec.Spec, set *checkpoint.Set) (*pack.Calibration, error) {
	path := f.Importance
	if path == "" {
		if s.Importance == "" {
			return nil, nil
		}
		path = filepath.Join(s.ModelDir, s.Importance)
	}
	c, err := pack.ReadCalibration(path)
	if err != nil {
		return nil, err
	}
	known := 0
	for name := range c.Importance {
		if _, ok := set.Lookup(name); ok {
			known++
		}
	}
	if n := len(c.Importance); known == 0 {
		return nil, fmt.Errorf("%s: none of its %d matrices is one of the model's; it was made of another model", path, n)
	} else if known < n {
		notice("%s: %d of its %d matrices are none of the model's", path, n-known, n)
	}
	return c, nil
}

// defaultContext bounds the context when the user names none: pages are only
// touched as they fill, but the table of a sequence is not free.
const defaultContext = 8192

func contextOf(m *spec.Model) int {
	if n := m.Spec.MaxContextLen; n > 0 {
		return n
	}
	if n := m.Hyper.MaxContext; n > 0 && !m.GrowsBeyondContext() {
		return min(n, defaultContext)
	} else if n > 0 {
		return max(n, defaultContext)
	}
	return 1024
}

// specPath is the argument itself when such a file exists, else the path of
// the library's model of that name, whose embedded files are put in the cache.
func (f *modelFlags) specPath() (string, error) {
	info, err := os.Stat(f.Spec)
	program := err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.Ext(f.Spec) == "" // a binary that compile made
	if err == nil && !program {
		return f.Spec, nil
	}
	name := strings.TrimSuffix(filepath.Base(f.Spec), ".yaml")
	src, err := models.Lookup(name)
	if err != nil || strings.ContainsAny(strings.TrimPrefix(filepath.ToSlash(f.Spec), "models/"), "/") {
		return f.Spec, nil // spec.Load says what is wrong with it
	}
	if _, err := fs.Stat(models.FS(), name); err != nil {
		return name, nil // a specification alone: its files come by --model-dir
	}
	return extract(name, src)
}

// extract writes an embedded model to the cache, once.
func extract(name string, src []byte) (string, error) {
	cache, err := toolchain.OpenCache("")
	if err != nil {
		return "", err
	}
	defer cache.Close()
	parts := []string{"embedded model 1", name, string(src)}
	files := map[string][]byte{name + ".yaml": src}
	err = fs.WalkDir(models.FS(), name, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(models.FS(), p)
		files[p] = data
		parts = append(parts, p, string(data))
		return err
	})
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache.Dir, "models", toolchain.Key(parts...)[:16])
	out := filepath.Join(dir, name+".yaml")
	if toolchain.Have(out) {
		return out, nil
	}
	if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
		return "", err
	}
	for p, data := range files {
		if p != name+".yaml" {
			if err := toolchain.WriteFile(filepath.Join(dir, filepath.FromSlash(p)), data, 0o644); err != nil {
				return "", err
			}
		}
	}
	return out, toolchain.WriteFile(out, src, 0o644) // last: its presence says that all is there
}

// module lowers the model and gives it to the passes.
func (f *modelFlags) module(m *model, opt passes.Options) (*ir.Module, *templates.Catalog, error) {
	mod, err := spec.Lower(m.Model)
	if err != nil {
		return nil, nil, usageError{err}
	}
	env, err := f.env(m.Model)
	if err != nil {
		return nil, nil, err
	}
	return mod, env.Kernels, passes.Run(env, mod, passes.Pipeline, opt)
}

// step goes on from the module after all passes to its code for the CPU.
func (f *modelFlags) step(m *model) (*codegen.CPUModel, *templates.Catalog, error) {
	if m.spread() {
		return f.ofRanks(m)
	}
	mod, cat, err := f.module(m, passes.Options{Limit: -1})
	if err != nil {
		return nil, nil, err
	}
	cpu, err := codegen.CPU(mod, cat, m.context)
	if err != nil {
		return nil, nil, usageError{err}
	}
	return cpu, cat, nil
}

// activations is what the flag or else the specification asks for.
func (f *modelFlags) activations(s *spec.Spec) string {
	if f.Activations != "" {
		return f.Activations
	}
	return s.Activations
}

// env is what the passes may consult.
func (f *modelFlags) env(m *spec.Model) (*passes.Env, error) {
	s := m.Spec
	cat, err := templates.Load()
	if err != nil {
		return nil, err
	}
	env := &passes.Env{Ops: ops.Table, Kernels: cat, Notice: notice}
	env.Types.Default = s.Quant
	if err := env.Types.SetActivations(f.activations(s)); err != nil {
		return nil, usageError{err}
	}
	env.Types.Threshold = s.TensorQuantThreshold
	if err := env.Types.SetDeltas(cmp.Or(f.Delta, s.DeltaTensorRatio)); err != nil {
		return nil, usageError{err}
	}
	types, err := m.WeightTypes()
	if err != nil {
		return nil, usageError{err}
	}
	for _, t := range types {
		env.Types.Weights = append(env.Types.Weights, passes.TypeRule{Pattern: t.Weight, Type: t.Type})
	}
	if env.Devices, err = devices(s.Devices); err != nil {
		return nil, usageError{err}
	}
	p, _, err := f.measurements()
	if err != nil {
		return nil, err
	}
	if p != nil {
		env.Profile = measured{p}
	}
	return env, nil
}

// devices gives the groups of a device string to the passes.
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

// measured lets the passes read a profile file.
type measured struct{ *dispatch.Profile }

// Choose gives the rules of a shape as far as a note can hold them: each
// implementation once, from where it first wins. A profile that a binary reads
// at its start is followed exactly.
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

// notice tells the user of a choice made for them.
func notice(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "note: "+format+"\n", args...)
}
