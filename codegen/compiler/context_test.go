package compiler

import (
	"testing"

	"github.com/iflowc/iflowc/spec"
)

// TestContextOf: the context is the model's own maximum, but of encoders, which compute a
// text in one step, at most 8,192 tokens.
func TestContextOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		topology  string
		own, said int
		grows     bool
		want      int
		planned   int
	}{
		{"decoder_only", 131072, 0, false, 131072, 8192}, {"decoder_only", 512, 0, false, 512, 512}, {"decoder_only", 0, 0, false, 1024, 1024},
		{"decoder_only", 131072, 32768, false, 32768, 32768}, {"decoder_only", 2048, 0, true, 8192, 8192}, {"decoder_only", 16384, 0, true, 16384, 8192},
		{"encoder_only", 131072, 0, false, 8192, 8192}, {"encoder_decoder", 16384, 0, false, 8192, 8192}, {"encoder_only", 512, 0, false, 512, 512},
	} {
		net := &spec.Network{Type: c.topology}
		m := &spec.Model{Spec: &spec.Spec{MaxContextLen: c.said}, Net: net, Hyper: spec.Hyper{MaxContext: c.own, Grows: c.grows}}
		if got := contextOf(m); got != c.want {
			t.Errorf("%+v: context %d", c, got)
		}
		if got := (&Model{Model: m, Context: c.want}).planned(); got != c.planned {
			t.Errorf("%+v: planned %d", c, got)
		}
	}
}
