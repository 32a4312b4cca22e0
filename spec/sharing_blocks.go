package spec

import (
	"slices"
	"strconv"
	"strings"
)

// sharedLayers returns the layers with a shared block.
func (m *Model) sharedLayers() []int {
	var out []int
	for i := range m.Hyper.Layers {
		if m.Net.at("shared_block.pattern", i) == "block" {
			out = append(out, i)
		}
	}
	return out
}

// sharesBlock reports whether several layers may read the tensor of a stored name.
func (m *Model) sharesBlock(r nameRule) bool {
	std := r.standard.String()
	return m.Net.Params["shared_block.pattern"] != nil && strings.HasPrefix(std, "dec.{i}.shared.") && !strings.HasPrefix(std, "dec.{i}.shared.out.")
}

// shareBlock records a tensor of a shared block, which is stored under the first layer
// that uses it, for every such layer without one of its own. An adapter belongs to one
// of them, the {j}th.
func (m *Model) shareBlock(r nameRule, i, j int, t Tensor) error {
	layers, blocks := m.sharedLayers(), max(m.Net.number("shared_block.blocks"), 1)
	at := slices.Index(layers, i)
	if at < 0 || namesGroupLayer(r) && (j >= len(layers) || j%blocks != at%blocks) {
		return errAt(m.at(t), "tensor %q belongs to a shared block, but by network_structure.shared_block layer %d has none, or another", t.File, i)
	}
	t.Pattern = strings.ReplaceAll(strings.ReplaceAll(r.stored.String(), "{i}", strconv.Itoa(i)), "{j}", strconv.Itoa(j))
	recorded := false
	for k, layer := range layers {
		if k%blocks != at%blocks || namesGroupLayer(r) && k != j {
			continue
		}
		std := r.standard.Name(layer, j)
		if _, twice := m.tensors[std]; !twice || layer == i { // a layer's own copy is its own block
			m.tensors[std], recorded = t, true
		}
	}
	if !recorded {
		m.Unused = append(m.Unused, t.File) // another copy of it
	}
	return nil
}
