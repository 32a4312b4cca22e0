package spec

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A site is where the instance of a path is: dec.3.self_attn.wq is part self_attn.wq of layer
// 3 of the decoder.
type site struct {
	draft  bool   // in the draft layer, a model of its own
	std    string // stack: enc or dec; "" outside of both
	layer  int    // -1: in no layer
	second bool   // in the second part of the layer
	rest   string
}

// secondPart is the first part of the names of the tensors that the second part of a layer
// has.
const secondPart = "second."

// siteOf returns the site of a path or of a standard name.
func siteOf(path string) site {
	p := site{layer: -1}
	path, p.draft = strings.CutPrefix(path+".", joinedDraft)
	path = strings.TrimSuffix(path, ".")
	if head, rest, _ := strings.Cut(path, "."); head == "enc" || head == "dec" {
		p.std, path = head, rest
		number, rest, _ := strings.Cut(path, ".")
		if i, err := strconv.Atoi(number); err == nil {
			p.layer, path = i, rest
		}
	}
	path, p.second = strings.CutPrefix(path+".", secondPart)
	p.rest = strings.TrimSuffix(path, ".")
	return p
}

// prefix is the beginning of the names in the IR that the site's weights and states have
// beside those of the model.
func (p *site) prefix() string {
	switch {
	case p.draft:
		return "draft_"
	case p.second:
		return "second_"
	}
	return ""
}

// paramsOf returns what the keys of network_structure and the sizes of a stack set, by the
// names of keys with dots between those of sections.
func (l *lowerer) paramsOf(at site) map[string]any {
	if out, ok := l.params[at]; ok {
		return out
	}
	m, out := l.of(at), map[string]any{}
	l.params[at] = out
	maps.Copy(out, m.Net.Params)
	stacks := m.stacks()
	s := &stacks[len(stacks)-1]
	if i := slices.IndexFunc(stacks, func(s stack) bool { return s.std == at.std }); i >= 0 {
		s = &stacks[i]
	}
	m.addSizes(s, out)
	out["inferflow"] = !m.Spec.Set("iflow")
	out["encodes"], out["decodes"], out["causal"] = m.Net.encodes(), m.Net.decodes(), s.std == "dec"
	out["crosses"] = s.std == "dec" && m.Net.encodes()
	out["rope_divisors"], out["rope_short_divisors"], out["rope_long_divisors"] = plain(m.ropeFactors), plain(m.ropeLongFactors[0]), plain(m.ropeLongFactors[1])
	l.addDrafts(at.draft, out)
	return out
}

// hyperKeys are the hyper-parameters that sizes of stacks come from.
var hyperKeys = map[string][]string{
	"hidden": {"hidden_size"}, "layers": {"num_hidden_layers"}, "heads": {"num_attention_heads"}, "kv_heads": {"num_key_value_heads", "num_attention_heads"},
	"head_dim": {"head_dim"}, "ffn": {"intermediate_size"}, "vocab": {"vocab_size"}, "vocab_rows": {"vocab_size"},
}

// addSizes adds the sizes of a stack. A size that network_structure gives by layer is a list.
func (m *Model) addSizes(s *stack, out map[string]any) {
	h, n := s.hyper, m.Net
	for name, size := range map[string]int{
		"hidden": h.Hidden, "width": m.Hyper.Embed, "layers": h.Layers, "heads": h.Heads, "kv_heads": h.KVHeads, "head_dim": h.HeadDim, "v_dim": h.VDim,
		"ffn": h.FFN, "vocab": m.Hyper.Vocab, "vocab_rows": m.Hyper.Rows, "max_context": m.Hyper.MaxContext,
	} {
		out[name] = size
	}
	if s.std != "dec" {
		return
	}
	for name, key := range map[string]string{"kv_heads": "kv_heads", "head_dim": "head_dims", "v_dim": "head_dims", "ffn": "ffn_sizes"} {
		if list, _ := n.Params[key].([]int); len(list) > 0 {
			out[name] = list
		}
	}
}

// addDrafts adds what the model's draft layer or Medusa heads set.
func (l *lowerer) addDrafts(inDraft bool, out map[string]any) {
	if d := l.Draft; d != nil && inDraft {
		out["features_width"], out["columns"], out["taps"], out["norm_before_residual"] = l.Hyper.Hidden, d.Columns, d.Taps, d.NormFirst
		if d.Taps != nil {
			out["features_width"] = d.Model.Hyper.Hidden
		}
	} else if d != nil {
		if out["draft_kind"] = draftMTP; d.Taps != nil {
			out["draft_kind"] = draftEagle3
		}
	}
	if d := l.Medusa; d != nil {
		if out["medusa_kind"] = "heads"; d.Chained {
			out["medusa_kind"] = "chain"
		}
		out["medusa.heads"], out["medusa.blocks"], out["medusa.columns"] = d.Heads, d.Layers, d.Columns
		switch {
		case d.Projected:
			out["medusa.output"] = "projected"
		case d.Shared:
			out["medusa.output"] = "shared"
		default:
			out["medusa.output"] = "own"
		}
	}
}
