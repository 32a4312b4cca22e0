package spec

// GrowsBeyondContext reports whether rope adapts to sequences of any length, so
// that max_position_embeddings does not limit them.
func (m *Model) GrowsBeyondContext() bool {
	n := m.Net
	kind := n.word("rope_scaling.rope_type")
	if kind == "" {
		kind = canonicalWord(n.word("rope_scaling.type"))
	}
	return n.word("position_embedding") == "rope" && kind == "dynamic" && n.Params["rope_scaling.alpha"] == nil
}
