package spec

import "github.com/iflowc/iflowc/ir/tensor"

// leastKept is less than the fraction of tokens that are no masks in any text with one.
const leastKept = 1e-9

// maskDropout writes what stands for the dropout of token embeddings in training, if the
// model has it (ESM: Lin et al. 2022). The embeddings of mask tokens become zero. Those of a
// text are multiplied by (1 − rate)/(1 − m), where m is the fraction of its tokens that are
// masks. A table has 1 for other tokens and 0 for the mask; its mean over a text's tokens is
// 1 − m.
func (l *lowerer) maskDropout(x string) string {
	rate, std := l.Net.MaskDropout, l.embedStd()
	if rate == 0 {
		return x
	}
	vocab, mask := l.tensors[std].Shape[0], l.Net.MaskTokenID
	if mask < 0 || mask >= vocab {
		l.fail("network_structure.mask_token_id: have %d, want a token of %d, whose embedding mask_dropout makes zero", mask, vocab)
		return x
	}
	table := &cut{rows: vocab, wide: true, apply: func(r *tensor.Transform) *tensor.Transform {
		var parts []*tensor.Transform
		for _, rows := range [][3]int{{0, mask, 1}, {mask, mask + 1, 0}, {mask + 1, vocab, 1}} {
			if rows[0] == rows[1] {
				continue
			}
			zero := &tensor.Transform{Op: "scale", Args: []*tensor.Transform{apply("rows", r, rows[0], rows[1])}, Nums: []float64{0}}
			parts = append(parts, &tensor.Transform{Op: "add", Args: []*tensor.Transform{zero}, Nums: []float64{float64(rows[2])}})
		}
		return &tensor.Transform{Op: "concat", Args: parts}
	}}
	kept := l.t.op("kept", "embed", []string{"%ids", l.weight("kept", std, table)}, nil)
	x = l.t.op("x0", "mul", []string{l.scaled("x0", x, 1-rate), kept}, nil)
	share := l.t.op("kept", "clamp", []string{l.meanOfTokens(kept)}, attrs{}.num("lo", leastKept).num("hi", 1)) // a text of masks only has zeros
	return l.t.op("x0", "div", []string{x, share}, nil)
}
