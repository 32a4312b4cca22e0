package spec

import (
	"fmt"

	"github.com/iflowc/iflowc/ir/tensor"
)

func shortConvMixer() *mixer {
	return &mixer{
		word: "short_conv", prefix: "short_conv", required: []string{"win.weight", "conv.weight", "wo.weight"},
		shapes: func(m *Model, s *stack, add func(string, ...int)) {
			add("win.weight", 3*s.hyper.Hidden, s.hyper.Hidden)
			add("wo.weight", s.hyper.Hidden, s.hyper.Hidden)
		},
		write: (*lowerer).shortConv, scales: noScales,
	}
}

// shortConv writes a short convolution with a gate on its input and one on its output,
// all three projected from x (LFM2).
func (l *lowerer) shortConv(x string) string {
	sc, width := l.s.in("short_conv."), l.Hyper.Hidden
	var p [3]string
	names := []string{"b", "c", "u"}
	for i := range p {
		c := rowsCut(i*width, (i+1)*width)
		p[i] = l.linear(names[i], "short_conv_w"+names[i], sc+"win", x, c)
		p[i] = l.bias(names[i], "short_conv_w"+names[i]+"_bias", sc+"win", p[i], c)
	}
	u := l.t.op("u", "mul", []string{p[0], p[2]}, nil)
	y := l.convolved("short_conv", "y", u, []string{sc + "conv"}, nil)
	y = l.t.op("y", "mul", []string{y, p[1]}, nil)
	return l.affine("o", "short_conv_wo", sc+"wo", y)
}

func rgLRUMixer() *mixer {
	return &mixer{
		word: "rg_lru", prefix: "rg_lru", required: []string{"wx.weight", "wy.weight", "conv.weight", "a.weight", "input_gate.weight", "recurrent_gate.weight", "wo.weight"},
		check: func(n *Network) error { return positive("blocks", n.RGLRU.Blocks) },
		write: (*lowerer).rgLRU, scales: noScales, shapes: rgLRUShapes,
	}
}

// rgLRUShapes adds the shapes of the recurrent block, whose width the first of them states.
func rgLRUShapes(m *Model, s *stack, add func(name string, dims ...int)) {
	width, blocks := 0, m.Net.RGLRU.Blocks
	for i := 0; i < s.hyper.Layers && width == 0; i++ {
		if t := m.tensors[layerName(s.in("rg_lru.wx.weight"), i)]; len(t.Shape) == 2 {
			width = t.Shape[0]
		}
	}
	for _, name := range []string{"wx", "wy"} {
		add(name+".weight", width, s.hyper.Hidden)
		add(name+".bias", width)
	}
	for _, name := range []string{"input_gate", "recurrent_gate"} {
		add(name+".weight", blocks, width/blocks, width/blocks)
		add(name+".bias", blocks, width/blocks)
	}
	add("a.weight", width)
	add("conv.bias", width)
	add("wo.weight", s.hyper.Hidden, width)
}

// rgLRU writes the recurrent block of Griffin (De et al. 2024, §2.3 and 2.4): a
// convolution and a gated linear recurrence, multiplied by an activated branch.
func (l *lowerer) rgLRU(x string) string {
	n, rg := l.Net.RGLRU, l.s.in("rg_lru.")
	width := l.tensors[layerName(rg+"wx.weight", l.at)].Shape[0]
	if width%n.Blocks != 0 {
		l.fail("network_structure.rg_lru: width %d, want a multiple of %d blocks", width, n.Blocks)
		return x
	}
	gate := l.activationOp(n.Activation, l.affine("z", "rg_lru_wy", rg+"wy", x))
	u := l.affine("u", "rg_lru_wx", rg+"wx", x)
	u = l.convolved("rg_lru", "u", u, []string{rg + "conv"}, nil)
	blocks := l.blocks("ub", u, n.Blocks, width)
	in := l.t.op("i", "sigmoid", []string{l.blockDiagonal("i", "input_gate", blocks, width)}, nil)
	in = l.t.op("i", "mul", []string{u, in}, nil)
	decay := l.t.op("d", "sigmoid", []string{l.blockDiagonal("d", "recurrent_gate", blocks, width)}, nil)
	rate := l.built("rg_lru_a", []string{rg + "a.weight"}, []int{width}, true, func(src []*tensor.Transform) *tensor.Transform {
		return &tensor.Transform{Op: "scale", Args: []*tensor.Transform{apply("softplus", src[0])}, Nums: []float64{-n.Strength}}
	})
	decay = l.t.op("d", "mul", []string{decay, rate}, nil)
	y := l.t.op("y", "rg_lru", []string{l.fixed("rg_lru", "h", width), in, decay}, nil)
	y = l.t.op("y", "mul", []string{y, gate}, nil)
	return l.affine("o", "rg_lru_wo", rg+"wo", y)
}

// blocks writes a split of the columns of x into n equal blocks.
func (l *lowerer) blocks(hint, x string, n, width int) []string {
	if n == 1 {
		return []string{x}
	}
	hints, sizes := make([]string, n), make([]int, n)
	for i := range hints {
		hints[i], sizes[i] = hint, width/n
	}
	return l.splitInto(x, hints, sizes)
}

// eachBlock multiplies each block of columns by a matrix of its own.
func (l *lowerer) eachBlock(hint string, blocks []string, weight func(b int) string) string {
	var out []string
	for b, x := range blocks {
		out = append(out, l.t.op(hint, "matmul", []string{x, weight(b)}, nil))
	}
	if len(out) == 1 {
		return out[0]
	}
	return l.t.op(hint, "concat", out, nil)
}

// blockDiagonal multiplies each block of columns by a matrix of its own, stored as
// [blocks, in, out], and adds the bias.
func (l *lowerer) blockDiagonal(hint, name string, blocks []string, width int) string {
	std, size := l.s.in("rg_lru."+name), width/len(blocks)
	y := l.eachBlock(hint, blocks, func(b int) string {
		return l.built(fmt.Sprintf("rg_lru_%s_%d", name, b), []string{std + ".weight"}, []int{size, size}, false, func(src []*tensor.Transform) *tensor.Transform {
			r := apply("reshape", src[0], width, size)
			return apply("transpose", apply("rows", r, b*size, (b+1)*size))
		})
	})
	if bias, ok := l.tensors[layerName(std+".bias", l.at)]; ok {
		y = l.t.op(hint, "add", []string{y, l.weight("rg_lru_"+name+"_bias", std+".bias", rowVectorOf(bias))}, nil)
	}
	return y
}
