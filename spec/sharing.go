package spec

import (
	"strconv"
	"strings"
)

// A weightGroup says which stored layer a layer reads where layers share
// weights: the layer-th of a group. The zero value is also every layer's where
// none do.
type weightGroup struct{ group, layer int }

// weightGroup finds the weights of a layer of a stack of so many layers. The
// quotient is transformers' (AlbertTransformer.forward), rounding and all.
func (m *Model) weightGroup(layers, layer int) weightGroup {
	n := m.Net
	if n.WeightGroups == 0 {
		return weightGroup{}
	}
	inner := n.WeightGroupLayers
	perGroup := float64(layers/inner) / float64(n.WeightGroups)
	return weightGroup{int(float64(layer/inner) / perGroup), layer % inner}
}

// sharesLayers reports whether a stored name with layer index i (-1: none) is that
// of a tensor which several layers may read.
func (m *Model) sharesLayers(r nameRule, i int) bool {
	return strings.Contains(r.standard.String(), "{i}") && (i < 0 || m.Net.WeightGroups > 0)
}

// shareLayers returns the tensor to every layer that reads it: to all layers of a
// stack if its name has no index, else to those of its weight group. A group
// that no layer reads, as there are fewer layers than groups, is not used.
func (m *Model) shareLayers(r nameRule, i, j int, t Tensor) error {
	own := weightGroup{i, 0}
	if namesGroupLayer(r) {
		own.layer = j
	}
	n := m.Net
	if i >= 0 && (own.group >= n.WeightGroups || own.layer >= n.WeightGroupLayers) {
		return errAt(m.at(t), "tensor %q is of layer %d of weight group %d; want groups below weight_groups %d of weight_group_layers %d", t.File, own.layer, own.group, n.WeightGroups, n.WeightGroupLayers)
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
// group; else it is an expert or a head, which the standard name has too.
func namesGroupLayer(r nameRule) bool {
	return strings.Contains(r.stored.String(), "{j}") && !strings.Contains(r.standard.String(), "{j}")
}

// storedPattern returns the rule's stored name with the indices filled in that tell
// a weight group, so that only those remain over which a weight is an array.
func (m *Model) storedPattern(r nameRule, i, j int) string {
	p := r.stored.String()
	if m.Net.WeightGroups == 0 || i < 0 {
		return p
	}
	if namesGroupLayer(r) {
		p = strings.ReplaceAll(p, "{j}", strconv.Itoa(j))
	}
	return strings.ReplaceAll(p, "{i}", strconv.Itoa(i))
}

// storedName returns the name under which the rule has the tensor of a layer stored.
func (m *Model) storedName(r nameRule, layer, j int) string {
	if m.Net.WeightGroups == 0 || layer < 0 {
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
