package spec

import (
	"strconv"
	"strings"
)

// A weightGroup is the stored layer that a layer reads if layers share weights: the
// group, and the layer in it. It is zero for every layer if they do not.
type weightGroup struct{ group, layer int }

// weightGroup returns the weight group of a layer; layers is the size of the stack. The
// quotient is computed as in transformers (AlbertTransformer.forward), with its
// rounding.
func (m *Model) weightGroup(layers, layer int) weightGroup {
	n := m.Net
	groups := n.number("weight_groups")
	if groups == 0 {
		return weightGroup{}
	}
	inner := n.number("weight_group_layers")
	perGroup := float64(layers/inner) / float64(groups)
	return weightGroup{int(float64(layer/inner) / perGroup), layer % inner}
}

// sharesLayers reports whether several layers may read the tensor of a stored name
// with layer index i (-1: none).
func (m *Model) sharesLayers(r nameRule, i int) bool {
	return strings.Contains(r.standard.String(), "{i}") && (i < 0 || m.Net.number("weight_groups") > 0)
}

// sharing returns the function that records a tensor that several layers may read; nil
// for the tensor of one layer.
func (m *Model) sharing(r nameRule, i int) func(r nameRule, i, j int, t Tensor) error {
	switch {
	case i >= 0 && m.sharesBlock(r):
		return m.shareBlock
	case m.sharesLayers(r, i):
		return m.shareLayers
	}
	return nil
}

// shareLayers records the tensor for every layer that reads it: all layers of a
// stack if its name has no index, otherwise the layers of its weight group. If
// there are fewer layers than groups, the tensors of later groups are unused.
func (m *Model) shareLayers(r nameRule, i, j int, t Tensor) error {
	own := weightGroup{i, 0}
	if namesGroupLayer(r) {
		own.layer = j
	}
	groups, inner := m.Net.number("weight_groups"), m.Net.number("weight_group_layers")
	if i >= 0 && (own.group >= groups || own.layer >= inner) {
		return errAt(m.at(t), "tensor %q belongs to layer %d of weight group %d; want groups below weight_groups %d and layers below weight_group_layers %d", t.File, own.layer, own.group, groups, inner)
	}
	read := false
	for _, s := range m.stacks() {
		if !strings.HasPrefix(r.standard.String(), s.std+".") {
			continue
		}
		for layer := range s.hyper.Layers {
			if i < 0 || m.weightGroup(s.hyper.Layers, layer) == own {
				m.tensors[r.standard.Name(layer, j)] = t
				read = true
			}
		}
	}
	if !read {
		m.Unused = append(m.Unused, t.File)
	}
	return nil
}

// namesGroupLayer reports whether {j} of a stored name is the layer in its weight
// group. Otherwise {j} is an expert or a head, and occurs in the standard name too.
func namesGroupLayer(r nameRule) bool {
	return strings.Contains(r.stored.String(), "{j}") && !strings.Contains(r.standard.String(), "{j}")
}

// storedPattern returns the rule's stored name with the indices of the weight
// group filled in, so that only the indices of the weight array remain.
func (m *Model) storedPattern(r nameRule, i, j int) string {
	p := r.stored.String()
	if m.Net.number("weight_groups") == 0 || i < 0 {
		return p
	}
	if namesGroupLayer(r) {
		p = strings.ReplaceAll(p, "{j}", strconv.Itoa(j))
	}
	return strings.ReplaceAll(p, "{i}", strconv.Itoa(i))
}

// storedName returns the stored name of a layer's tensor under the rule.
func (m *Model) storedName(r nameRule, layer, j int) string {
	if m.Net.number("weight_groups") == 0 || layer < 0 {
		return r.stored.Name(layer, j)
	}
	for _, s := range m.stacks() {
		if strings.HasPrefix(r.standard.String(), s.std+".") {
			own := m.weightGroup(s.hyper.Layers, layer)
			if namesGroupLayer(r) {
				j = own.layer
			}
			return r.stored.Name(own.group, j)
		}
	}
	return r.stored.Name(layer, j)
}
