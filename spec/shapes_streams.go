package spec

import "fmt"

// streamShapes adds the shapes of what layers have beside a token mixer and an FFN:
// embeddings of their own, alternating updates, low-rank residuals, and norms around
// experts.
func (m *Model) streamShapes(s *stack, out map[string]shape) {
	n, h := m.Net, s.hyper
	add := func(name, why string, dims ...int) { out[s.in(name)] = shape{dims: dims, why: why} }
	width := fmt.Sprintf("hidden_size %d", h.Hidden)
	for _, name := range []string{"feed_forward.dense_out_norm", "moe.pre_norm", "moe.out_norm", "moe.gate_norm", "per_layer.out_norm", "laurel.norm", "altup.router_norm", "altup.out_scale"} {
		add(name+".weight", width, h.Hidden)
	}
	add("moe.expert_scale.weight", fmt.Sprintf("expert_count %d", n.ExpertCount), n.ExpertCount)
	add("out_scale.weight", "one number per layer", 1)
	size := fmt.Sprintf("per_layer_embeddings.size %d, hidden_size %d", n.PerLayer.Size, h.Hidden)
	add("per_layer.gate.weight", size, n.PerLayer.Size, h.Hidden)
	add("per_layer.out.weight", size, h.Hidden, n.PerLayer.Size)
	rank := m.storedRows(layerName(s.in("laurel.a.weight"), 0))
	add("laurel.a.weight", width, rank, h.Hidden)
	add("laurel.b.weight", width, h.Hidden, rank)
	streams := fmt.Sprintf("altup.streams %d, hidden_size %d", n.AltUp.Streams, h.Hidden)
	add("altup.router.weight", streams, n.AltUp.Streams, h.Hidden)
	add("altup.predict.weight", streams, n.AltUp.Streams*n.AltUp.Streams, n.AltUp.Streams)
	add("altup.correct.weight", streams, n.AltUp.Streams, n.AltUp.Streams)
}

// sharedStreamShapes adds the shapes of the tables and matrices in front of and behind the
// layers that per-layer embeddings and residual streams need.
func (m *Model) sharedStreamShapes(out map[string]shape) {
	n, h := m.Net, m.Hyper
	all := n.PerLayer.Size * h.Layers
	why := fmt.Sprintf("per_layer_embeddings.size %d in %d layers, hidden_size %d", n.PerLayer.Size, h.Layers, h.Hidden)
	out["dec.per_layer.embeddings.weight"] = shape{dims: []int{m.storedRows("dec.per_layer.embeddings.weight"), all}, why: why}
	out["dec.per_layer.proj.weight"] = shape{dims: []int{all, h.Hidden}, why: why}
	out["dec.per_layer.norm.weight"] = shape{dims: []int{n.PerLayer.Size}, why: why}
	for _, part := range []string{"in", "out"} {
		out["dec.altup."+part+".weight"] = shape{dims: []int{n.AltUp.Streams - 1, h.Hidden, h.Hidden}, why: fmt.Sprintf("altup.streams %d, hidden_size %d", n.AltUp.Streams, h.Hidden)}
		for j := range n.AltUp.Streams - 1 {
			out[fmt.Sprintf("dec.altup.%s.%d.weight", part, j)] = shape{dims: []int{h.Hidden, h.Hidden}, why: fmt.Sprintf("hidden_size %d", h.Hidden)}
		}
	}
}
