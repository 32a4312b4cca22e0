package compiler

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/spec"
	"github.com/iflowc/iflowc/templates"
	"github.com/iflowc/iflowc/tools/check/sass"
	"golang.org/x/tools/txtar"
)

var gates = flag.String("gates", "", "hold the kernels of published models' shapes to what is promised, for every GPU: usual, recurrent, or one MODEL/TYPE")

// A gated model is compiled in some types, for some GPUs.
type gated struct {
	model, quant, kv, act string
	outliers              float64
	only                  string // which units are compiled, by a regular expression; empty: all
	archs                 []string
}

// weightTypes are those of the CUDA target.
var weightTypes = strings.Fields("f32 f16 bf16 q8_b32 q8_b64 q8_b32t2 q6_b64 q5_b64 q5_b32 q4_b32 q4_b64 q3h_b64 q3_b32 q2_b32 q6t_b32 q5t_b32 q4t_b32 q3t_b32 q2t_b32 q6_b16t2 q4_b16t2 q2_b16")

// recurrentGates are the ops on fixed-size states.
var recurrentGates = gated{model: "testdata/recurrent.ir", quant: "f32", only: "recurrence|scan|lru|conv|move"}

// gatedModels are the models of the library, at their real sizes without any
// weights, in the types that are usual for them; and what depends on the type of
// weights in every type: an embedding, a product with a norm in front, one with a
// sum behind, and the experts of a mixture.
func gatedModels() []gated {
	list := []gated{
		{model: "llama2-7b", quant: "q4_b64"}, {model: "llama2-7b", quant: "f16"},
		{model: "mistral-7b", quant: "q4_b32", kv: "q8_b32t2", outliers: 0.01}, {model: "mistral-7b", quant: "bf16", act: "bf16"},
		{model: "m2m100-418m", quant: "q8_b32"}, {model: "m2m100-418m", quant: "f16"},
		{model: "roberta-base", quant: "q3h_b64"}, {model: "roberta-base", quant: "f16"},
		{model: "smollm2-135m-instruct", quant: "q4_b64", act: "f32", outliers: 0.01},
	}
	for _, kv := range []string{"f32", "bf16", "q8_b32t2", "q4"} { // f16 is what the others have
		list = append(list, gated{model: "smollm2-135m-instruct", quant: "q8_b32t2", kv: kv, only: "attention|move"})
	}
	list = append(list, recurrentGates)
	for _, q := range weightTypes {
		list = append(list, gated{model: "smollm2-135m-instruct", quant: q, only: "embed|wq|w_down|wgmma"}, gated{model: "mixtral-8x7b-instruct", quant: q, only: "experts"})
	}
	return list
}

// TestCUDAGates: what nvcc makes of the kernels compiles without a warning, does
// not spill in main loops, and shows the instructions and the occupancy that the
// templates' headers promise. It needs nvcc, and for the machine code cuobjdump and
// nvdisasm beside it. It prints what the sources take, and the compiler.
func TestCUDAGates(t *testing.T) {
	nvcc, err := toolchain.FindNVCC(t.Context())
	if err != nil {
		t.Skip(err)
	}
	list := []gated{{model: "smollm2-135m-instruct", quant: "q4_b64", only: "embed|attention|w_down|wgmma", archs: []string{"sm_80", "sm_90a"}}}
	if *gates == "usual" {
		list = gatedModels()
	} else if *gates == "recurrent" {
		list = []gated{recurrentGates}
	} else if model, quant, one := strings.Cut(*gates, "/"); one {
		list = []gated{{model: model, quant: quant}}
	} else if *gates != "" {
		t.Fatalf("-gates %s: say usual, recurrent, or MODEL/TYPE of ../../models/testdata/library", *gates)
	}
	for _, g := range list {
		if g.archs == nil {
			for _, a := range toolchain.GPUArchs {
				g.archs = append(g.archs, a.Name)
			}
		}
		t.Run(strings.Join(strings.Fields(fmt.Sprint(g.model, " ", g.quant, " ", g.kv, " ", g.act, " ", g.only)), " "), func(t *testing.T) {
			t.Parallel()
			g.hold(t, nvcc.Path)
		})
	}
}

// cuda spells the model for GPUs.
func (g *gated) cuda(t *testing.T) *codegen.CUDAModel {
	t.Helper()
	mod, err := ir.Parse(g.model, g.text(t), ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	cat, err := templates.Load()
	if err != nil {
		t.Fatal(err)
	}
	env := &passes.Env{Ops: ops.Table, Kernels: cat, Notice: t.Logf}
	env.Types.Default, _ = tensor.ParseDType(g.quant)
	if g.kv != "" {
		if env.Types.KV, err = spec.ParseKVType(g.kv); err != nil {
			t.Fatal(err)
		}
	}
	env.Types.SparseOutliers = g.outliers
	if err := env.Types.SetActivations(g.act); err != nil {
		t.Fatal(err)
	}
	if err := passes.Run(env, mod, passes.Pipeline, passes.Options{Limit: -1}); err != nil {
		t.Fatal(err)
	}
	m, err := cudaModel(mod, 4096, &codegen.ScoreRange{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// text is the IR that the model is lowered to, or that of a file.
func (g *gated) text(t *testing.T) []byte {
	t.Helper()
	if filepath.Ext(g.model) == ".ir" {
		text, err := os.ReadFile(g.model)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	ar, err := txtar.ParseFile("../../models/testdata/library/" + g.model + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	return ar.Files[len(ar.Files)-1].Data
}

// hold compiles the model's units and holds the machine code to the promises of its
// templates: units for every GPU as one file, those for one compute capability as
// another.
func (g *gated) hold(t *testing.T, nvcc string) {
	m, only := g.cuda(t), regexp.MustCompile(g.only)
	for _, compute := range []int{0, 90} {
		wanted := func(u codegen.CUDAUnit) bool { return u.Compute == compute && only.MatchString(u.Name) }
		archs := slices.Clone(g.archs)
		if compute != 0 {
			archs = slices.DeleteFunc(archs, func(a string) bool { return a != fmt.Sprintf("sm_%da", compute) })
		}
		if slices.ContainsFunc(m.Units, wanted) && len(archs) > 0 {
			g.holdUnits(t, nvcc, m, wanted, archs)
		} else if compute == 0 {
			t.Fatalf("no unit's name has %s in it", g.only)
		}
	}
}

// holdUnits holds some units, compiled for some GPUs, to their promises.
func (g *gated) holdUnits(t *testing.T, nvcc string, m *codegen.CUDAModel, wanted func(codegen.CUDAUnit) bool, archs []string) {
	log, code := g.compile(t, nvcc, m, wanted, archs)
	for _, s := range spills(log, code) {
		t.Error(s)
	}
	for line := range strings.Lines(log) {
		if strings.Contains(line, "Performance Loss") { // of wgmma that are serialized
			t.Error(line)
		}
	}
	if code == nil {
		t.Log("the promises are not checked: no cuobjdump beside nvcc")
		return
	}
	for _, a := range archs {
		for _, u := range m.Units {
			if !wanted(u) {
				continue
			}
			for kernel, promises := range u.Promises {
				for _, broken := range broken(code[a][kernel], promises, m.Plan.Kernels, kernel, a) {
					t.Errorf("%s for %s: %s", kernel, a, broken)
				}
			}
		}
	}
}

// compile compiles the wanted units as one file for some GPUs. It returns what nvcc prints, and the
// kernels by architecture and name, or nil without cuobjdump.
func (g *gated) compile(t *testing.T, nvcc string, m *codegen.CUDAModel, wanted func(codegen.CUDAUnit) bool, archs []string) (log string, code map[string]map[string]*sass.Kernel) {
	t.Helper()
	dir, files, size, n := t.TempDir(), templates.CUDAHeaders(), 0, 0
	for _, u := range m.Units {
		if wanted(u) {
			files["units.cu"] += fmt.Sprintf("#include %q\n", u.Name+".cu")
			files[u.Name+".cu"] = u.Source
			size += len(u.Source)
			n++
		}
	}
	if n == 0 {
		t.Fatalf("%s has none of the wanted units", g.model)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"-fatbin", "-Werror", "all-warnings", "-Xptxas", "-v", "-I.", "units.cu", "-o", "units.fatbin"}, cudaFlags...)
	args = append(args, toolchain.Gencode(archs)...)
	log, used := runIn(t, dir, nvcc, args...)
	t.Logf("%s %s: %d units, %d bytes of source, %d GPUs, %.1f s of nvcc's processor time", g.model, g.quant, n, size, len(archs), used)
	dump := filepath.Join(filepath.Dir(nvcc), "cuobjdump")
	if _, err := os.Stat(dump); err != nil {
		return log, nil
	}
	text, _ := runIn(t, dir, dump, "-res-usage", "-sass", "units.fatbin")
	return log, sass.Parse(text)
}

// runIn runs a program in a folder and gives what it says and the processor's
// seconds that it and its children took.
func runIn(t *testing.T, dir, program string, args ...string) (string, float64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(program), err, text)
	}
	return string(text), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}
