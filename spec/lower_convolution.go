package spec

import (
	"fmt"
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
