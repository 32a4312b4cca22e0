package compiler

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/runtime/kit/hostmem"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// Values of Options.Calibrate that are not the path of a text.
const (
	CalibrateNone   = "none"
	CalibrateAuto   = "auto"
	CalibrateAlways = "always"
)

// calibrationText is the text for auto and always; its README lists the sources.
//
//go:embed calibration/text.txt
var calibrationText []byte

// Windows and tokens of a window that calibration processes of a text: as many tokens as
// in the measurements of docs/benchmarks/quantization.md.
const (
	calibrationWindows = 40
	calibrationWindow  = 512
)

// calibratedProgram opens a model and generates its program, with the model calibrated
// if the options say so. The caller closes the program's model.
func calibratedProgram(ctx context.Context, spec string, opt Options) (*Program, error) {
	opt.Notice = once(opt.Notice)
	p, err := openProgram(ctx, spec, opt)
	if err != nil {
		return nil, err
	}
	path, err := p.calibrate(ctx, spec)
	if err == nil && path == "" {
		return p, nil
	}
	p.Close()
	if err != nil {
		return nil, err
	}
	opt.Importance, opt.choice = path, p.Choice // with the types that explain shows
	return openProgram(ctx, spec, opt)
}

func openProgram(ctx context.Context, spec string, opt Options) (*Program, error) {
	m, err := Open(ctx, spec, opt)
	if err != nil {
		return nil, err
	}
	p, err := m.Generate(ctx)
	if err != nil {
		m.Close()
		return nil, err
	}
	return p, nil
}

// once returns a function that passes each line to notice once.
func once(notice func(string)) func(string) {
	said := map[string]bool{}
	return func(line string) {
		if notice != nil && !said[line] {
			said[line] = true
			notice(line)
		}
	}
}

// calibrate returns the path of the calibration file that the options demand, which
// stays in the cache; "" for none. It builds the model in its stored types and runs that
// binary's calibrate.
func (p *Program) calibrate(ctx context.Context, spec string) (string, error) {
	mode := cmp.Or(p.opt.Calibrate, CalibrateNone)
	auto := mode == CalibrateAuto
	if mode == CalibrateNone || auto && (p.calibration != nil || p.opt.Emit == "sources" || p.opt.NoWeights) {
		return "", nil
	}
	if p.opt.Importance != "" {
		return "", InputError{fmt.Errorf("--calibrate and --importance exclude each other")}
	}
	text := calibrationText
	if !auto && mode != CalibrateAlways {
		var err error
		if text, err = os.ReadFile(mode); err != nil {
			return "", InputError{fmt.Errorf("--calibrate: %w; expected none, auto, always or a text file", err)}
		}
	}
	coarse := p.coarseWeights()
	if auto && coarse == 0 {
		return "", nil
	}
	if reason := p.cannotCalibrate(); reason != "" {
		if !auto {
			return "", InputError{errors.New("--calibrate: " + reason)}
		}
		p.opt.notice("not calibrated: %s", reason)
		return "", nil
	}
	if err := p.opt.checkOutputs(cmp.Or(p.opt.Out, defaultOut(p.Spec.Name, p.opt.Emit))); err != nil {
		return "", err // before calibration, which takes minutes
	}
	stored, err := p.storedProgram(ctx, spec)
	if err != nil {
		return "", err
	}
	defer stored.Close()
	if auto && !stored.cheap(coarse) {
		return "", nil
	}
	path, err := stored.statistics(ctx, text)
	if err == nil && auto {
		p.opt.notice("calibrated on iflowc's text; --calibrate none omits this")
	}
	return path, err
}

// coarseWeights returns the number of weights that are rounded to fewer than 8 bits in
// matrices for which calibration collects statistics.
func (p *Program) coarseWeights() (n int64) {
	for _, part := range p.parts() {
		for i := range part.CPU.Pack {
			it := &part.CPU.Pack[i]
			if it.Layout == packed.LayoutPanel16 && it.DType.IsBlock() && it.DType.Bits() < 8 && p.rounds(it) {
				n += int64(it.Rows) * int64(it.Cols)
			}
		}
	}
	return n
}

// rounds reports whether a weight has another type than its file's, which does not hold
// the stored values exactly.
func (p *Program) rounds(it *pack.Item) bool {
	for _, name := range it.Sources() {
		if t, ok := p.set.Lookup(name); ok && it.DType != tensor.ComputeType(t.DType) && !tensor.Lossless(it.DType, t.DType) {
			return true
		}
	}
	return false
}

// cannotCalibrate returns why the model cannot be calibrated here, or "".
func (p *Program) cannotCalibrate() string {
	network, _, _ := strings.Cut(p.Net.Topology(), ".")
	switch arch := os.Getenv("GOARCH"); {
	case network != "decoder_only":
		return "only decoders can be, " + p.Spec.Name + " is " + network
	case !slices.ContainsFunc(p.whole.CPU.Manifest.Graphs, predicts):
		return p.Spec.Name + " has no output head"
	case p.tok == nil:
		return p.Spec.Name + " has no tokenizer to read a text with"
	case arch != "" && arch != runtime.GOARCH:
		return "a binary for " + arch + " does not run here; calibrate there, and pass --importance FILE"
	}
	return ""
}

// predicts reports whether a graph has logits.
func predicts(g manifest.Graph) bool {
	return slices.ContainsFunc(g.Outputs, func(o manifest.Output) bool { return o.Name == "logits" })
}

// storedProgram returns the program of the model in its stored types for this CPU.
func (p *Program) storedProgram(ctx context.Context, spec string) (*Program, error) {
	isa, err := ISAHere("")
	if err != nil {
		return nil, err
	}
	return openProgram(ctx, spec, Options{ModelDir: p.opt.ModelDir, Context: p.opt.Context, ISA: isa.Name, CC: p.opt.CC, Jobs: p.opt.Jobs, Pulled: p.opt.Pulled,
		Profile: p.opt.Profile, Notice: p.opt.Notice, Progress: p.opt.Progress, asStored: true})
}

// Costs of calibration in nanoseconds of one core: of a weight for each token, with
// statistics, and of rounding a weight to q4 with GPTQ error compensation. They are CPU
// times of SmolLM2-135M on a busy Zen 4 with AVX-512: 13.4 s for 4,096 tokens, and 88 s.
const (
	tokenCost = 0.024
	roundCost = 830
)

// cheapTime is the estimate up to which compile calibrates by default.
const cheapTime = 3 * time.Minute

// cheap reports whether calibrating the stored model and rounding the given number of
// weights is quick, and fits into memory. If not, it says how to do it.
func (p *Program) cheap(coarse int64) bool {
	var products int64
	for _, w := range p.whole.CPU.Manifest.Weights {
		if w.Layout == packed.LayoutPanel16 {
			products += int64(w.Rows) * int64(w.Cols)
		}
	}
	work := tokenCost*calibrationWindows*calibrationWindow*float64(products) + roundCost*float64(coarse)
	took := time.Duration(work / float64(runtime.NumCPU()))
	bytes, memory := p.need(p.whole, min(calibrationWindow, p.Context)).Bytes+4*p.whole.CPU.Hessians, hostmem.Available()
	switch {
	case took > cheapTime:
		p.opt.notice("not calibrated, which would take about %d minutes here; --calibrate always does it, or --importance FILE", int(took.Minutes()+1))
	case memory > 0 && bytes > memory/5*4: // the engine plans with four fifths too
		p.opt.notice("not calibrated, which would need %d GB of memory; --calibrate always does it, or --importance FILE", bytes>>30+1)
	default:
		return true
	}
	return false
}

// statistics builds the program and runs its calibrate on a text, unless the cache has
// the result. It returns the calibration file's path.
func (p *Program) statistics(ctx context.Context, text []byte) (string, error) {
	cache, err := toolchain.OpenCache("")
	if err != nil {
		return "", err
	}
	defer cache.Close()
	print, err := checkpoint.Fingerprint(p.set.Files())
	if err != nil {
		return "", err
	}
	key := toolchain.Key("calibration 1", p.whole.CPU.Step, print, string(text), fmt.Sprint(calibrationWindows, calibrationWindow))
	return cache.Make("calibration", key, ".importance", func(dir, out string) error {
		file := filepath.Join(dir, "text")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
		p.opt.Out = filepath.Join(dir, "model")
		if _, err := p.Build(ctx); err != nil {
			return err
		}
		p.opt.progress(Progress{Stage: "calibrating"})
		cmd := exec.CommandContext(ctx, p.opt.Out, "calibrate", file, "-o", out,
			"--chunks", strconv.Itoa(calibrationWindows), "--context", strconv.Itoa(min(calibrationWindow, p.Context)))
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("calibrating: %w; --calibrate none omits this", cmp.Or(ctx.Err(), err))
		}
		return nil
	})
}
