package spec

// available names the first module value of the specification that cannot be
// lowered; Resolve asks before it looks at tensors.
func (s *Spec) available() error {
	n := &s.Network
	no := func(key, value string) error {
		return errAt(s.Pos("network_structure."+key), "network_structure.%s: %s is not available", key, value)
	}
	switch {
	case n.Topology() != "decoder_only":
		return no("type", n.Type)
	case n.ExpertCount > 0:
		return no("expert_count", "a mixture of experts")
	case n.NormalizationFunction == "linear":
		return no("normalization_function", "linear")
	case n.PositionEmbedding == "sinusoidal", n.PositionEmbedding == "sinusoidal2", n.PositionEmbedding == "relative_bias":
		return no("position_embedding", n.PositionEmbedding)
	case n.LatentAttention:
		return no("latent_attention", "multi-head latent attention")
	case n.TransformQK:
		return no("transform_qk", "true")
	}
	return nil
}
