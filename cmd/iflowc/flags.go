package main

import (
	"fmt"
	"os"

	"github.com/iflowc/iflowc/codegen/compiler"
)

// A usageError is a wrong call or a wrong file, as a compiler.InputError is: exit
// code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// modelFlags say which model, in which types.
type modelFlags struct {
	Spec        string `arg:"" help:"Specification, model_spec.json, model folder, .gguf or llama2.c file, or a name of the model library."`
	ModelDir    string `help:"Folder of the model's files." type:"path" placeholder:"DIR"`
	Quant       string `help:"Weight size (${sizes}) or type (${types}); default: as stored." placeholder:"q4|TYPE"`
	KV          string `name:"kv" help:"KV cache type: f32, f16, bf16 or q8_b32t2 (default f16; f32 for f32 weights)." placeholder:"TYPE"`
	Activations string `help:"How inputs of matmuls are rounded: f32 (not at all; with quantized weights slower), bf16 (with bf16 weights, which doubles the speed of prefill on processors with AVX512-BF16), int8 (plain blocks, with quantized weights) or int8+N (the N largest groups of columns of each row apart, which loses less; the default, N by the weights)." placeholder:"TYPE"`
	Devices     string `help:"Device string, such as 0;1 or 0&1; auto chooses by memory and speed, auto:8xh100 for another machine." placeholder:"STR"`
	Profile     string `help:"Measured profile of the device." type:"path" placeholder:"FILE"`
	Importance  string `help:"Importance matrix, as a model's subcommand calibrate or llama.cpp writes it: quantizing spares the columns that matter." type:"path" placeholder:"FILE"`
	Order       string `help:"Order of summation: class (same tokens whatever the batch) or any." enum:"class,any" default:"class"`
	Context     int    `help:"Maximum positions of a sequence (default: the model's, at most 4096)." placeholder:"N"`

	SparseOutliers float64 `help:"Fraction of the entries of matrices of fewer than 8 bits that are kept as sparse float32 outliers, at most 0.05 (default 0)." placeholder:"FRACTION"`
}

// options are the compiler's for these flags.
func (f *modelFlags) options() compiler.Options {
	return compiler.Options{
		ModelDir: f.ModelDir, Quant: f.Quant, KV: f.KV, Activations: f.Activations, Devices: f.Devices, Profile: f.Profile,
		Importance: f.Importance, Context: f.Context, SparseOutliers: f.SparseOutliers, Pulled: pulled,
		Notice: func(line string) { notice("%s", line) },
	}
}

// open opens the model; the caller closes it.
func (f *modelFlags) open() (*compiler.Model, error) { return compiler.Open(f.Spec, f.options()) }

// notice tells the user of a choice made for them.
func notice(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "note: "+format+"\n", args...)
}

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

// options are the compiler's for these flags.
func (f *compileFlags) options() compiler.Options {
	o := f.modelFlags.options()
	o.Target, o.Arch, o.UnifiedSoftmax, o.ISA, o.CC = f.Target, f.Arch, f.UnifiedSoftmax, f.ISA, f.CC
	o.Skip, o.KeepSources, o.EmbedWeights, o.Jobs = f.Skip, f.KeepSources, f.EmbedWeights, f.Jobs
	return o
}
