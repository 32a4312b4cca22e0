package spec

import (
	"fmt"
	"strings"
)

// checkStreams checks the hyper-parameters of hyper-connections.
func (s *Spec) checkStreams() error {
	n := &s.Network
	err := error(nil)
	switch x := n.Streams; {
	case x.Count == 0:
	case x.Count < 1 || x.Count > 16 || x.Iterations < 1 || x.Eps < 0:
		err = fmt.Errorf("count %d, iterations %d, eps %g; want 1 to 16, 1 or more, and 0 or more", x.Count, x.Iterations, x.Eps)
	case n.IsParallelAttn || n.MLPAttnShareInput || n.ResidualNormed || n.encodes() || len(n.MixerPattern) > 0 || n.AltUp.Streams > 0:
		err = fmt.Errorf("hyper-connections need attention in each layer, with an FFN after it and norms before both")
	}
	if err != nil {
		return errAt(s.Pos("network_structure.streams"), "network_structure.streams: %v", err)
	}
	return nil
}

// streamed writes a block between hyper-connections: it reads one sum of the streams, and
// its output is added to the mixed streams.
func (l *lowerer) streamed(x, std string, block func(x string) string) string {
	n := l.Net.Streams.Count
	w := l.splitInto(l.streamWeights(x, std), []string{"pre", "post", "comb"}, []int{n, n, n * n})
	mix := func(hint, x, w string, streams int) string {
		return l.t.op(hint, "mix_streams", []string{x, w}, attrs{}.int("streams", streams))
	}
	y := block(mix("h", x, w[0], n))
	return l.t.op("x", "add", []string{mix("res", x, w[2], n), mix("y", y, w[1], 1)}, nil)
}

// streamWeights writes the weights of a hyper-connection.
func (l *lowerer) streamWeights(x, std string) string {
	s := l.Net.Streams
	at := strings.LastIndexByte(std, '.') + 1
	name := std[at:]
	h := l.normWith("hc", "rms", x, "", "", l.Net.NormEps, 0, 1)
	h = l.linear("hc", name, std, h, nil)
	args := []string{h, l.weight(name+"_scale", std+"_scale.weight", nil), l.weight(name+"_base", std+"_base.weight", nil)}
	return l.t.op("hc", "stream_weights", args, attrs{}.int("streams", s.Count).int("iterations", s.Iterations).num("eps", s.Eps))
}

// expandStreams writes the streams of the embeddings, all equal.
func (l *lowerer) expandStreams(x string) string {
	if n := l.Net.Streams.Count; n > 1 {
		var all []string
		for range n {
			all = append(all, x)
		}
		return l.t.op("x0", "concat", all, nil)
	}
	return x
}

// collapseStreams writes the sum of the streams that the head reads.
func (l *lowerer) collapseStreams(x string) string {
	if l.Net.Streams.Count == 0 {
		return x
	}
	w := l.streamWeights(x, l.s.std+".streams_out")
	return l.t.op("last", "mix_streams", []string{x, w}, attrs{}.int("streams", l.Net.Streams.Count))
}

// streamedLayer writes a layer with hyper-connections.
func (l *lowerer) streamedLayer(x string) string {
	x = l.streamed(x, l.s.in("self_attn_streams"), func(h string) string {
		h, _ = l.norm("h", "attn_norm", l.s.in("self_attn.pre_norm"), h, l.Net.AttnPreNormBase)
		return l.mix(h)
	})
	return l.streamed(x, l.s.in("feed_forward_streams"), func(h string) string {
		m, _ := l.norm("m", "ffn_norm", l.s.in("feed_forward.pre_norm"), h, l.Net.FFNPreNormBase)
		return l.scaledFFN(m, h)
	})
}
