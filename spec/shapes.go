package spec

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// Standard names of the embeddings of relative positions and of their norm.
const (
	relativePositions = "enc.relative_embeddings.weight"
	relativeNorm      = "enc.relative_norm"
)

// checkTensors checks that every layer has the tensors that the modules need, with
// the shapes that the hyper-parameters imply.
func (m *Model) checkTensors(unused []string) error {
	if err := m.inferSizes(unused); err != nil {
		return err
	}
	if err := m.checkRequired(unused); err != nil {
		return err
	}
	if err := m.checkLayersAlike(unused); err != nil {
		return err
	}
	shapes := m.shapesByLayer()
	first := map[string]Tensor{} // by form without an implied shape: the tensor of the first layer
	for _, std := range m.Tensors() {
		t := m.tensors[std]
		ids := strings.HasSuffix(std, ".moe.gate_table.weight") && (t.DType == tensor.I64 || t.DType == tensor.I32)
		if !t.DType.IsFloat() && !t.DType.IsBlock() && !ids {
			return errAt(m.at(t), "tensor %q (%s): type %s, want a floating-point or block type", t.File, std, t.DType)
		}
		if slices.Contains(t.Shape, 0) {
			return errAt(m.at(t), "tensor %q (%s): shape %v has no elements", t.File, std, t.Shape)
		}
		form, i := layerForm(std)
		want, ok := m.sharedKVShape(form, i)
		if !ok {
			want, ok = shapes(form, i)
		}
		if !ok {
			if _, seen := first[form]; !seen {
				first[form] = t
			}
			if one := first[form]; !slices.Equal(t.Shape, one.Shape) {
				return errAt(m.at(t), "tensor %q (%s): shape %v, want %v (that of %q)", t.File, std, t.Shape, one.Shape, one.File)
			}
			continue
		}
		if m.Net.WeightLayout == "in_out" && transposes(form) && len(want.dims) == 2 {
			want.dims = []int{want.dims[1], want.dims[0]}
		}
		if !fits(t.Shape, want) {
			return errAt(m.implied(t, want), "tensor %q (%s): shape %v, want %v (%s)", t.File, std, t.Shape, want.dims, want.why)
		}
	}
	return nil
}

// implied returns the position for errors about a wrong shape: the mapping of the
// tensor, or else the hyper-parameter in the model spec, or else config.json.
func (m *Model) implied(t Tensor, want shape) Pos {
	if t.Pos != (Pos{}) {
		return t.Pos
	}
	if key := "network_structure.head_dim"; m.Spec.Set(key) && strings.Contains(want.why, "head_dim") {
		return m.Spec.Pos(key)
	}
	for _, name := range hyperNames {
		if key := "hyper." + name; m.Spec.Set(key) && strings.Contains(want.why, name) {
			return m.Spec.Pos(key)
		}
	}
	if m.Spec.ConfigFile != "" {
		return Pos{File: filepath.Join(m.Spec.ModelDir, m.Spec.ConfigFile)}
	}
	return Pos{File: m.Spec.File}
}

// inferSizes infers sizes that config.json omits from the shapes of tensors.
func (m *Model) inferSizes(unused []string) error {
	std := m.embedName()
	emb, ok := m.tensors[std]
	if !ok {
		return m.missing(std, unused)
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
	for _, s := range m.stacks() {
		ffn := &m.Hyper.FFN
		if s.std == "enc" && m.Net.decodes() {
			ffn = &m.Encoder.FFN
		}
		for i := 0; i < s.hyper.Layers && *ffn == 0; i++ {
			*ffn = m.storedFFN(layerName(s.in("feed_forward."), i))
		}
	}
	return nil
}

// storedFFN returns the width of a layer's FFN from its first matrix; 0 if it has none.
func (m *Model) storedFFN(layer string) int {
	for _, f := range []struct {
		std  string
		half int
	}{{"w1.weight", 1}, {"w1n3.weight", 2}, {"w3n1.weight", 2}} {
		t, ok := m.tensors[layer+f.std]
		if !ok || len(t.Shape) != 2 {
			continue
		}
		if f.half == 1 && m.packedGate() {
			f.half = 2
		}
		if m.Net.WeightLayout == "in_out" {
			return t.Shape[1] / f.half
		}
		return t.Shape[0] / f.half
	}
	return 0
}

// embedName returns the standard name of the embedding table that defines the
// vocabulary: that of the last stack.
func (m *Model) embedName() string {
	if m.Net.decodes() {
		return "dec.token_embeddings.weight"
	}
	return "enc.token_embeddings.weight"
}

// packedGate reports whether w1 stores gate and up in one matrix (chatglm2's glu_
// activations).
func (m *Model) packedGate() bool { return strings.HasPrefix(m.Net.ActivationFunction, "glu_") }

// A shape is the required shape of a tensor, with the reason for error messages.
type shape struct {
	dims []int
	why  string
	alt  [][]int // other accepted shapes
}

func fits(have []int, want shape) bool {
	if slices.Equal(have, want.dims) {
		return true
	}
	for _, a := range want.alt {
		if slices.Equal(have, a) {
			return true
		}
	}
	return false
}

// shapesByLayer returns a function that returns the shape of a standard tensor, in out_in
// layout, and whether one is implied; layer is −1 for a tensor of no layer.
func (m *Model) shapesByLayer() func(form string, layer int) (shape, bool) {
	type stackSizes struct {
		std   string
		hyper Hyper
	}
	all, bySize := m.shapes(), map[stackSizes]map[string]shape{}
	stacks := m.stacks()
	return func(form string, layer int) (shape, bool) {
		for _, s := range stacks {
			if layer < 0 || !strings.HasPrefix(form, s.std+".{i}.") {
				continue
			}
			s.hyper = m.sizesAt(&s, layer)
			key := stackSizes{s.std, s.hyper}
			if bySize[key] == nil {
				bySize[key] = map[string]shape{}
				m.stackShapes(&s, bySize[key])
				s.part = secondPart
				m.stackShapes(&s, bySize[key])
			}
			want, ok := bySize[key][form]
			return want, ok
		}
		want, ok := all[form]
		return want, ok
	}
}

// shapes returns the shapes of the tensors of no layer.
func (m *Model) shapes() map[string]shape {
	h := m.Hyper
	vocab := fmt.Sprintf("vocabulary %d, width %d", h.Rows, h.Embed)
	head := m.headWidth()
	out := map[string]shape{
		"output.weight":           {dims: []int{h.Rows, head}, why: fmt.Sprintf("vocabulary %d, width %d", h.Rows, head)},
		"output.bias":             {dims: []int{h.Rows}, why: vocab, alt: [][]int{{1, h.Rows}}},
		"input_transform.weight":  {dims: []int{h.Hidden, h.Embed}, why: "width of embeddings and hidden_size"},
		"output_transform.weight": {dims: []int{head, h.Hidden}, why: "width of the head's matrix and hidden_size"},
		"pooler.weight":           {dims: []int{h.Hidden, h.Hidden}, why: fmt.Sprintf("hidden_size %d", h.Hidden)},
	}
	for _, s := range m.stacks() {
		rows := h.Rows
		if t, ok := m.tensors[s.std+".token_embeddings.weight"]; ok && s.std == "enc" && m.Net.decodes() && len(t.Shape) == 2 {
			rows = t.Shape[0] // the encoder has its own vocabulary
		}
		out[s.std+".token_embeddings.weight"] = shape{dims: []int{rows, h.Embed}, why: vocab}
		for _, name := range []string{".pos_embeddings.weight", ".token_type_embeddings.weight", ".task_type_embeddings.weight"} {
			rows := m.storedRows(s.std + name)
			out[s.std+name] = shape{dims: []int{rows, h.Embed}, why: fmt.Sprintf("width of embeddings %d", h.Embed), alt: [][]int{{rows, h.Hidden}}}
		}
		m.normShapes(&s, out)
		m.convolutionShapes(&s, out)
	}
	width := fmt.Sprintf("hidden_size %d", h.Hidden)
	out[relativePositions] = shape{dims: []int{m.storedRows(relativePositions), h.Hidden}, why: width}
	for _, kind := range []string{".weight", ".bias"} {
		out[relativeNorm+kind] = shape{dims: []int{h.Hidden}, why: width}
	}
	m.sharedStreamShapes(out)
	return out
}

// storedRows returns the number of rows of a table that no hyper-parameter states.
func (m *Model) storedRows(std string) int {
	if t := m.tensors[std]; len(t.Shape) == 2 {
		return t.Shape[0]
	}
	return 1
}

// headWidth returns the number of columns of the output matrix. It is the width of
// the embeddings, unless an encoder's head transforms states to another width
// (RemBERT).
func (m *Model) headWidth() int {
	t, own := m.tensors["output.weight"]
	if own && !m.Net.TiedEmbeddings && m.Net.Topology() == "encoder_only" && len(t.Shape) == 2 && t.Shape[1] > 0 {
		return t.Shape[1]
	}
	return m.Hyper.Embed
}

// stackShapes adds the shapes of one stack's tensors.
func (m *Model) stackShapes(s *stack, out map[string]shape) {
	h := s.hyper
	q, kv, v := h.Heads*h.HeadDim, h.KVHeads*h.HeadDim, h.KVHeads*h.VDim
	heads := fmt.Sprintf("num_attention_heads %d, num_key_value_heads %d, head_dim %d, hidden_size %d", h.Heads, h.KVHeads, h.HeadDim, h.Hidden)
	ffn := fmt.Sprintf("intermediate_size %d, hidden_size %d", h.FFN, h.Hidden)
	w1 := h.FFN
	if m.packedGate() {
		w1 = 2 * h.FFN
	}
	linear := func(name string, rows, cols int, why string) {
		out[s.in(name+".weight")] = shape{dims: []int{rows, cols}, why: why}
		out[s.in(name+".bias")] = shape{dims: []int{rows}, why: why}
	}
	for _, attn := range []string{"self_attn.", "cross_attn."} {
		in := cmp.Or(m.attentionInput, h.Hidden)
		linear(attn+"wq", q*m.queryParts(), in, heads)
		linear(attn+"wk", kv, in, heads)
		linear(attn+"wv", v, in, heads)
		linear(attn+"qkv", q+kv+v, in, heads)
		linear(attn+"wo", h.Hidden, h.Heads*h.VDim, heads)
	}
	if n := m.Net; n.LatentAttention {
		why := fmt.Sprintf("kv_lora_rank %d, qk_nope_head_dim %d, qk_rope_head_dim %d, v_head_dim %d, num_attention_heads %d", n.KVLoraRank, n.QKNopeHeadDim, n.QKRopeHeadDim, n.VHeadDim, h.Heads)
		linear("self_attn.wkv_a", n.KVLoraRank+n.QKRopeHeadDim, h.Hidden, why)
		linear("self_attn.wkv_b", h.Heads*(n.QKNopeHeadDim+n.VHeadDim), n.KVLoraRank, why)
		out[s.in("self_attn.wk_b.weight")] = shape{dims: []int{h.Heads, n.KVLoraRank, n.QKNopeHeadDim}, why: why}
		out[s.in("self_attn.wv_b.weight")] = shape{dims: []int{h.Heads, n.VHeadDim, n.KVLoraRank}, why: why}
		x := n.Indexer
		why = fmt.Sprintf("indexer.heads %d, indexer.head_dim %d, hidden_size %d", x.Heads, x.HeadDim, h.Hidden)
		linear("self_attn.index_wk", x.HeadDim, h.Hidden, why)
		linear("self_attn.index_weights", x.Heads, h.Hidden, why)
		out[s.in("self_attn.index_k_norm.weight")] = shape{dims: []int{x.HeadDim}, why: why}
		out[s.in("self_attn.index_k_norm.bias")] = shape{dims: []int{x.HeadDim}, why: why}
		out[s.in("self_attn.kv_a_norm.weight")] = shape{dims: []int{n.KVLoraRank}, why: why}
	}
	for _, name := range []string{"feed_forward.act_p.weight", "feed_forward.act_n.weight"} {
		out[s.in(name)] = shape{dims: []int{1}, why: "one number per layer"}
	}
	linear("feed_forward.w1", w1, h.Hidden, ffn)
	linear("feed_forward.w3", h.FFN, h.Hidden, ffn)
	linear("feed_forward.w1n3", 2*h.FFN, h.Hidden, ffn)
	linear("feed_forward.w3n1", 2*h.FFN, h.Hidden, ffn)
	linear("feed_forward.w2", h.Hidden, h.FFN, ffn)
	m.gateShapes(s, out)
	m.normShapes(s, out)
	m.streamShapes(s, out)
	bias := s.in("self_attn.relative_bias.weight")
	out[bias] = shape{dims: []int{m.storedRows(layerName(bias, 0)), h.Heads}, why: heads}
	for _, name := range []string{"q1", "k1", "q2", "k2"} {
		out[s.in("self_attn.lambda_"+name+".weight")] = shape{dims: []int{h.HeadDim}, why: heads}
	}
	out[s.in("self_attn.sinks.weight")] = shape{dims: []int{h.Heads}, why: heads}
	for name, n := range map[string]int{"q_norm": h.Heads, "k_norm": h.KVHeads} {
		s2 := shape{dims: []int{h.HeadDim}, why: heads, alt: [][]int{{n * h.HeadDim}, {n, h.HeadDim}}}
		out[s.in("self_attn."+name+".weight")] = s2
		out[s.in("self_attn."+name+".bias")] = s2
	}
}

// gateShapes adds the shapes of the router's tensors.
func (m *Model) gateShapes(s *stack, out map[string]shape) {
	n, hidden := m.Net, s.hyper.Hidden
	rows := n.ExpertCount + n.MoEZeroExperts
	gate := shape{dims: []int{rows, hidden}, why: fmt.Sprintf("expert_count %d, hidden_size %d", n.ExpertCount, hidden)}
	if n.MoEGateLayout == "by_shape" {
		gate.alt = [][]int{{hidden, rows}}
	}
	out[s.in("moe.gate.weight")] = gate
	out[s.in("moe.gate.bias")] = shape{dims: []int{rows}, why: gate.why}
	out[s.in("moe.gate_score.bias")] = shape{dims: []int{rows}, why: fmt.Sprintf("expert_count %d", n.ExpertCount), alt: [][]int{{1, n.ExpertCount}, {n.MoESets, n.ExpertCount}}}
}

// queryParts returns the number of heads that wq stores for each query head.
func (m *Model) queryParts() int {
	if m.Net.AttnGate == "query" {
		return 2
	}
	return 1
}

// normShapes adds the shapes of norms over the hidden width.
func (m *Model) normShapes(s *stack, out map[string]shape) {
	width := shape{dims: []int{s.hyper.Hidden}, why: fmt.Sprintf("hidden_size %d", s.hyper.Hidden)}
	names := []string{s.std + ".output_norm"}
	for _, n := range []string{"self_attn.pre_norm", "self_attn.post_norm", "self_attn.second_post_norm", "self_attn.out_norm", "cross_attn.pre_norm", "cross_attn.post_norm",
		"feed_forward.pre_norm", "feed_forward.post_norm", "feed_forward.out_norm"} {
		names = append(names, s.in(n))
	}
	for _, n := range names {
		out[n+".weight"], out[n+".bias"] = width, width
	}
	out[s.in("self_attn.sub_norm.weight")] = shape{dims: []int{s.hyper.Heads * s.hyper.VDim}, why: "input of the output projection"}
	out[s.in("feed_forward.sub_norm.weight")] = shape{dims: []int{s.hyper.FFN}, why: fmt.Sprintf("intermediate_size %d", s.hyper.FFN)}
	embed := shape{dims: []int{m.Hyper.Embed}, why: "width of embeddings", alt: [][]int{{m.Hyper.Hidden}}}
	out[s.std+".input_norm.weight"], out[s.std+".input_norm.bias"] = embed, embed
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
