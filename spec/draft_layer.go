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
	d := &DraftLayer{Steps: cmp.Or(s.Draft.Tokens, defaultChain), Model: newModel(own)}
	if err := d.Model.findSizes(sizesModule, []string{"dec"}); err != nil {
		return nil, err
	}
	if err := d.findTensors(s, prefix, h); err != nil {
		return nil, err
	}
	if s.Draft.Kind == draftEagle3 {
		err = m.findEagle(d, h)
	}
	if err == nil {
		err = m.checkDraftTensors(d)
	}
	return d, err
}

// findTensors maps the stored tensors of the layer.
func (d *DraftLayer) findTensors(s *Spec, prefix string, h Headers) error {
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
		if std, ok := spelled(s.Draft.Kind, strings.TrimSuffix(rest, ".weight")); ok {
			dt, shape, _ := h.Lookup(name)
			d.Model.tensors[std] = Tensor{File: name, Pattern: name, DType: dt, Shape: shape, Pos: s.Pos("draft")}
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

// checkDraftTensors checks which tensors the layer has; the modules check their shapes.
func (m *Model) checkDraftTensors(d *DraftLayer) error {
	own := d.Model
	const embed = "dec.token_embeddings.weight"
	_, embeds := own.tensors[embed]
	if !embeds {
		own.tensors[embed] = m.tensors[embed]
	}
	if err := cmp.Or(own.findSizes(vocabularyModule, []string{"dec"}), own.checkStored()); err != nil {
		return err
	}
	if !embeds {
		delete(own.tensors, embed)
	}
	if d.Columns == 0 {
		d.Columns = m.Hyper.Vocab
	}
	return nil
}
