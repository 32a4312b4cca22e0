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
	stacks := m.Net.stacks()
	std := stacks[len(stacks)-1]
	if slices.Contains(stacks, at.std) {
		std = at.std
	}
	maps.Copy(out, m.sizes[std])
	out["inferflow"] = !m.Spec.Set("iflow")
	out["encodes"], out["decodes"], out["causal"] = m.Net.encodes(), m.Net.decodes(), std == "dec"
	out["crosses"] = std == "dec" && m.Net.encodes()
	l.addDrafts(at.draft, out)
	return out
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
