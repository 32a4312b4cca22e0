package spec

import (
	"fmt"
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
