package ops

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir"
)

// PoolRows compresses windows of rows to one row each.
var PoolRows = &ir.OpDef{
	Name: "pool_rows",
	Doc: "The rows of a sequence are divided into windows of `every` rows. y[d] = Σ softmax(gate[d] + bias[i, d]) · x[d] over the rows of the token's window up to its own, with i the row's place in the window: " +
		"at a window's last row, the compressed row of the window (DeepSeek-V4, heavily compressed attention). " +
		"overlap: x, gate and bias have two halves of columns. The sum is over the first halves of the window before and the second halves of the token's (compressed sparse attention). " +
		"The state holds a maximum, a sum of weights and a weighted sum for each series of the current window, with overlap for the first series of the window before, and finally the number of rows of the current window.",
	Params: []ir.ParamDef{
		param("s", "fixed state {s: f32[4, D]}, with overlap f32[10, D]", state),
		param("x", "f32[T, D], with overlap f32[T, 2·D]", value),
		param("gate", "as x", value),
		param("bias", "[every, columns of x]", weight),
	},
	Attrs: []ir.AttrDef{
		{Name: "every", Kind: ir.IntAttr, Required: true, Doc: "rows of a window"},
		{Name: "overlap", Kind: ir.BoolAttr, Doc: "the window before contributes"},
	},
	Traits: ir.Reads | ir.Writes,
	Infer: func(o *ir.Op) ([]ir.Type, error) {
		f, err := fixedField(o, "s", 2)
		if err != nil {
			return nil, err
		}
		size, halves := 4, 1
		if o.Bool("overlap") {
			size, halves = 10, 2
		}
		cols := halves * f.Shape[1]
		for i := range 2 {
			if err := rowsOf(o, i+1, cols); err != nil {
				return nil, err
			}
		}
		if t := o.Args[3].Type; !t.IsMatrix() || t.Shape[0].N != o.Int("every") || t.Cols() != cols {
			return nil, fmt.Errorf("%s is %s, expected [%d, %d]", o.Args[3], t, o.Int("every"), cols)
		}
		if f.Shape[0] != size {
			return nil, fmt.Errorf("%s is %s, expected [%d, %d]", o.Args[0], o.Args[0].State, size, f.Shape[1])
		}
		return one(f32(o.Args[1].Type.Rows(), ir.N(f.Shape[1])), nil)
	},
	Step: func(o *ir.Op, state []float64, in ir.StepArgs, out []float64) {
		d, every := len(out), o.Int("every")
		count := &state[len(state)-d]
		i := int(*count) % every
		if *count = float64(i + 1); i == 0 {
			if o.Bool("overlap") {
				copy(state[6*d:9*d], state[3*d:6*d])
				clear(state[3*d : 6*d])
			}
			clear(state[:3*d])
		}
		x, gate, bias := in.Args[1], in.Args[2], in.Args[3][i*len(in.Args[1]):]
		at := len(x) - d // of the series of the window itself
		for c := range out {
			pooled{state[c:], d}.add(x[at+c], gate[at+c]+bias[at+c])
			own := pooled{state[c:], d}
			out[c] = own.f[2*d] / own.f[d]
			if at == 0 {
				continue
			}
			pooled{state[3*d+c:], d}.add(x[c], gate[c]+bias[c])
			if before := (pooled{state[6*d+c:], d}); before.f[d] > 0 {
				top := max(own.f[0], before.f[0])
				fo, fb := math.Exp(own.f[0]-top), math.Exp(before.f[0]-top)
				out[c] = (own.f[2*d]*fo + before.f[2*d]*fb) / (own.f[d]*fo + before.f[d]*fb)
			}
		}
	},
}

// A pooled is a maximum, a sum of weights and a weighted sum, d numbers apart.
type pooled struct {
	f []float64
	d int
}

func (p pooled) add(x, gate float64) {
	top, shrink := gate, 0.0
	if p.f[p.d] > 0 {
		top = max(gate, p.f[0])
		shrink = math.Exp(p.f[0] - top)
	}
	weight := math.Exp(gate - top)
	p.f[0], p.f[p.d], p.f[2*p.d] = top, p.f[p.d]*shrink+weight, p.f[2*p.d]*shrink+weight*x
}
