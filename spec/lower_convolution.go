package spec

import (
	"fmt"

	"github.com/iflowc/iflowc/ir/tensor"
)

// Standard names of the convolution beside an encoder's first layer and of its norm.
const (
	convolution     = "enc.convolution"
	convolutionNorm = "enc.convolution_norm"
)

// maxKernel is the maximum number of tokens that a convolution reads.
const maxKernel = 255

// checkConvolution checks the hyper-parameters of the convolution.
func (s *Spec) checkConvolution() error {
	n := &s.Network
	c, key := n.Convolution, "network_structure.convolution"
	switch {
	case c.KernelSize < 0 || c.KernelSize > maxKernel || c.KernelSize > 0 && c.KernelSize%2 == 0:
		return errAt(s.Pos(key), "%s.kernel_size: have %d, want 0 (none) or an odd number up to %d", key, c.KernelSize, maxKernel)
	case c.Groups < 1:
		return errAt(s.Pos(key), "%s.groups: have %d, want 1 or more", key, c.Groups)
	case c.KernelSize > 0 && !n.encodes():
		return errAt(s.Pos(key), "%s: a step of a decoder has only a part of a text; want an encoder", key)
	}
	return nil
}

// convolves reports whether there is a convolution beside a layer.
func (n *Network) convolves(s *stack, layer int) bool {
	return n.Convolution.KernelSize > 0 && s.std == "enc" && layer == 0
}

// convolutionShapes adds the shapes of the convolution's tensors, if the stack has one.
func (m *Model) convolutionShapes(s *stack, out map[string]shape) {
	if !m.Net.convolves(s, 0) {
		return
	}
	c, h := m.Net.Convolution, s.hyper
	why := fmt.Sprintf("hidden_size %d, convolution.groups %d, convolution.kernel_size %d", h.Hidden, c.Groups, c.KernelSize)
	width := shape{dims: []int{h.Hidden}, why: why}
	out[convolution+".weight"] = shape{dims: []int{h.Hidden, h.Hidden / c.Groups, c.KernelSize}, why: why}
	out[convolution+".bias"], out[convolutionNorm+".weight"], out[convolutionNorm+".bias"] = width, width, width
}

// convolution writes norm(x + act(convolution of in)), for the layer's input and output: a
// matmul of the rows around each token, in whose columns the taps follow each other as in
// the stored matrices.
func (l *lowerer) convolution(in, x string) string {
	c, width := l.Net.Convolution, l.Hyper.Hidden
	if width%c.Groups != 0 {
		l.fail("network_structure.convolution.groups: have %d, which does not divide hidden_size %d", c.Groups, width)
		return x
	}
	if c.KernelSize > 1 {
		in = l.t.op("near", "unfold", []string{in}, attrs{}.int("before", c.KernelSize/2).int("after", c.KernelSize/2))
	}
	rows, cols := width/c.Groups, width/c.Groups*c.KernelSize
	y := l.eachBlock("c", l.blocks("near", in, c.Groups, width*c.KernelSize), func(b int) string {
		name := "convolution"
		if c.Groups > 1 {
			name = fmt.Sprintf("convolution_%d", b)
		}
		return l.built(name, []string{convolution + ".weight"}, []int{rows, cols}, false, func(src []*tensor.Transform) *tensor.Transform {
			r := apply("reshape", src[0], width, cols)
			if c.Groups > 1 {
				r = apply("rows", r, b*rows, (b+1)*rows)
			}
			return r
		})
	})
	y = l.activationOp(c.Act, l.bias("c", "convolution_bias", convolution, y, nil))
	x, _ = l.norm("x2", "convolution_norm", convolutionNorm, l.t.op("x2", "add", []string{x, y}, nil), 0)
	return x
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
