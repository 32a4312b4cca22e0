package passes

import (
	"fmt"
	"path"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/templates"
)

// TypeRules select element types. The zero value keeps every weight in its
// stored type, or in the nearest one that kernels read.
type TypeRules struct {
	Default        tensor.DType // of matrices; Invalid: as stored
	Weights        []TypeRule   // exceptions; the last match wins
	Threshold      int          // matrices with fewer elements stay float (Inferflow's tensor_quant_threshold)
	SparseOutliers float64      // fraction of the weights of coarse matrices kept as sparse outliers (Inferflow's delta_tensor_ratio)
	KV             tensor.DType // of states; Invalid: as lowered

	// Activations is the type of rounded matmul inputs, if kernels for it
	// exist; Invalid: the type that kernels for the weights use.
	Activations tensor.DType

	// Outliers is the number of groups of outlier columns that are rounded
	// separately in each row that comes from a norm and is rounded to int8
	// blocks (see quantize_act); 0: by the weights' type, negative: none.
	Outliers int
}

// usualOutliers returns the number of outlier groups for weights of type t. A
// norm's output has a few columns that are many times larger than the others.
// Two groups reduce the cost in SmolLM2's perplexity by 0.2 %, the next two by
// 0.05 %, which is above the weights' own error only with 8 bits. Trellis-coded
// weights of four bits or fewer add a hundred times as much
// (docs/benchmarks/quantization.md, activations).
func usualOutliers(t tensor.DType) int {
	switch {
	case t.Bits() >= 8:
		return 4
	case tensor.TrellisOf(t) != nil && t.Bits() < 5:
		return 0
	}
	return 2
}

// SetActivations parses --activations: "" (the default of the weights'
// kernels), "f32" (not rounded), "bf16", "int8" (plain blocks) or "int8+N" (N
// outlier groups per row).
func (r *TypeRules) SetActivations(s string) error {
	switch kind, n, more := strings.Cut(s, "+"); {
	case s == "":
	case s == "f32":
		r.Activations = tensor.F32
	case s == "bf16":
		r.Activations = tensor.BF16
	case s == "int8":
		r.Outliers = -1
	case kind == "int8" && more && len(n) == 1 && '1' <= n[0] && n[0] <= '0'+ops.MaxOutliers:
		r.Outliers = int(n[0] - '0')
	default:
		return fmt.Errorf("activations %q: expected f32, bf16, int8 (plain blocks) or int8+N with N outlier groups per row, 1 to %d", s, ops.MaxOutliers)
	}
	return nil
}

// SetSparseOutliers sets the fraction of weights kept as sparse outliers.
func (r *TypeRules) SetSparseOutliers(ratio float64) error {
	if !(ratio >= 0 && ratio <= tensor.MaxSparseRatio) {
		return fmt.Errorf("delta_tensor_ratio: have %v, want a fraction of the weights from 0 to %v", ratio, tensor.MaxSparseRatio)
	}
	r.SparseOutliers = ratio
	return nil
}

// A TypeRule sets the type of the weights whose name matches a pattern
// (path.Match).
type TypeRule struct {
	Pattern string
	Type    tensor.DType
}

// Quantize sets the types of matrices, as transforms, and rounds activations
// where kernels need it.
var Quantize = &Pass{
	Name:      "quantize",
	Brief:     "chooses weight types, rounds inputs",
	Doc:       "Sets the element type of each matrix, as a transform that packing applies. Inserts quantize_act before matmuls whose kernels compute on int8 activations, or on bf16 ones if requested. The largest columns of a norm's output are rounded separately (outliers). Without a rule, a weight keeps its stored type if a kernel reads it, the output head gets about one bit more than the other matrices, and what chooses experts or weighs heads, streams and whole experts has at least 8 bits.",
	Tolerance: 0.2,
	Run:       quantize,
}

func quantize(env *Env, m *ir.Module) error {
	for _, s := range m.States {
		if env.Types.KV == tensor.Invalid {
			break
		}
		for i := range s.State.Fields {
			if s.State.Fixed {
				break
			}
			s.State.Fields[i].Elem = env.Types.KV
			if s.State.Fields[i].Name == "k" {
				s.State.Fields[i].Elem = env.Types.KV.OfKeys()
			}
			if env.Types.KV.IsBlock() && len(s.State.Fields) == 1 { // an indexer's keys
				s.State.Fields[i].Elem = tensor.F16
			}
		}
	}
	done := map[*ir.Value]tensor.DType{} // the stored types
	var all []*ir.Value
	heads, gates, drafts, onlyMatmuls := headWeights(m), gateWeights(m), draftWeights(m), matmulWeights(m)
	for _, g := range m.Graphs {
		for op := range g.All() {
			for _, w := range matrices(op) {
				if _, ok := done[w]; ok {
					continue
				}
				stored := w.Type.Elem
				done[w], all = stored, append(all, w)
				if err := quantizeWeight(env, w, heads[w], gates[w], drafts[w]); err != nil {
					return err
				}
				if onlyMatmuls[w] {
					keepSparse(env, w, stored)
				}
			}
			if op.Def.Name == "experts" {
				sameType(env, matrices(op))
			}
		}
	}
	for _, w := range all {
		if env.Typed != nil {
			env.Typed(w, done[w])
		}
	}
	names := ir.NewNames(m)
	for _, g := range m.Graphs {
		for _, b := range g.Blocks() {
			if err := quantizeActivations(env, b, names); err != nil {
				return err
			}
		}
	}
	return nil
}

// matrices lists the weights of an op that are used in matmuls or lookups.
func matrices(op *ir.Op) []*ir.Value {
	switch op.Def.Name {
	case "matmul", "embed":
		return []*ir.Value{op.Args[1].Value}
	case "experts":
		var out []*ir.Value
		for _, a := range op.Args[2:] {
			if len(a.Type.Shape) == 2 {
				out = append(out, a.Value)
			}
		}
		return out
	}
	return nil
}

// sameType gives the matrices of a mixture of experts one type, because their
// inputs are rounded alike: f16 if one of them cannot have the type of the
// others.
func sameType(env *Env, ws []*ir.Value) {
	for _, w := range ws {
		if w.Type.Elem == ws[0].Type.Elem {
			continue
		}
		env.notice("%s and the other matrices of its experts get f16, because they need one type", w)
		for _, w := range ws {
			setType(w, tensor.F16)
		}
		return
	}
}

// setType makes the weight's transform end in the given type.
func setType(w *ir.Value, t tensor.DType) {
	if w.Type.Elem == t {
		return
	}
	if w.Transform.Op == "quantize" {
		w.Transform = w.Transform.Args[0]
	}
	w.Transform = &tensor.Transform{Op: "quantize", Args: []*tensor.Transform{w.Transform}, Type: t}
	w.Type.Elem = t
}

// headWeights returns the matrices of the output head, which is often also the embedding.
// Their rounding affects every logit directly (decision 028).
func headWeights(m *ir.Module) map[*ir.Value]bool {
	heads := map[*ir.Value]bool{}
	for _, g := range m.Graphs {
		if g.Name == ir.DraftGraph {
			continue // its proposals are verified
		}
		for op, head := range headMatmuls(g) {
			if head {
				heads[op.Args[1].Value] = true
			}
		}
	}
	return heads
}

// draftWeights returns the matrices that only the graph that proposes tokens
// uses. They get 8 bits, half the bytes of f16, because proposals are verified.
func draftWeights(m *ir.Module) map[*ir.Value]bool {
	drafts := map[*ir.Value]bool{}
	for _, g := range m.Graphs {
		for op := range g.All() {
			for _, w := range matrices(op) {
				if before, seen := drafts[w]; !seen || before {
					drafts[w] = g.Name == ir.DraftGraph
				}
			}
		}
	}
	return drafts
}

// matmulWeights returns the matrices that are used only in matmuls of whole
// rows: those to which kernels can add sparse outliers.
func matmulWeights(m *ir.Module) map[*ir.Value]bool {
	ok := map[*ir.Value]bool{}
	for _, g := range m.Graphs {
		for op := range g.All() {
			for _, w := range matrices(op) {
				matmul := op.Def.Name == "matmul" && op.Int("slices") == 1
				if before, seen := ok[w]; seen {
					matmul = matmul && before
				}
				ok[w] = matmul
			}
		}
	}
	return ok
}

// keepSparse keeps a fraction of a coarse matrix's weights as sparse outliers,
// unless its type represents the stored values exactly.
func keepSparse(env *Env, w *ir.Value, stored tensor.DType) {
	t := w.Type.Elem
	n, k := w.Type.Shape[0].N, w.Type.Cols()
	if !coarse(t) || w.Transform.Op != "quantize" || tensor.Lossless(t, stored) || k > tensor.MaxSparseCols || tensor.SparseCount(n, k, env.Types.SparseOutliers) == 0 {
		return
	}
	w.Transform = &tensor.Transform{Op: "quantize_sparse", Args: w.Transform.Args, Nums: []float64{env.Types.SparseOutliers}, Type: t}
}

// coarse reports whether a type has fewer than 8 bits per weight.
func coarse(t tensor.DType) bool { return t.IsBlock() && t.RowBytes(t.Block()) < t.Block() }

// quantizeWeight sets the type of one matrix. A head gets about one bit more than the
// default type, a gate at least 8 bits, and a matrix that only drafts 8 bits, except in f32. A
// rule that names the matrix overrides all of these.
func quantizeWeight(env *Env, w *ir.Value, head, gate, draft bool) error {
	stored := w.Type.Elem
	t := tensor.ComputeType(stored)
	n, k := w.Type.Shape[0].N, w.Type.Cols()
	named := false
	if env.Types.Default != tensor.Invalid && (n*k >= env.Types.Threshold || env.Types.Default.IsFloat()) {
		t, named = env.Types.Default, true
		switch {
		case (draft && t != tensor.F32 || gate && t.IsBlock() && t.Bits() < 8) && k%tensor.Q8B32T2.Block() == 0:
			t = tensor.Q8B32T2
		case head:
			t = t.OfHead()
		}
	} else if env.Types.Default != tensor.Invalid && !stored.IsFloat() {
		t = tensor.F16
	}
	for _, r := range env.Types.Weights {
		ok, err := path.Match(r.Pattern, w.Name)
		if err != nil {
			return fmt.Errorf("pattern %q of a weight type: %w", r.Pattern, err)
		}
		if ok {
			t, named = r.Type, true
		}
	}
	if k%t.Block() != 0 {
		if named {
			env.notice("%s keeps f16: its %d columns are not a multiple of the block of %s", w, k, t)
		}
		t = tensor.F16
	}
	setType(w, t)
	return nil
}

// quantizeActivations rounds the inputs of matmuls whose kernels need it, once
// for each input and type.
func quantizeActivations(env *Env, b *ir.Block, names *ir.Names) error {
	type key struct {
		x        *ir.Value
		t        tensor.DType
		outliers int
	}
	made := map[key]*ir.Value{}
	for i := 0; i < len(b.Ops); i++ {
		op := b.Ops[i]
		if !op.Def.Is(ir.Root) || len(matrices(op)) == 0 || op.Args[0].Type.Elem != tensor.F32 {
			continue
		}
		w := matrices(op)[0]
		t, err := activation(env, op, w.Type.Elem)
		if err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
		if t == tensor.F32 {
			continue
		}
		k := key{op.Args[0].Value, t, outliers(env, op, t, w.Type.Elem)}
		if made[k] == nil {
			var as ir.Attrs
			as.Set("type", t)
			if k.outliers > 0 {
				as.Set("outliers", k.outliers)
			}
			q, err := ir.NewOp(env.Ops.Lookup("quantize_act"), []ir.Arg{op.Args[0]}, as, names.Fresh(op.Args[0].Name+"_q"))
			if err != nil {
				return err
			}
			q.Pos = op.Pos
			b.Insert(i, q)
			i++
			made[k] = q.Result()
		}
		op.Args[0] = ir.A(made[k])
		if op.Def.Name == "experts" {
			op.SetAttr("act_type", t)
		}
	}
	return nil
}

// outliers returns the number of outlier groups for the input of an op that is
// rounded to type t, with weights of type w; none if the matmul uses parts of
// rows.
func outliers(env *Env, op *ir.Op, t, w tensor.DType) int {
	x, n := op.Args[0].Value, env.Types.Outliers
	if n == 0 {
		n = usualOutliers(w)
	}
	if n < 0 || op.Def.Attr("slices") != nil && op.Int("slices") > 1 || !t.IsActivation() || x.Op == nil || x.Type.Cols() > ops.MaxOutlierCols {
		return 0
	}
	switch x.Op.Def.Name {
	case "rmsnorm", "layernorm", "l2norm":
		return n
	}
	return 0
}

// activation returns the activation type of kernels for weights of type w, or
// the requested one if kernels for both exist.
func activation(env *Env, op *ir.Op, w tensor.DType) (tensor.DType, error) {
	if a := env.Types.Activations; a != tensor.Invalid && (op.Def.Name == "matmul" || a == tensor.F32) && len(env.Kernels.CandidatesFor("matmul", w, a.String())) > 0 {
		return a, nil
	}
	ks := env.Kernels.Candidates("matmul", w)
	if len(ks) == 0 {
		return tensor.Invalid, fmt.Errorf("no kernel multiplies by weights of type %s", w)
	}
	act := templates.Act(w)
	t, ok := tensor.ParseDType(act)
	if !ok {
		return tensor.Invalid, fmt.Errorf("bug: kernels for %s have the unknown activation type %q", w, act)
	}
	return t, nil
}
