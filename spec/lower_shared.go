package spec

import (
	"slices"
	"strconv"
	"strings"
)

// sharedAt reports whether a layer has a shared block.
func (n *Network) sharedAt(layer int) bool {
	p := n.SharedBlock.Pattern
	return len(p) > 0 && p[layer%len(p)] == "block"
}

// sharedLayers returns the layers with a shared block.
func (m *Model) sharedLayers() []int {
	var out []int
	for i := range m.Hyper.Layers {
		if m.Net.sharedAt(i) {
			out = append(out, i)
		}
	}
	return out
}

// sharesBlock reports whether several layers may read the tensor of a stored name.
func (m *Model) sharesBlock(r nameRule) bool {
	std := r.standard.String()
	return len(m.Net.SharedBlock.Pattern) > 0 && strings.HasPrefix(std, "dec.{i}.shared.") && !strings.HasPrefix(std, "dec.{i}.shared.out.")
}

// shareBlock records a tensor of a shared block, which is stored under the first layer
// that uses it, for every such layer without one of its own. An adapter belongs to one
// of them, the {j}th.
func (m *Model) shareBlock(r nameRule, i, j int, t Tensor) error {
	layers, blocks := m.sharedLayers(), max(m.Net.SharedBlock.Blocks, 1)
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

// sharedBlock writes a transformer block that several layers share (Zamba2: Glorioso
// et al. 2024, §2). It reads the hidden state and the embeddings side by side, has no
// residual additions of its own, and its output is added to the input of the mixer.
func (l *lowerer) sharedBlock(x string) string {
	h, sh := l.Hyper, l.s.in("shared.")
	in := l.t.op("h", "concat", []string{x, l.embedded}, nil)
	in, _ = l.norm("h", "shared_norm", sh+"pre_norm", in, l.Net.AttnPreNormBase)
	var p [3]string
	for i, name := range []string{"q", "k", "v"} {
		p[i] = l.affine(name, "shared_w"+name, sh+"w"+name, in)
		p[i] = l.adapted(p[i], in, name, "w"+name, nil)
	}
	q, k := l.rope("qr", p[0], l.ropeKind(l.at), h.Heads), l.rope("kr", p[1], l.ropeKind(l.at), h.KVHeads)
	kv := l.cache(false)
	l.t.effect("kv_append", []string{kv, k, p[2]})
	a := l.t.op("a", "attention", []string{q, kv}, l.attentionAttrs())
	a = l.affine("o", "shared_wo", sh+"wo", a)
	m, _ := l.norm("m", "shared_ffn_norm", sh+"ffn_norm", a, l.Net.FFNPreNormBase)
	var halves [2]string
	for i, name := range []string{"gate", "up"} {
		c := rowsCut(i*h.FFN, (i+1)*h.FFN)
		halves[i] = l.linear(name, "shared_"+name, sh+"w1n3", m, c)
		halves[i] = l.bias(name, "shared_"+name+"_bias", sh+"w1n3", halves[i], c)
		halves[i] = l.adapted(halves[i], m, name, "w1n3", c)
	}
	f := l.affine("f", "shared_w2", sh+"w2", l.gated(halves[0], halves[1]))
	return l.affine("f", "shared_out", sh+"out", f)
}

// adapted adds the low-rank adapter of a projection of x, if the layer has one.
func (l *lowerer) adapted(y, x, hint, name string, c *cut) string {
	std := l.s.in("shared." + name + "_adapter")
	if !l.has(std + "_a.weight") {
		return y
	}
	low := l.linear("low", "shared_"+name+"_adapter_a", std+"_a", x, nil)
	low = l.linear(hint, "shared_"+hint+"_adapter_b", std+"_b", low, c)
	return l.t.op(hint, "add", []string{y, low}, nil)
}
