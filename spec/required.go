package spec

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// checkRequired checks, layer by layer, that the files contain every tensor that
// this network structure requires.
func (m *Model) checkRequired(unused []string) error {
	for _, s := range m.stacks() {
		for i := range s.hyper.Layers {
			names := append(m.requiredMixer(&s, i), m.requiredFFN(&s, i)...)
			if names = append(names, m.requiredNorms(&s, i)...); m.Net.LayerParts == 2 {
				second := s
				second.part = secondPart
				names = append(append(append(names, m.requiredMixer(&second, i)...), m.requiredFFN(&second, i)...), m.requiredNorms(&second, i)...)
			}
			if err := m.demand(names, unused); err != nil {
				return err
			}
		}
		var out []string
		if m.Net.NormParameters && !m.has(s.in("feed_forward.post_norm.weight")) {
			out = append(out, s.std+".output_norm.weight")
		}
		if m.Net.convolves(&s, 0) {
			out = append(out, convolution+".weight", convolutionNorm+".weight")
		}
		if m.Net.PositionEmbedding == "relative_bias" {
			out = append(out, layerName(s.in("self_attn.relative_bias.weight"), 0))
		}
		if err := m.demand(out, unused); err != nil {
			return err
		}
	}
	return nil
}

// demand returns an error for the first name that the files do not contain.
func (m *Model) demand(names, unused []string) error {
	for _, std := range names {
		if _, ok := m.tensors[std]; !ok {
			return m.missing(std, unused)
		}
	}
	return nil
}

// hasAt reports whether a layer has the tensor.
func (m *Model) hasAt(std string, layer int) bool {
	_, ok := m.tensors[layerName(std, layer)]
	return ok
}

// requiredMixer returns the tensors that the token mixers of a layer need.
func (m *Model) requiredMixer(s *stack, i int) []string {
	if s.std != "dec" {
		return m.requiredAttention(s, i)
	}
	out := m.requiredMixers(i)
	if m.Net.attends(i) {
		out = append(out, m.requiredAttention(s, i)...)
	}
	return out
}

func (m *Model) requiredAttention(s *stack, i int) []string {
	l := layerName(s.in(""), i)
	out := []string{l + "self_attn.wo.weight"}
	switch {
	case m.Net.SharedKV:
		return m.requiredSharedKV(l+"self_attn.", i)
	case m.Net.LatentAttention:
		out = append(out, l+"self_attn.wkv_a.weight", l+"self_attn.kv_a_norm.weight")
		if m.hasAt(s.in("self_attn.wk_b.weight"), i) {
			out = append(out, l+"self_attn.wv_b.weight")
		} else {
			out = append(out, l+"self_attn.wkv_b.weight")
		}
		if m.hasAt(s.in("self_attn.wq_a.weight"), i) {
			out = append(out, l+"self_attn.q_a_norm.weight", l+"self_attn.wq_b.weight")
		} else {
			out = append(out, l+"self_attn.wq.weight")
		}
		if m.Net.indexes(i) {
			out = append(out, l+"self_attn.wq_a.weight")
			for _, name := range indexerTensors {
				out = append(out, l+"self_attn."+name)
			}
		}
	case m.hasAt(s.in("self_attn.qkv.weight"), i):
		out = append(out, l+"self_attn.qkv.weight")
	default:
		out = append(out, l+"self_attn.wq.weight")
		if keys := m.Net.keysAt(i); s.std != "dec" || keys == "own" {
			out = append(out, l+"self_attn.wk.weight", l+"self_attn.wv.weight")
		} else if keys == "key" {
			out = append(out, l+"self_attn.wk.weight")
		}
	}
	if s.std == "dec" && m.Net.encodes() {
		for _, w := range []string{"wq", "wk", "wv", "wo"} {
			out = append(out, l+"cross_attn."+w+".weight")
		}
	}
	if m.Net.Differential {
		for _, name := range []string{"q1", "k1", "q2", "k2"} {
			out = append(out, l+"self_attn.lambda_"+name+".weight")
		}
	}
	if m.Net.AttentionSinks {
		out = append(out, l+"self_attn.sinks.weight")
	}
	if m.Net.AttnGate == "own" {
		out = append(out, l+"self_attn.wg.weight")
	}
	return out
}

func (m *Model) requiredFFN(s *stack, i int) []string {
	l := layerName(s.in(""), i)
	if m.ffnOf(i) == "none" {
		return nil
	}
	var out []string
	if m.hasDense(i) {
		w1 := "feed_forward.w1.weight"
		for _, packed := range []string{"feed_forward.w1n3.weight", "feed_forward.w3n1.weight"} {
			if _, ok := m.tensors[l+packed]; ok {
				w1 = packed
			}
		}
		out = []string{l + w1, l + "feed_forward.w2.weight"}
		if m.Net.ActivationFunction == "xielu" {
			out = append(out, l+"feed_forward.act_p.weight", l+"feed_forward.act_n.weight")
		}
	}
	if !m.hasExperts(i) || s.part != "" {
		return out
	}
	out = append(out, l+"moe.gate.weight")
	if m.Net.HasSharedExpert {
		w1 := l + "moe.shared_expert.w1n3.weight"
		if _, packed := m.tensors[w1]; !packed {
			w1 = l + "moe.shared_expert.w1.weight"
		}
		out = append(out, w1, l+"moe.shared_expert.w2.weight")
	}
	if _, stacked := m.tensors[l+"moe.experts.w2.weight"]; stacked {
		return out
	}
	for j := range m.usedExperts() {
		e := fmt.Sprintf("%smoe.expert.%d.", l, j)
		out = append(out, e+"w1.weight", e+"w2.weight")
	}
	return out
}

// usedExperts returns the number of experts that a layer routes over.
func (m *Model) usedExperts() int {
	if n := m.Net.UsingExpertCount; n > 0 {
		return n
	}
	return m.Net.ExpertCount
}

func (m *Model) requiredNorms(s *stack, i int) []string {
	if !m.Net.NormParameters {
		return nil
	}
	l := layerName(s.in(""), i)
	has := func(name string) bool {
		_, ok := m.tensors[l+name+".weight"]
		return ok
	}
	var out []string
	if s.std == "dec" && len(m.Net.mixers(i)) > 0 && !has("self_attn.post_norm") && !has("self_attn.out_norm") && !m.missingForm(s, s.in("self_attn.pre_norm.weight"), i) {
		out = append(out, l+"self_attn.pre_norm.weight")
	}
	single := s.std == "dec" && (len(m.Net.mixers(i)) == 0 || m.ffnOf(i) == "none") // the layer's only norm may have either name
	if single {
		if !has("self_attn.pre_norm") && !has("feed_forward.pre_norm") {
			out = append(out, l+"self_attn.pre_norm.weight")
		}
		return out
	}
	if !has("feed_forward.post_norm") && !has("feed_forward.out_norm") && !m.Net.IsParallelAttn && !has("self_attn.post_norm") {
		out = append(out, l+"feed_forward.pre_norm.weight")
	}
	if s.std == "dec" && m.Net.encodes() && !has("cross_attn.post_norm") {
		out = append(out, l+"cross_attn.pre_norm.weight")
	}
	return out
}

// checkLayersAlike checks that the layers have the same tensors, except for
// differences that the model spec states. It also checks that the files have no
// more layers than the hyper-parameters state.
func (m *Model) checkLayersAlike(unused []string) error {
	stacks := map[string]*stack{}
	for _, s := range m.stacks() {
		stacks[s.std] = &s
	}
	seen := map[string]bool{}
	for _, std := range m.Tensors() {
		form, i := layerForm(std)
		if i < 0 {
			continue
		}
		t := m.tensors[std]
		s := stacks[form[:3]]
		if s == nil {
			return errAt(m.at(t), "tensor %q maps to %s, but network_structure.type is %s", t.File, std, m.Net.Type)
		}
		if i >= s.hyper.Layers {
			name := "num_hidden_layers"
			if s.std == "enc" && m.Net.decodes() {
				name = "encoder_layers"
			}
			return errAt(m.at(t), "tensor %q belongs to layer %d, but %s is %d", t.File, i, name, s.hyper.Layers)
		}
		if m.missingForm(s, form, i) {
			return errAt(m.at(t), "tensor %q maps to %s, but layer %d has no such module by network_structure (moe_layer_start, moe_layer_step, …)", t.File, std, i)
		}
		seen[form] = true
	}
	var forms []string
	for form := range seen {
		forms = append(forms, form)
	}
	sort.Strings(forms)
	for _, form := range forms {
		s := stacks[form[:3]]
		for i := range s.hyper.Layers {
			if _, ok := m.tensors[layerName(form, i)]; !ok && !m.missingForm(s, form, i) {
				return m.missing(layerName(form, i), unused)
			}
		}
	}
	return nil
}

// layerForm replaces the layer index by {i}: dec.3.x → dec.{i}.x, 3.
func layerForm(std string) (string, int) {
	inner, draft := strings.CutPrefix(std, joinedDraft)
	head, rest, ok := strings.Cut(inner, ".")
	num, tail, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 || head != "dec" && head != "enc" {
		return std, -1
	}
	i, err := strconv.Atoi(num)
	if err != nil {
		return std, -1
	}
	form := head + ".{i}." + tail
	if draft {
		form = joinedDraft + form
	}
	return form, i
}
