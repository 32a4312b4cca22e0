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
	layers := map[string]int{}
	for _, s := range m.stacks() {
		layers[s.std] = s.hyper.Layers
	}
	for _, std := range m.Tensors() {
		t, at := m.tensors[std], siteOf(std)
		n, known := layers[at.std]
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

// inferSizes infers sizes that config.json omits from the table of embeddings.
func (m *Model) inferSizes() error {
	std := m.embedName()
	emb, ok := m.tensors[std]
	if !ok {
		return m.missing(std)
	}
	if len(emb.Shape) != 2 {
		return errAt(m.at(emb), "tensor %q: shape %v, want [vocabulary, width]", emb.File, emb.Shape)
	}
	if m.Hyper.Vocab == 0 {
		m.Hyper.Vocab, m.Hyper.Rows = emb.Shape[0], max(emb.Shape[0], m.Spec.PaddedVocabSize)
	}
	if _, projected := m.tensors["input_transform.weight"]; projected {
		m.Hyper.Embed = emb.Shape[1]
	}
	return nil
}

// embedName returns the standard name of the embedding table that defines the
// vocabulary: that of the last stack.
func (m *Model) embedName() string {
	if m.Net.decodes() {
		return "dec.token_embeddings.weight"
	}
	return "enc.token_embeddings.weight"
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
