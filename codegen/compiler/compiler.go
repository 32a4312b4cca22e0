// Package compiler turns a model spec into a program that runs the model.
// Programs can import it to do what the iflowc command does:
//
//	result, err := compiler.Compile(ctx, "model.yaml", compiler.Options{Quant: "q4_b64", Out: "model"})
//
// Compile does everything. Its steps are exported too: Open reads a spec and
// the headers of its files, Model.Module returns the IR after the passes,
// Generate generates the C and CUDA C of the step, and Program.Build makes the
// files to ship. Packages ir, passes and ir/interp contain the IR, the passes
// and the reference interpreter. See docs/architecture.md.
package compiler

import (
	"context"
	"fmt"
	"time"
)

// Options control a compilation. The zero value compiles for this machine's
// CPU, with the weight types of the spec or the files, to a binary named after
// the model in the working directory.
type Options struct {
	ModelDir       string  // folder of the model's files; "": model_dir of the spec, or the spec's folder
	Quant          string  // weight type, such as q4_b64, or a budget, such as 4.5, 3GB, fit or loss=1%; "": the spec's
	KV             string  // type of the KV cache; "": f16, or f32 for f32 weights
	Activations    string  // type of matmul inputs: f32, bf16, int8, int8+N; "": the spec's
	Devices        string  // device string, such as 0;1 or 0&1, or auto[:machine]; "": the spec's
	Profile        string  // file with measured kernel times; "": a shipped profile of this machine, if any
	Importance     string  // file with an importance matrix
	Context        int     // maximum tokens of a sequence; 0: the model's
	DraftHead      string  // draft layer: mtp, or the folder of an EAGLE-3 head; "": the spec's
	MergeLoRA      string  // LoRA adapter to add to the weights before quantizing: a PEFT folder or a GGUF file; "": none
	SparseOutliers float64 // fraction of a matrix's weights kept as sparse outliers in f32, at most 0.05

	Target         string   // cpu (or ""), cuda, cuda-emu
	Arch           string   // GPU architectures, comma-separated; "": all
	UnifiedSoftmax string   // auto (or ""), on, off
	ISA            string   // CPU instruction sets, comma-separated; "": all of the architecture
	CC             string   // C compiler; "": the first of cc, gcc, clang
	Skip           []string // passes to skip
	Jobs           int      // concurrent C compilers; 0: one per CPU

	Calibrate    string // calibration before quantizing: CalibrateNone (or ""), CalibrateAuto, CalibrateAlways, or a text file
	Out          string // output file or folder; "": named after the model
	Emit         string // binary (or ""), lib, package, sources
	EmbedWeights bool   // put the weights into the binary
	NoWeights    bool   // pack no weights; the result accepts any weights file of its shapes
	KeepSources  string // folder for a copy of the generated sources

	Pulled   func(repository string) (dir string, ok bool) // finds a pulled hub repository, for specs that name one; may be nil
	Notice   func(line string)                             // reports automatic choices; may be nil
	Progress func(Progress)                                // reports slow work, one call at a time; may be nil

	inCache  bool    // the output is in the cache, as iflowc run makes it
	asStored bool    // the types of the files, on one device, whatever the spec says
	choice   *Choice // the types for the budget; nil: to be chosen, if there is a budget
}

// Progress reports how far a stage of a build is.
type Progress struct {
	Stage       string // "compiling", "packing weights", "linking the binary", "calibrating"
	Done, Total int64  // 0 of 0: unknown
	Unit        string // the translation unit just compiled, or "bytes"
}

// An InputError is the fault of a spec, a file or an option.
type InputError struct{ Err error }

func (e InputError) Error() string { return e.Err.Error() }
func (e InputError) Unwrap() error { return e.Err }

// Compile compiles a spec to the kind of output that opt.Emit names. spec is
// the path of a YAML file, a model folder, a GGUF or llama2.c file, or a name
// of the model library. If the call or a file is at fault, the error is an
// InputError. After an error, or if ctx ends, there is no partial output.
func Compile(ctx context.Context, spec string, opt Options) (*Result, error) {
	start := time.Now()
	p, err := calibratedProgram(ctx, spec, opt)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	r, err := p.Build(ctx)
	if err != nil {
		return nil, err
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// notice reports an automatic choice to the user.
func (o *Options) notice(format string, args ...any) {
	if o.Notice != nil {
		o.Notice(fmt.Sprintf(format, args...))
	}
}

func (o *Options) progress(p Progress) {
	if o.Progress != nil {
		o.Progress(p)
	}
}
