package spec

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// A DraftLayer describes the draft layer of a model.
type DraftLayer struct {
	Model     *Model  // the layer as a decoder of one layer, with the draft.* tensors below; without embeddings and head if it uses the model's
	Steps     int     // maximum number of tokens drafted in a row
	Columns   int     // number of candidate tokens
	Tokens    []int32 // token id of each column; nil: the column's index
	Taps      []int   // EAGLE-3: layers whose inputs it reads, in ascending order
	NormFirst bool    // EAGLE-3: the residual is the normed state, not the state
}

// Standard names of the tensors that a draft layer has besides those of a decoder of one
// layer.
const (
	draftIn         = "draft.in.weight"         // from the embedding and the state, or from the tapped states
	draftEmbedNorm  = "draft.embed_norm.weight" // of the embedding
	draftHiddenNorm = "draft.hidden_norm.weight"
	draftHead       = "draft.head.weight"
)

// draftParts maps the last parts of stored names to standard names. Others belong to the
// decoder layer.
var draftParts = map[string]map[string]string{
	draftMTP: {
		"enorm": draftEmbedNorm, "hnorm": draftHiddenNorm, "eh_proj": draftIn, "shared_head.norm": "dec.output_norm.weight", "shared_head.head": draftHead, "embed_tokens": "dec.token_embeddings.weight",
		"nextn.enorm": draftEmbedNorm, "nextn.hnorm": draftHiddenNorm, "nextn.eh_proj": draftIn, "nextn.shared_head_norm": "dec.output_norm.weight", "nextn.shared_head_head": draftHead, "nextn.embed_tokens": "dec.token_embeddings.weight",
		"pre_fc_norm_embedding": draftEmbedNorm, "pre_fc_norm_hidden": draftHiddenNorm, "fc": draftIn, "norm": "dec.output_norm.weight",
	},
	draftEagle3: {
		"midlayer.input_layernorm": draftEmbedNorm, "layers.0.input_layernorm": draftEmbedNorm,
		"midlayer.hidden_norm": "dec.0.self_attn.pre_norm.weight", "layers.0.hidden_norm": "dec.0.self_attn.pre_norm.weight",
		"fc": draftIn, "norm": "dec.output_norm.weight", "lm_head": draftHead, "embed_tokens": "dec.token_embeddings.weight",
	},
}

// draftPrefix returns the prefix of the stored names of the layer for multi-token
// prediction: model.layers.N. (DeepSeek-V3, GLM-4.5), blk.N. (GGUF) or mtp. (Qwen3-Next).
// It is "" if there is none, or if the model spec does not ask for it.
func (m *Model) draftPrefix(names []string) string {
	if m.Spec.Draft.Kind != draftMTP {
		return ""
	}
	for _, name := range names {
		p, last := strings.CutSuffix(name, "mtp.fc.weight")
		if last && (p == "" || strings.HasSuffix(p, ".")) {
			return p + "mtp."
		}
		for _, layer := range []string{"layers", "blk"} {
			at := fmt.Sprintf("%s.%d.", layer, m.Hyper.Layers)
			p, last := strings.CutSuffix(strings.TrimSuffix(name, "eh_proj.weight"), "nextn.")
			if (last || strings.HasSuffix(name, "eh_proj.weight")) && (p == at || strings.HasSuffix(p, "."+at)) {
				return p
			}
		}
	}
	return ""
}

// draftTensors are the headers of the draft layer alone, with the names of a decoder of
// one layer.
type draftTensors struct {
	Headers
	stored map[string]string // name of the decoder → stored name
}

func (t draftTensors) Lookup(name string) (tensor.DType, []int, bool) {
	return t.Headers.Lookup(t.stored[name])
}

func (t draftTensors) Names() []string {
	return slices.Collect(maps.Keys(t.stored))
}

// lastNumber matches the layer in a prefix.
var lastNumber = regexp.MustCompile(`\.([0-9]+)\.$`)

// findDraft finds the draft layer that the model spec asks for and checks its tensors.
func (m *Model) findDraft(h Headers) (*DraftLayer, error) {
	s := m.Spec
	if !s.drafts() {
		return nil, nil
	}
	at := s.Pos("draft")
	if m.Net.encodes() || s.Graph != "" {
		return nil, errAt(at, "draft: a draft layer needs a decoder-only model with network_structure; have %s", m.Net.Topology())
	}
	prefix := joinedDraft
	if s.Draft.Kind == draftMTP {
		if prefix = m.draftPrefix(h.Names()); prefix == "" {
			return nil, errAt(at, "draft: the files have no layer for multi-token prediction: no tensor model.layers.%d.eh_proj.weight, and no mtp.fc.weight", m.Hyper.Layers)
		}
	}
	own, err := s.draftSpec()
	if err != nil {
		return nil, err
	}
	hyper, err := own.hyperparameters()
	if err != nil {
		return nil, err
	}
	d := &DraftLayer{Steps: cmp.Or(s.Draft.Tokens, defaultChain), Model: &Model{Spec: own, Net: &own.Network, Hyper: hyper, tensors: map[string]Tensor{}}}
	if err := d.findTensors(s.Draft.Kind, prefix, h); err != nil {
		return nil, err
	}
	if s.Draft.Kind == draftEagle3 {
		err = m.findEagle(d, h)
	}
	if err == nil {
		err = m.checkDraftTensors(d, s.Draft.Kind)
	}
	return d, err
}

// findTensors maps the stored tensors of the layer.
func (d *DraftLayer) findTensors(kind, prefix string, h Headers) error {
	layer, seen := "model.layers.0.", draftTensors{h, map[string]string{}}
	if d.Model.Spec.ModelFileFormat == "gguf" {
		layer = "blk.0."
	}
	inner := prefix
	for _, name := range h.Names() {
		rest, ours := strings.CutPrefix(name, prefix)
		if !ours {
			continue
		}
		rest = strings.TrimPrefix(rest, "model.")
		if std := draftParts[kind][strings.TrimSuffix(rest, ".weight")]; std != "" {
			dt, shape, _ := h.Lookup(name)
			d.Model.tensors[std] = Tensor{File: name, Pattern: name, DType: dt, Shape: shape}
			continue
		}
		for _, p := range []string{"layers.0.", "midlayer."} {
			if after, in := strings.CutPrefix(rest, p); in {
				inner, rest = strings.TrimSuffix(name, after), after
			}
		}
		if rest != "d2t" && rest != "t2d" {
			seen.stored[layer+rest] = name
		}
	}
	parts := d.Model.tensors
	d.Model.tensors = map[string]Tensor{}
	if err := d.Model.mapNames(seen); err != nil {
		return err
	}
	for std, t := range d.Model.tensors {
		rest := strings.NewReplacer("model.layers.{i}.", "", "blk.{i}.", "", "layers.{i}.", "").Replace(t.Pattern)
		if t.File, t.Pattern = seen.stored[t.File], inner+rest; strings.Contains(rest, "{j}") { // experts are the second index
			t.Pattern = lastNumber.ReplaceAllString(inner, ".{i+$1}.") + rest
		}
		d.Model.tensors[std] = t
	}
	maps.Copy(d.Model.tensors, parts)
	if unused := d.Model.unmatched; len(unused) > 0 {
		return errAt(Pos{File: d.Model.Spec.File}, "draft: tensor %q: no module of the draft layer uses it", seen.stored[unused[0]])
	}
	return nil
}

// checkDraftTensors checks the layer's tensors against its own sizes and those of the model.
func (m *Model) checkDraftTensors(d *DraftLayer, kind string) error {
	own, at := d.Model, m.Spec.Pos("draft")
	const embed = "dec.token_embeddings.weight"
	_, embeds := own.tensors[embed]
	if !embeds {
		own.tensors[embed] = m.tensors[embed]
	}
	if err := cmp.Or(own.inferSizes(), own.checkStored()); err != nil {
		return err
	}
	if !embeds {
		delete(own.tensors, embed)
	}
	hidden, width := own.Hyper.Hidden, m.Hyper.Hidden
	in := []int{hidden, 2 * width}
	if kind == draftEagle3 {
		in[1] = len(d.Taps) * width
	}
	if d.Columns == 0 {
		d.Columns = m.Hyper.Vocab
	}
	rows := d.Columns
	if kind == draftMTP {
		rows = m.Hyper.Rows
	}
	for _, c := range []struct {
		std  string
		want []int
		must bool
	}{
		{draftIn, in, true}, {draftEmbedNorm, []int{hidden}, true}, {draftHiddenNorm, []int{width}, kind == draftMTP}, {draftHead, []int{rows, hidden}, false},
	} {
		t, have := own.tensors[c.std]
		if have && !slices.Equal(t.Shape, c.want) || !have && c.must {
			return errAt(at, "draft: tensor %s %q: have shape %v, want %v; does the draft layer belong to this model?", c.std, t.File, t.Shape, c.want)
		}
	}
	if _, head := own.tensors[draftHead]; !head && (hidden != width || d.Tokens != nil) {
		return errAt(at, "draft: no output matrix, and the model's does not fit")
	}
	if e := m.tensors[embed]; !embeds && (len(e.Shape) != 2 || e.Shape[1] != hidden) {
		return errAt(at, "draft: the files of the draft layer have no embeddings, and those of the model have shape %v; want %d columns", e.Shape, hidden)
	}
	if e := own.tensors[embed]; embeds && e.Shape[0] < m.Hyper.Vocab {
		return errAt(at, "draft: tensor %q has %d rows, want one for each of %d tokens", e.File, e.Shape[0], m.Hyper.Vocab)
	}
	return nil
}
