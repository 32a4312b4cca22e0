package spec

import (
	"maps"
	"strings"
)

// correct adjusts a model_spec.json of Inferflow by the architecture that its
// config.json names. Inferflow's format has one word for two GELU functions, and
// its sinusoids start at another position than those of the models.
func (s *Spec) correct() {
	n := &s.Network
	if s.Set("iflow") {
		return
	}
	known, ok := s.architecture()
	if own := n.word("activation_function"); strings.TrimPrefix(own, "glu_") == "gelu" {
		act := strings.TrimPrefix(known.word("activation_function"), "glu_")
		if !ok {
			act, _ = s.namedActivation()
		}
		if act == "gelu_erf" {
			n.Params["activation_function"] = own + "_erf"
		}
	}
	if ok && sines(n) && sines(&known) {
		n.Params["position_embedding"], n.Params["pos_embedding_offset"] = known.Param("position_embedding"), known.Param("pos_embedding_offset")
	}
}

func sines(n *Network) bool { return strings.HasPrefix(n.word("position_embedding"), "sinusoidal") }

// namedActivation returns the activation function that config.json names.
func (s *Spec) namedActivation() (string, bool) {
	v, err := evalExpr("act($hidden_activation | $hidden_act | $activation_function | $activation)", s.Config)
	act, ok := v.(string)
	return act, err == nil && ok
}

// architecture returns the modules of the family of the architecture that
// config.json names. It reports false if there is no such family.
func (s *Spec) architecture() (Network, bool) {
	n := newNetwork(nil)
	arch, _ := s.Config["model_type"].(string)
	f, ok := findFamily(arch)
	if !ok || arch == "" {
		return n, false
	}
	n.lib = f.modules()
	_, err := f.apply(maps.Clone(s.configFile), &n)
	return n, err == nil
}
