package spec

import (
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// layerName fills in the layer in a standard name.
func layerName(std string, i int) string { return strings.Replace(std, "{i}", strconv.Itoa(i), 1) }

// layerForm replaces the layer index by {i}: dec.3.x → dec.{i}.x, 3.
func layerForm(std string) (string, int) {
	at := siteOf(std)
	if at.layer < 0 {
		return std, -1
	}
	return strings.Replace(std, "."+strconv.Itoa(at.layer)+".", ".{i}.", 1), at.layer
}

// checkStored checks the types of the tensors, and that they belong to layers of the model. The
// modules check which tensors there are, and their shapes.
func (m *Model) checkStored() error {
	for _, std := range m.Tensors() {
		t, at := m.tensors[std], siteOf(std)
		sizes, known := m.sizes[at.std]
		n, _ := sizes["layers"].(int)
		ids := strings.HasSuffix(std, ".moe.gate_table.weight") && (t.DType == tensor.I64 || t.DType == tensor.I32)
		switch {
		case at.layer >= 0 && !known:
			return errAt(m.at(t), "tensor %q maps to %s, but network_structure.type is %s", t.File, std, m.Net.Type)
		case at.layer >= 0 && at.layer >= n:
			name := "num_hidden_layers"
			if at.std == "enc" && m.Net.decodes() {
				name = "encoder_layers"
			}
			return errAt(m.at(t), "tensor %q belongs to layer %d, but %s is %d", t.File, at.layer, name, n)
		case !t.DType.IsFloat() && !t.DType.IsBlock() && !ids:
			return errAt(m.at(t), "tensor %q (%s): type %s, want a floating-point or block type", t.File, std, t.DType)
		case slices.Contains(t.Shape, 0):
			return errAt(m.at(t), "tensor %q (%s): shape %v has no elements", t.File, std, t.Shape)
		}
	}
	return nil
}

// StoresTransposed reports whether a stored matrix is inputs by outputs.
func (m *Model) StoresTransposed(std string) bool {
	return m.storesTransposed(std, m.tensors[std].Shape)
}

func (m *Model) storesTransposed(std string, shape []int) bool {
	return len(shape) == 2 && m.Net.word("weight_layout") == "in_out" && transposes(std)
}

// transposes reports whether the in_out layout transposes this tensor: it applies
// to projections, not to embeddings and the output matrix.
func transposes(form string) bool {
	for _, p := range []string{".self_attn.w", ".cross_attn.w", ".self_attn.qkv", ".feed_forward.w"} {
		if strings.Contains(form, p) {
			return true
		}
	}
	return false
}
