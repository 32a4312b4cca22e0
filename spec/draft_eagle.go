package spec

import (
	"slices"
)

// findEagle reads what is special about an EAGLE-3 head: the layers of the model that it
// reads, the tokens that it proposes, and its attention, whose input is an embedding and
// a state side by side.
func (m *Model) findEagle(d *DraftLayer, h Headers) error {
	s, own := m.Spec, d.Model
	at := s.Pos("draft.file")
	if own.Hyper.Layers != 1 {
		return errAt(at, "draft.file: num_hidden_layers of the head is %d, want 1", own.Hyper.Layers)
	}
	d.NormFirst = own.Spec.Config["norm_before_residual"] == true
	var err error
	if d.Taps, err = m.taps(own.Spec.Config); err != nil {
		return err
	}
	for _, key := range []string{"norm_before_fc", "fc_norm"} {
		if v := own.Spec.Config[key]; v != nil && v != false {
			return errAt(at, "draft.file: %s: have %v, want false or none", key, v)
		}
	}
	if head, ok := own.tensors["draft.head.weight"]; ok && len(head.Shape) == 2 {
		d.Columns = head.Shape[0]
	}
	return m.findDraftTokens(d, h)
}

// taps returns the layers whose inputs an EAGLE-3 head reads. Lists of the speculators
// library name these layers; those of ModelOpt, in eagle_config, the layers before them.
func (m *Model) taps(config map[string]any) ([]int, error) {
	s, n := m.Spec, m.Hyper.Layers
	list := s.Draft.Layers
	at := s.Pos("draft.layers")
	if list == nil {
		nested, _ := config["eagle_config"].(map[string]any)
		for i, c := range []map[string]any{config, nested} {
			ids, _ := c["eagle_aux_hidden_state_layer_ids"].([]any)
			for _, id := range ids {
				x, ok := number(id)
				if !ok {
					return nil, errAt(at, "eagle_aux_hidden_state_layer_ids: have %v, want numbers of layers", ids)
				}
				list = append(list, int(x)+i)
			}
			if list != nil {
				break
			}
		}
	}
	if list == nil {
		list = []int{2, n / 2, n - 3}
	}
	list = slices.Clone(list)
	slices.Sort(list)
	if len(list) == 0 || list[0] < 0 || list[len(list)-1] > n {
		return nil, errAt(at, "draft.layers: have %v; want layers from 0 to %d", list, n)
	}
	return list, nil
}

// findDraftTokens reads d2t, which holds the distance from each column to its token.
func (m *Model) findDraftTokens(d *DraftLayer, h Headers) error {
	at := m.Spec.Pos("draft.file")
	for _, name := range []string{joinedDraft + "d2t", joinedDraft + "model.d2t"} {
		_, shape, ok := h.Lookup(name)
		values, readable := h.(Values)
		if !ok || !readable {
			continue
		}
		if len(shape) != 1 || shape[0] != d.Columns {
			return errAt(at, "draft.file: d2t has shape %v, want one number for each of %d columns", shape, d.Columns)
		}
		far, err := values.Float32(name)
		if err != nil {
			return err
		}
		seen := make([]bool, m.Hyper.Vocab)
		d.Tokens = make([]int32, len(far))
		for i, x := range far {
			id := i + int(x)
			if id < 0 || id >= len(seen) || seen[id] {
				return errAt(at, "draft.file: d2t gives token %d for column %d; want distinct tokens below %d", id, i, len(seen))
			}
			seen[id], d.Tokens[i] = true, int32(id)
		}
		return nil
	}
	if d.Columns != 0 && d.Columns != m.Hyper.Vocab {
		return errAt(at, "draft.file: the head has %d columns and no d2t; want one for each of %d tokens", d.Columns, m.Hyper.Vocab)
	}
	return nil
}
