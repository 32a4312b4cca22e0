package compiler

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/spec"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// mergeAdapter adds the adapter of an option to the stored matrices, whose rows are
// computed when they are packed. Until the model is closed, the adapter's matrices are in
// memory as f32. The types of the weights are those without it.
func (m *Model) mergeAdapter() error {
	if m.opt.MergeLoRA == "" {
		return nil
	}
	a, err := lora.Open(m.opt.MergeLoRA)
	if err != nil {
		return err
	}
	defer a.Close()
	targets, err := m.mergeTargets()
	if err != nil {
		return err
	}
	names := make([]string, 0, len(targets))
	for name := range targets {
		names = append(names, name)
	}
	slices.Sort(names)
	index, merged := lora.NewNames(names), map[string]string{}
	for i, x := range a.Matrices() {
		name, err := index.Find(x.Name)
		if err != nil && a.Unchanged(i) {
			continue
		}
		if head := x.Name[strings.LastIndexByte(x.Name, '.')+1:]; err != nil && (head == "lm_head" || head == "output") {
			return fmt.Errorf("%s: the adapter changes %q, but this model's output head is also the token embedding, which would change too; load the adapter at run time with --lora", m.opt.MergeLoRA, x.Name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.opt.MergeLoRA, err)
		}
		to := targets[name]
		if other, twice := merged[to.file]; twice {
			return fmt.Errorf("%s: %q and %q change the same matrix; the adapter may contain one of them", m.opt.MergeLoRA, other, x.Name)
		}
		merged[to.file] = x.Name
		if err := m.mergeMatrix(a, i, &x, to); err != nil {
			return err
		}
	}
	m.merged, err = digests(filepath.Dir(m.opt.MergeLoRA), a.Files())
	return err
}

// refineMerged gives a quantized model that an adapter is merged into a type of 8 bits,
// unless the spec or an option has one. Rounded to the type that they had, numbers to
// which little is added are again what they were: an adapter for SmolLM2 in Q4_1 had no
// effect in the same type, and its effect with q4, whose numbers are others, to q8.
func (m *Model) refineMerged(s *spec.Spec) (refined bool) {
	if m.opt.MergeLoRA == "" || s.Quant != tensor.Invalid || !s.Budget.IsZero() {
		return false
	}
	refined = slices.ContainsFunc(m.set.Tensors(), func(t checkpoint.Info) bool { return t.DType.IsBlock() })
	if refined {
		s.Quant = tensor.Q8B32T2
	}
	return refined
}

// A mergeTarget is a stored matrix under one of its names.
type mergeTarget struct {
	file       string
	alias      spec.Alias // the order of the rows under the name
	transposed bool       // stored as inputs by outputs
}

// mergeTargets returns the stored matrices that are no embeddings, by their names.
func (m *Model) mergeTargets() (map[string]mergeTarget, error) {
	mod, err := m.Lower()
	if err != nil {
		return nil, err
	}
	lookups := embeddings(mod)
	out := map[string]mergeTarget{}
	aliases := m.AdapterNames()
	for _, std := range m.Model.Tensors() {
		t, _ := m.Tensor(std)
		if len(t.Shape) != 2 || lookups[t.File] {
			continue
		}
		to := mergeTarget{file: t.File, transposed: m.StoresTransposed(std)}
		out[strings.TrimSuffix(t.File, ".weight")] = to
		for _, a := range aliases[t.File] {
			to.alias = a
			out[a.Name] = to
		}
	}
	return out, nil
}

// mergeMatrix adds a matrix of an adapter to a stored one.
func (m *Model) mergeMatrix(a *lora.Adapter, i int, x *lora.Matrix, to mergeTarget) error {
	info, _ := m.set.Lookup(to.file)
	out, in := info.Shape[0], info.Shape[1]
	if to.transposed {
		out, in = in, out
	}
	if err := x.Fits(out, in); err != nil {
		return fmt.Errorf("%s: %w", m.opt.MergeLoRA, err)
	}
	matrixA, matrixB, err := a.Read(i)
	if err != nil {
		return err
	}
	scaled := make([]float32, len(matrixB)) // [outputs, rank], in the order of the stored rows
	for r := range x.Out {
		for k, b := range matrixB[to.alias.Row(r, x.Out)*x.Rank:][:x.Rank] {
			scaled[r*x.Rank+k] = float32(x.Scale * float64(b))
		}
	}
	term := func(r int, row []float32) { // of outputs
		for k, b := range scaled[r*x.Rank:][:x.Rank] {
			for c, v := range matrixA[k*x.In:][:x.In] {
				row[c] += float32(b * v)
			}
		}
	}
	if to.transposed {
		term = func(r int, row []float32) { // of inputs
			for c := range row {
				for k, b := range scaled[c*x.Rank:][:x.Rank] {
					row[c] += float32(b * matrixA[k*x.In+r])
				}
			}
		}
	}
	return m.set.AddTo(to.file, term, a.Files()...)
}

// digests returns the SHA-256 of files by their paths below a folder.
func digests(dir string, paths []string) (map[string]string, error) {
	out := map[string]string{}
	for _, path := range paths {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return nil, err
		}
		if out[filepath.ToSlash(name)], err = pack.FileDigest(path); err != nil {
			return nil, err
		}
	}
	return out, nil
}
