package layout

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// inputRoles maps the integer arrays of a step to their roles.
var inputRoles = map[string]string{"ids": "tokens", "pos": "tokens", "types": "tokens", "out_rows": "out_rows"}

// check returns an error for a valid graph that a step cannot represent.
func (g *Graph) check(uses map[*ir.Value][]ir.Use) error {
	for _, in := range g.Inputs {
		if isIDs(in) {
			if role := inputRoles[in.Name]; role == "" || role != in.Role() {
				return fmt.Errorf("%s: input %s counts %s: a step gives ids, pos and types of its tokens, and out_rows of its out_rows", in.Pos, in, in.Role())
			}
			continue
		}
		if i := slices.IndexFunc(g.earlier, func(y *ir.Value) bool { return y.OutputName() == in.Name }); i >= 0 && g.earlier[i].Role() == "tokens" {
			continue // a row for each token, as in this step
		}
		for _, u := range uses[in] {
			if u.Op == nil || u.Op.Def.Name != "rows" {
				return fmt.Errorf("%s: input %s, of an earlier step, has that step's rows: only rows picks some of them", in.Pos, in)
			}
		}
	}
	for _, y := range g.Body.Yield {
		if y.Type.Elem != tensor.F32 || len(y.Type.Shape) != 2 {
			return fmt.Errorf("%s: yield of %s, which is %s: a graph yields rows of f32", y.Pos, y, y.Type)
		}
	}
	if n := g.At + len(g.Body.Yield); n > manifest.MaxOutputs {
		return fmt.Errorf("%s: %d outputs; a step supports at most %d: combine values with concat", g.Pos, n, manifest.MaxOutputs)
	}
	for op := range g.Body.All() {
		if err := checkRows(op); err != nil {
			return fmt.Errorf("%s: %w", Position(op), err)
		}
	}
	return nil
}

// checkRows checks that an op has the rows that it computes for: tokens, where
// it asks for a token's position or sequence.
func checkRows(op *ir.Op) error {
	tokens := func(args []ir.Arg) error {
		for _, a := range args {
			if a.Role() != "tokens" {
				return fmt.Errorf("%s counts %s; the op takes a row for each token", a, a.Role())
			}
		}
		return nil
	}
	if op.Def.Step != nil {
		return tokens(slices.DeleteFunc(slices.Clone(op.Args[1:]), func(a ir.Arg) bool { return a.Kind == ir.Weight }))
	}
	switch op.Def.Name {
	case "embed", "rope_table", "sinusoid", "position_scale":
		if a := op.Args[0]; a.Kind != ir.Input {
			return fmt.Errorf("%s is computed; the op takes the step's ids, pos or types", a)
		}
		return tokens(op.Args[:1])
	case "rows":
		if a := op.Args[1]; a.Kind != ir.Input || a.Role() != "out_rows" {
			return fmt.Errorf("%s does not count rows of tokens; out_rows does", a)
		}
		return tokens(op.Args[:1])
	case "attention", "unfold":
		return tokens(op.Args[:1])
	case "select_rows":
		return tokens(op.Args[:2])
	case "kv_append":
		return tokens(op.Args[1:])
	case "repeat":
		for _, a := range op.Args {
			if a.Type.Elem != tensor.F32 {
				return fmt.Errorf("%s is %s; a repeat carries rows of f32", a, a.Type)
			}
		}
	}
	return nil
}
