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

// TypeRules choose element types. The zero value keeps every weight in the
// type it is stored in, or the nearest one that kernels read.
type TypeRules struct {
	Default        tensor.DType // of matrices; Invalid: as stored
	Weights        []TypeRule   // exceptions; the last one that matches wins
	Threshold      int          // matrices of fewer elements stay float (Inferflow's tensor_quant_threshold)
	SparseOutliers float64      // fraction of the entries of coarse matrices kept as sparse outliers (Inferflow's delta_tensor_ratio)
	KV             tensor.DType // of states; Invalid: as lowered

	// Activations is the type to which inputs of matmuls are rounded where
	// kernels for it exist; Invalid: what the kernels of the weights' type want.
	Activations tensor.DType

	// Outliers is how many groups of outlier columns are taken out of each row that
	// comes from a norm and is rounded to int8 blocks (see quantize_act); 0: by
	// the weights' type, negative: none.
	Outliers int
}

// usualOutliers returns the number of outliers for weights of type t. What a norm
// yields has a few columns that are many times larger than the others; two of
// them cost 0.2 % of SmolLM2's perplexity, the next two 0.05 %, which can be
// told from the weights' own error only where they have eight bits
// (docs/quantization.md, activations).
func usualOutliers(t tensor.DType) int {
	if tensor.MaxCode(t) == 255 {
		return 4
	}
	return 2
}

// SetActivations reads what a user asks for: "" (what the kernels of the weights'
// types take), "f32" (not rounded), "bf16", "int8" (plain blocks) or "int8+N" (N
// outliers a row).
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
		return fmt.Errorf("activations %q: expected f32, bf16, int8 (plain blocks) or int8+N with N outliers a row, 1 … %d", s, ops.MaxOutliers)
	}
	return nil
}

// SetSparseOutliers sets the fraction of entries kept as sparse outliers.
func (r *TypeRules) SetSparseOutliers(ratio float64) error {
	if !(ratio >= 0 && ratio <= tensor.MaxSparseRatio) {
		return fmt.Errorf("delta_tensor_ratio: have %v, want a fraction from 0 to %v of the entries", ratio, tensor.MaxSparseRatio)
	}
	r.SparseOutliers = ratio
	return nil
}

// A TypeRule gives the weights whose name matches a pattern (as path.Match) a type.
type TypeRule struct {
	Pattern string
	Type    tensor.DType
}

// Quantize gives matrices their compute types, as transforms, and rounds
// activations where the kernels of a type want them rounded.
var Quantize = &Pass{
	Name:      "quantize",
	Brief:     "chooses weight types, rounds inputs",
	Doc:       "Gives each matrix the element type asked for, as a transform the loader obeys, and puts quantize_act before matmuls whose kernels compute on int8 activations, or on bf16 ones where that is asked for; the largest columns of what a norm yields are rounded apart (outliers). Weights that no rule names keep the type they are stored in where a kernel reads it; a head that no rule names keeps eight bits.",
	Tolerance: 0.2,
	Run:       quantize,
}

func quantize(env *Env, m *ir.Module) error {
	for _, s := range m.States {
		if env.Types.KV == tensor.Invalid {
			break
		}
		for i := range s.State.Fields {
			s.State.Fields[i].Elem = env.Types.KV
		}
	}
	done := map[*ir.Value]bool{}
	heads, drafts, onlyMatmuls := headWeights(m), draftWeights(m), matmulWeights(m)
	for _, g := range m.Graphs {
		for op := range g.All() {
			for _, w := range matrices(op) {
				if done[w] {
					continue
				}
				done[w] = true
				stored := w.Type.Elem
				if err := quantizeWeight(env, w, heads[w], drafts[w]); err != nil {
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

// matrices lists the weights of an op that are multiplied by or looked up in.
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

// sameType returns the matrices of a mixture of experts one type, because their
// inputs are rounded alike: f16 where one of them cannot take the others'.
func sameType(env *Env, ws []*ir.Value) {
	for _, w := range ws {
		if w.Type.Elem == ws[0].Type.Elem {
			continue
		}
		env.notice("%s and the other matrices of its experts take f16: they need one type", w)
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

// headWeights finds the matrices behind the layers: the head, which is often the
// embedding too. What rounding does to them reaches every logit at once: on
// SmolLM2 the head alone in q4_b32 costs as much as all layers in q5_b64.
func headWeights(m *ir.Module) map[*ir.Value]bool {
	heads := map[*ir.Value]bool{}
	for _, g := range m.Graphs {
		if g.Name == ir.DraftGraph {
			continue // what it proposes is verified
		}
		for _, op := range g.Body.Ops {
			if op.Def.Name == "matmul" {
				heads[op.Args[1].Value] = true
			}
		}
	}
	return heads
}

// draftWeights finds the matrices of the graph that proposes tokens alone. They
// take eight bits, in half the bytes of f16: what they say is verified.
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

// matmulWeights finds the matrices that whole rows are multiplied by, and nothing
// else reads: the ones that kernels can add sparse outliers to.
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

// keepSparse keeps a fraction of the entries of a coarse matrix as sparse
// outliers, unless its type holds exactly what is stored.
func keepSparse(env *Env, w *ir.Value, stored tensor.DType) {
	t := w.Type.Elem
	n, k := w.Type.Shape[0].N, w.Type.Cols()
	if !coarse(t) || w.Transform.Op != "quantize" || tensor.Lossless(t, stored) || k > tensor.MaxSparseCols || tensor.SparseCount(n, k, env.Types.SparseOutliers) == 0 {
		return
	}
	w.Transform = &tensor.Transform{Op: "quantize_sparse", Args: w.Transform.Args, Nums: []float64{env.Types.SparseOutliers}, Type: t}
}

// coarse reports whether a type has fewer than eight bits a weight.
func coarse(t tensor.DType) bool { return t.IsBlock() && t.RowBytes(t.Block()) < t.Block() }

// quantizeWeight sets the type of one matrix. A head keeps eight bits where the
// type for all would give it fewer, and a matrix that drafts takes them, except in
// f32; a rule that names it says otherwise.
func quantizeWeight(env *Env, w *ir.Value, head, draft bool) error {
	stored := w.Type.Elem
	t := tensor.ComputeType(stored)
	n, k := w.Type.Shape[0].N, w.Type.Cols()
	named := false
	if env.Types.Default != tensor.Invalid && (n*k >= env.Types.Threshold || env.Types.Default.IsFloat()) {
		t, named = env.Types.Default, true
		if head && coarse(t) || draft && t != tensor.F32 && k%tensor.Q8B32T2.Block() == 0 {
			t = tensor.Q8B32T2
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
			env.notice("%s keeps f16: its %d columns are not whole blocks of %s", w, k, t)
		}
		t = tensor.F16
	}
	setType(w, t)
	return nil
}

// quantizeActivations rounds the inputs of matmuls whose kernels want it, once
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

// outliers returns the number of groups of columns are taken out of the rows of an op's
// input that is rounded to type t, for weights of type w; none where parts of
// rows are multiplied.
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

// activation returns the type that kernels for weights of type w take, or the one
// asked for where kernels for both exist.
func activation(env *Env, op *ir.Op, w tensor.DType) (tensor.DType, error) {
	if a := env.Types.Activations; a != tensor.Invalid && op.Def.Name == "matmul" && len(env.Kernels.CandidatesFor("matmul", w, a.String())) > 0 {
		return a, nil
	}
	ks := env.Kernels.Candidates("matmul", w)
	if len(ks) == 0 {
		return tensor.Invalid, fmt.Errorf("no kernel multiplies by weights of type %s", w)
	}
	act := templates.Act(w)
	t, ok := tensor.ParseDType(act)
	if !ok {
		return tensor.Invalid, fmt.Errorf("bug: kernels for %s take activations of unknown type %q", w, act)
	}
	return t, nil
}
