package compiler

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/models"
	"github.com/iflowc/iflowc/runtime/kit/regular"
	"github.com/iflowc/iflowc/spec"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// A Model is a spec with open files: everything known without reading weights.
type Model struct {
	*spec.Model
	Context   int     // maximum tokens of a sequence
	Placement string  // why it is on these devices, if the compiler chose them
	Choice    *Choice // the types that the compiler chose for a budget; nil: no budget

	opt         Options
	set         *checkpoint.Set
	calibration *pack.Calibration // nil: none
	merged      map[string]string // SHA-256 of the files of a merged adapter; nil: none
}

// Open reads a spec, opens the weight files and checks everything that can be
// checked without reading weights. The caller closes the model.
//
// A budget in place of a type (--quant 4.5) is the exception: types are chosen by
// measurements, which are then in the cache. Compiling and measuring end with ctx.
func Open(ctx context.Context, path string, opt Options) (*Model, error) {
	m, err := open(path, opt, opt.choice)
	if err != nil || m.Spec.Budget.IsZero() {
		return m, err
	}
	defer m.Close()
	c, err := choose(ctx, path, m)
	if err != nil {
		return nil, err
	}
	opt.notice("--quant %s: %.1f MB of weights, %.2f bits per weight, expected perplexity increase %.2g %%", c.Budget, float64(c.WeightBytes)/1e6, c.BitsPerWeight, 100*c.Loss)
	return open(path, opt, c)
}

// open opens a model with the types of a choice, if it is not nil.
func open(path string, opt Options, c *Choice) (*Model, error) {
	path, err := specPath(path)
	if err != nil {
		return nil, err
	}
	s, err := spec.Load(path, spec.Options{ModelDir: opt.ModelDir, Quant: opt.Quant, KV: opt.KV, Devices: opt.Devices, MaxContext: opt.Context, Draft: opt.DraftHead, Pulled: opt.Pulled})
	if err != nil {
		return nil, InputError{err}
	}
	if opt.asStored {
		s.Quant, s.Budget, s.Types, s.Devices, s.Importance, s.Activations, s.DeltaTensorRatio = tensor.Invalid, spec.Budget{}, nil, "", "", "", 0
	}
	if c != nil {
		s.Budget, s.Types = spec.Budget{}, append(c.specTypes(), s.Types...)
	}
	if s.Pulled {
		opt.notice("using %s, pulled to %s", s.Repository, s.ModelDir)
	}
	set, err := s.OpenWeights()
	if err != nil {
		return nil, InputError{err}
	}
	m := &Model{opt: opt, set: set, Choice: c}
	refined := m.refineMerged(s)
	if err := m.resolve(s); err != nil {
		m.Close()
		return nil, err
	}
	if refined {
		opt.notice("with an adapter, the model's quantized weights become q8, because rounding to their types again would lose it; --quant chooses another type")
	}
	return m, nil
}

// resolve finds every tensor of the spec, reads the calibration file, and
// chooses devices if necessary.
func (m *Model) resolve(s *spec.Spec) (err error) {
	if m.Model, err = spec.Resolve(s, spec.HeadersOf(m.set)); err != nil {
		return InputError{err}
	}
	if err := m.mergeAdapter(); err != nil {
		return InputError{err}
	}
	for _, line := range m.set.Notes() {
		m.opt.notice("%s", line)
	}
	if err := m.readCalibration(); err != nil {
		return InputError{err}
	}
	m.Context = contextOf(m.Model)
	if err := m.place(); err != nil {
		return err
	}
	return m.leadingOnCPU()
}

// Close closes the model's files.
func (m *Model) Close() error { return m.set.Close() }

// source returns the stored tensors and calibration for packing.
func (m *Model) source() pack.Source { return pack.Source{Set: m.set, Calibration: m.calibration} }

// Tensors returns the tensors of the model's files.
func (m *Model) Tensors() *checkpoint.Set { return m.set }

// readCalibration reads the calibration file of an option or the spec.
func (m *Model) readCalibration() error {
	path := m.opt.Importance
	if path == "" {
		if m.Spec.Importance == "" {
			return nil
		}
		path = filepath.Join(m.Spec.ModelDir, m.Spec.Importance)
	}
	c, err := pack.ReadCalibration(path)
	if err != nil {
		return err
	}
	known := 0
	for name := range c.Importance {
		if _, ok := m.set.Lookup(name); ok {
			known++
		}
	}
	n := len(c.Importance)
	if known == 0 {
		return fmt.Errorf("%s: none of its %d matrices belongs to this model; it was made for another one", path, n)
	}
	if known < n {
		m.opt.notice("%s: %d of its %d matrices do not belong to this model", path, n-known, n)
	}
	m.calibration = c
	return nil
}

// Contexts without an option. An encoder computes a whole text in one step, so that
// its memory grows with the text. A decoder's KV cache grows with what is in use.
const (
	unknownContext = 1024
	encoderContext = 8192 // at most
	growingContext = 8192 // at least, of positions that adapt to any length
)

// plannedContext is the tokens of a sequence for which a compile plans memory, unless its
// options say how many: most sequences are far shorter than what models support.
const plannedContext = 8192

// planned returns the tokens of a sequence for which a compile plans memory.
func (m *Model) planned() int {
	if m.Spec.MaxContextLen > 0 {
		return m.Context
	}
	return min(m.Context, plannedContext)
}

// contextOf returns the maximum tokens of a sequence.
func contextOf(m *spec.Model) int {
	n := m.Hyper.MaxContext
	decoder := strings.HasPrefix(m.Net.Topology(), "decoder_only")
	switch {
	case m.Spec.MaxContextLen > 0:
		return m.Spec.MaxContextLen
	case n == 0:
		return unknownContext
	case m.Hyper.Grows:
		return max(n, growingContext)
	case !decoder:
		return min(n, encoderContext)
	}
	return n
}

// specPath returns path if such a file exists, or the path of the library's
// model of that name; its embedded files are copied to the cache.
func specPath(path string) (string, error) {
	info, err := os.Stat(path)
	program := err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.Ext(path) == "" // a binary made by compile
	if err == nil && !program {
		return path, nil
	}
	name := strings.TrimSuffix(filepath.Base(path), ".yaml")
	src, err := models.Lookup(name)
	if err != nil || strings.ContainsAny(strings.TrimPrefix(filepath.ToSlash(path), "models/"), "/") {
		return path, nil // spec.Load returns an error
	}
	if _, err := fs.Stat(models.FS(), name); err != nil {
		return name, nil // a spec without files: they are pulled or in --model-dir
	}
	return extract(name, src)
}

// extract copies an embedded model to the cache, once.
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
	if regular.Has(out) {
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
	return out, toolchain.WriteFile(out, src, 0o644) // last, because it marks the copy as complete
}
