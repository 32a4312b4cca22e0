package spec

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// checkTensors checks that every tensor which the modules need is there, in
// every layer alike, with the shape that the hyper-parameters imply.
func (m *Model) checkTensors(unused []string) error {
	if err := m.inferSizes(unused); err != nil {
		return err
	}
	for _, std := range m.required() {
		if _, ok := m.tensors[std]; !ok {
			return m.missing(std, unused)
		}
	}
	if err := m.checkLayersAlike(unused); err != nil {
		return err
	}
	shapes := m.shapes()
	for _, std := range m.Tensors() {
		t := m.tensors[std]
		if !t.DType.IsFloat() && !t.DType.IsBlock() {
			return errAt(m.at(t), "tensor %q (%s): type %s, want a floating-point or block type", t.File, std, t.DType)
		}
		form, _ := layerForm(std)
		want, ok := shapes[form]
		if !ok {
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

// implied is the line to blame for a wrong shape: the one that maps the tensor,
// else the hyper-parameter that the specification gives, else config.json.
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

// inferSizes takes from shapes what config.json may leave out.
func (m *Model) inferSizes(unused []string) error {
	emb, ok := m.tensors["dec.token_embeddings.weight"]
	if !ok {
		return m.missing("dec.token_embeddings.weight", unused)
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
	for _, f := range []struct {
		std  string
		half int
	}{{"dec.0.feed_forward.w1.weight", 1}, {"dec.0.feed_forward.w1n3.weight", 2}} {
		t, ok := m.tensors[f.std]
		if !ok || len(t.Shape) != 2 {
			continue
		}
		if f.half == 1 && m.packedGate() {
			f.half = 2
		}
		rows := t.Shape[0]
		if m.Net.WeightLayout == "in_out" {
			rows = t.Shape[1]
		}
		if m.Hyper.FFN == 0 {
			m.Hyper.FFN = rows / f.half
		}
	}
	return nil
}

// packedGate says whether w1 holds gate and up together (chatglm2's glu_ activations).
func (m *Model) packedGate() bool { return strings.HasPrefix(m.Net.ActivationFunction, "glu_") }

// required lists the standard names that every model of this structure has.
func (m *Model) required() []string {
	var out []string
	for i := range m.Hyper.Layers {
		l := fmt.Sprintf("dec.%d.", i)
		if m.has("dec.{i}.self_attn.qkv.weight") {
			out = append(out, l+"self_attn.qkv.weight")
		} else {
			out = append(out, l+"self_attn.wq.weight", l+"self_attn.wk.weight", l+"self_attn.wv.weight")
		}
		out = append(out, l+"self_attn.wo.weight")
		if m.has("dec.{i}.feed_forward.w1n3.weight") {
			out = append(out, l+"feed_forward.w1n3.weight")
		} else {
			out = append(out, l+"feed_forward.w1.weight")
		}
		out = append(out, l+"feed_forward.w2.weight")
		if n := m.Net; n.NormParameters {
			if !m.has("dec.{i}.self_attn.post_norm.weight") && !m.has("dec.{i}.self_attn.out_norm.weight") {
				out = append(out, l+"self_attn.pre_norm.weight")
			}
			if !m.has("dec.{i}.feed_forward.post_norm.weight") && !m.has("dec.{i}.feed_forward.out_norm.weight") && !n.IsParallelAttn &&
				!m.has("dec.{i}.self_attn.post_norm.weight") {
				out = append(out, l+"feed_forward.pre_norm.weight")
			}
		}
	}
	if m.Net.NormParameters && !m.has("dec.{i}.feed_forward.post_norm.weight") {
		out = append(out, "dec.output_norm.weight")
	}
	return out
}

// checkLayersAlike checks that the layers have the same tensors, and that
// there are no more layers than the hyper-parameters say.
func (m *Model) checkLayersAlike(unused []string) error {
	count := map[string]int{}
	for _, std := range m.Tensors() {
		form, i := layerForm(std)
		if i < 0 {
			continue
		}
		if i >= m.Hyper.Layers {
			t := m.tensors[std]
			return errAt(m.at(t), "tensor %q is of layer %d, but num_hidden_layers is %d", t.File, i, m.Hyper.Layers)
		}
		count[form]++
	}
	var forms []string
	for form := range count {
		forms = append(forms, form)
	}
	sort.Strings(forms)
	for _, form := range forms {
		if count[form] == m.Hyper.Layers {
			continue
		}
		for i := range m.Hyper.Layers {
			if _, ok := m.tensors[layerName(form, i)]; !ok {
				return m.missing(layerName(form, i), unused)
			}
		}
	}
	return nil
}

// layerForm replaces the layer's number by {i}: dec.3.x → dec.{i}.x, 3.
func layerForm(std string) (string, int) {
	i := 0
	head, rest, ok := strings.Cut(std, ".")
	num, tail, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 || head != "dec" && head != "enc" {
		return std, -1
	}
	if _, err := fmt.Sscanf(num, "%d", &i); err != nil {
		return std, -1
	}
	return head + ".{i}." + tail, i
}

// A shape is what a tensor must have, and why.
type shape struct {
	dims []int
	why  string
	alt  [][]int // other legal shapes
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

// shapes gives the shape of every standard tensor of a decoder, in out_in layout.
func (m *Model) shapes() map[string]shape {
	h := m.Hyper
	q, kv := h.Heads*h.HeadDim, h.KVHeads*h.HeadDim
	heads := fmt.Sprintf("num_attention_heads %d, num_key_value_heads %d, head_dim %d, hidden_size %d", h.Heads, h.KVHeads, h.HeadDim, h.Hidden)
	ffn := fmt.Sprintf("intermediate_size %d, hidden_size %d", h.FFN, h.Hidden)
	w1 := h.FFN
	if m.packedGate() {
		w1 = 2 * h.FFN
	}
	out := map[string]shape{
		"dec.token_embeddings.weight": {dims: []int{h.Rows, h.Embed}, why: fmt.Sprintf("vocabulary %d, width %d", h.Rows, h.Embed)},
		"output.weight":               {dims: []int{h.Rows, h.Embed}, why: fmt.Sprintf("vocabulary %d, width %d", h.Rows, h.Embed)},
		"output.bias":                 {dims: []int{h.Rows}, why: fmt.Sprintf("vocabulary %d", h.Rows)},
		"input_transform.weight":      {dims: []int{h.Hidden, h.Embed}, why: "width of embeddings and hidden_size"},
		"output_transform.weight":     {dims: []int{h.Embed, h.Hidden}, why: "width of embeddings and hidden_size"},
	}
	linear := func(name string, rows, cols int, why string) {
		out["dec.{i}."+name+".weight"] = shape{dims: []int{rows, cols}, why: why}
		out["dec.{i}."+name+".bias"] = shape{dims: []int{rows}, why: why}
	}
	linear("self_attn.wq", q, h.Hidden, heads)
	linear("self_attn.wk", kv, h.Hidden, heads)
	linear("self_attn.wv", kv, h.Hidden, heads)
	linear("self_attn.qkv", q+2*kv, h.Hidden, heads)
	linear("self_attn.wo", h.Hidden, q, heads)
	linear("feed_forward.w1", w1, h.Hidden, ffn)
	linear("feed_forward.w3", h.FFN, h.Hidden, ffn)
	linear("feed_forward.w1n3", 2*h.FFN, h.Hidden, ffn)
	linear("feed_forward.w2", h.Hidden, h.FFN, ffn)
	width := fmt.Sprintf("hidden_size %d", h.Hidden)
	for _, n := range []string{"dec.{i}.self_attn.pre_norm", "dec.{i}.self_attn.post_norm", "dec.{i}.self_attn.out_norm",
		"dec.{i}.feed_forward.pre_norm", "dec.{i}.feed_forward.post_norm", "dec.{i}.feed_forward.out_norm", "dec.output_norm", "dec.input_norm"} {
		out[n+".weight"] = shape{dims: []int{h.Hidden}, why: width}
		out[n+".bias"] = shape{dims: []int{h.Hidden}, why: width}
	}
	for name, n := range map[string]int{"q_norm": h.Heads, "k_norm": h.KVHeads} {
		s := shape{dims: []int{h.HeadDim}, why: heads, alt: [][]int{{n * h.HeadDim}, {n, h.HeadDim}}}
		out["dec.{i}.self_attn."+name+".weight"] = s
		out["dec.{i}.self_attn."+name+".bias"] = s
	}
	return out
}

// transposes says whether in_out layout turns this tensor: the projections,
// not embeddings and head.
func transposes(form string) bool {
	for _, p := range []string{".self_attn.w", ".self_attn.qkv", ".feed_forward.w"} {
		if strings.Contains(form, p) {
			return true
		}
	}
	return false
}
