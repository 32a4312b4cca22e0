package spec

// defaultChain is the default maximum number of tokens that an autoregressive
// draft head (Hydra) drafts in a row.
const defaultChain = 6

// isChained reports whether the checkpoint contains an autoregressive draft head.
// Its first matrix reads a state and the embedding of the next token.
func (d *MedusaHeads) isChained(h Headers) bool {
	_, _, ok := h.Lookup(d.enter() + ".weight")
	return ok
}

func (d *MedusaHeads) enter() string { return d.prefix + "0.in" }

// sharedHeadName returns the name of the output matrix that all heads of a checkpoint share.
func (d *MedusaHeads) sharedHeadName() string { return d.prefix + "head.weight" }

// findChain finds out what there is of an autoregressive draft head:
// {prefix}0.in.weight [H, 2H] and .bias, the residual blocks, 0.{layers}.weight
// [H, H], and optionally head.weight. The rows of head.weight belong to the
// tokens that config.json lists.
func (m *Model) findChain(h Headers) error {
	s, d := m.Spec, m.Medusa
	at := s.Pos("medusa")
	if _, _, second := h.Lookup(d.block(1, 0) + ".weight"); second {
		return errAt(at, "medusa: the checkpoint has 0.in.weight and a second head; an autoregressive draft head must be the only one")
	}
	if s.Medusa.Choices != nil {
		return errAt(s.Pos("medusa.choices"), "medusa.choices: an autoregressive draft head drafts a chain; a tree needs heads without 0.in.weight")
	}
	d.Chained, d.Projected, d.Shared, d.Heads = true, true, true, defaultChain
	if s.Medusa.Heads > 0 {
		d.Heads = s.Medusa.Heads
	}
	config := s.medusaConfig()
	d.Accuracy = config.accuracy(min(d.Heads, len(config.Accuracy)))
	_, shape, own := h.Lookup(d.sharedHeadName())
	if !own {
		return m.sizeMedusa()
	}
	return m.findTokens(config.Tokens, shape)
}

// findTokens checks the output matrix of the checkpoint and the tokens of its rows.
func (m *Model) findTokens(tokens []int32, shape []int) error {
	s, d := m.Spec, m.Medusa
	at := s.Pos("medusa")
	if s.Medusa.Vocab > 0 {
		return errAt(s.Pos("medusa.vocab"), "medusa.vocab: the checkpoint has a matrix head.weight, whose tokens are fixed; leave it out")
	}
	if len(shape) != 2 || len(tokens) != shape[0] || len(tokens)%16 != 0 {
		return errAt(at, "medusa: head.weight has shape %v, but its config.json lists %d medusa_tokens; want one per row, a multiple of 16", shape, len(tokens))
	}
	seen := make([]bool, m.Hyper.Vocab)
	for i, id := range tokens {
		if id < 0 || int(id) >= len(seen) || seen[id] {
			return errAt(at, "medusa: medusa_tokens[%d] of config.json is %d; want distinct tokens below %d", i, id, len(seen))
		}
		seen[id] = true
	}
	d.Columns, d.Tokens, d.common = len(tokens), tokens, true
	return nil
}
