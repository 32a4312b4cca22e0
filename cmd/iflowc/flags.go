//go:build unix

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/runtime/kit/printable"
)

// A usageError is a wrong call or a wrong file, like compiler.InputError: exit
// code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// modelFlags select a model and its types.
type modelFlags struct {
	Spec        string `arg:"" help:"Model spec (YAML), model_spec.json, model folder, .gguf or llama2.c file, library name (iflowc list), or pulled OWNER/NAME."`
	ModelDir    string `help:"Folder with the model's files (default: model_dir of the spec, else the spec's folder)." type:"path" placeholder:"DIR"`
	Quant       string `help:"Weight size (${sizes}), type (${types}), or a budget: bits per weight (4.5), size of the weights (3GB), fit (this machine's memory), loss=1%; default: as stored." placeholder:"q4|TYPE|4.5|3GB|fit|loss=1%"`
	KV          string `name:"kv" help:"KV cache type: f32, f16, bf16, q8 or q4 (default: f16, or f32 for f32 weights)." placeholder:"TYPE"`
	Activations string `help:"Type of matmul inputs: f32, bf16 (for bf16 weights, on CPUs with AVX512-BF16), int8, or int8+N with N outlier groups per row (default for quantized weights: int8 or int8+N, by the weight type)." placeholder:"TYPE"`
	Devices     string `help:"Devices: 0&1 is tensor parallel, 0;1 pipeline parallel, auto chooses for this machine, auto:8xh100 for a known one, auto:2xhost,25Gbit,50us for several, auto:FILE.yaml for those of a file." placeholder:"STR"`
	Profile     string `help:"Measured device profile, from iflowc profile (default: a shipped one that matches this machine)." type:"path" placeholder:"FILE"`
	Importance  string `help:"Calibration file for quantization: of the binary's calibrate, or an importance matrix of llama.cpp." type:"path" placeholder:"FILE"`
	Order       string `help:"Order of summation: class (fixed, so results do not depend on the batch) or any (fastest; they may)." enum:"class,any" default:"class"`
	Context     int    `help:"Maximum tokens of a sequence (default: the model's own; of encoders, at most 8192)." placeholder:"N"`
	DraftHead   string `help:"Draft layer for speculative decoding: mtp, the checkpoint's layer for multi-token prediction, or the folder of an EAGLE-3 head (default: the spec's)." placeholder:"mtp|DIR"`
	MergeLoRA   string `name:"merge-lora" help:"LoRA adapter to add to the weights before they are quantized: a PEFT folder or a GGUF file." type:"path" placeholder:"PATH"`

	SparseOutliers float64 `help:"Fraction of the weights below 8 bits that are kept as sparse f32 outliers, at most 0.05 (default: 0)." placeholder:"FRACTION"`
}

// options returns the compiler's options for these flags.
func (f *modelFlags) options() compiler.Options {
	return compiler.Options{
		ModelDir: f.ModelDir, Quant: f.Quant, KV: f.KV, Activations: f.Activations, Devices: f.Devices, Profile: f.Profile,
		Importance: f.Importance, Context: f.Context, DraftHead: f.DraftHead, MergeLoRA: f.MergeLoRA, SparseOutliers: f.SparseOutliers, Pulled: pulled,
		Notice: func(line string) { notice("%s", line) },
	}
}

// open opens the model; the caller closes it.
func (f *modelFlags) open(ctx context.Context) (*compiler.Model, error) {
	return f.openFor(ctx, "")
}

// openFor opens the model for a target; "" is the CPU.
func (f *modelFlags) openFor(ctx context.Context, target string) (*compiler.Model, error) {
	o := f.options()
	o.Target = target
	bar := newProgress()
	defer bar.done()
	o.Progress = bar.build
	return compiler.Open(ctx, f.Spec, o)
}

// notice reports an automatic choice to the user.
func notice(format string, args ...any) {
	fmt.Fprintln(os.Stderr, "note:", printable.Text(fmt.Sprintf(format, args...)))
}

type compileFlags struct {
	modelFlags
	Calibrate      string   `help:"Calibrate before rounding to fewer than 8 bits, by an importance matrix and GPTQ error compensation: auto (on iflowc's text, if that takes less than 3 minutes), always, none, or a text file." placeholder:"auto|always|none|TEXT" default:"auto"`
	Target         string   `help:"Target: cpu, cuda (CPU and GPU code), or cuda-emu (emulated GPU, for tests)." enum:"cpu,cuda,cuda-emu" default:"cpu"`
	Arch           string   `help:"GPU architectures: sm_80, sm_86, sm_89, sm_90a, sm_100 (default: all)." placeholder:"LIST"`
	UnifiedSoftmax string   `help:"Unified-maximum softmax for decode steps on GPUs: auto (if calibration allows it), on or off." enum:"auto,on,off" default:"auto"`
	ISA            string   `name:"isa" help:"CPU instruction sets to build (default: all of the architecture)." placeholder:"LIST"`
	CC             string   `name:"cc" help:"C compiler (default: the first of cc, gcc, clang)." placeholder:"PATH"`
	Skip           []string `help:"Passes to skip, to measure what they gain." placeholder:"PASS,…"`
	KeepSources    string   `help:"Also write the generated sources to this folder." type:"path" placeholder:"DIR"`
	EmbedWeights   bool     `help:"Embed the weights in the binary."`
	Jobs           int      `short:"j" help:"C compilers to run at once (default: one per CPU)." placeholder:"N"`
}

// options returns the compiler's options for these flags.
func (f *compileFlags) options() compiler.Options {
	o := f.modelFlags.options()
	o.Calibrate, o.Target, o.Arch, o.UnifiedSoftmax, o.ISA, o.CC = f.Calibrate, f.Target, f.Arch, f.UnifiedSoftmax, f.ISA, f.CC
	o.Skip, o.KeepSources, o.EmbedWeights, o.Jobs = f.Skip, f.KeepSources, f.EmbedWeights, f.Jobs
	return o
}
