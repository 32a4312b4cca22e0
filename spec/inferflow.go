package spec

import (
	"maps"
	"strings"
)

// correct mends what a model_spec.json says by what the architecture in its
// config.json is known to be: the language has one gelu for two functions, and
// its sines do not start where the models' do.
func (s *Spec) correct() {
	n := &s.Network
	if s.Set("iflow") {
		return
	}
	known, ok := s.architecture()
	if strings.TrimPrefix(n.ActivationFunction, "glu_") == "gelu" {
		act := strings.TrimPrefix(known.ActivationFunction, "glu_")
		if !ok {
			act, _ = s.namedActivation()
		}
		if act == "gelu_erf" {
			n.ActivationFunction += "_erf"
		}
	}
	if ok && sines(n) && sines(&known) {
		n.PositionEmbedding, n.PosEmbeddingOffset = known.PositionEmbedding, known.PosEmbeddingOffset
	}
}

func sines(n *Network) bool { return strings.HasPrefix(n.PositionEmbedding, "sinusoidal") }

// namedActivation returns the activation function that config.json names.
func (s *Spec) namedActivation() (string, bool) {
	v, err := evalExpr("act($hidden_activation | $hidden_act | $activation_function | $activation)", s.Config)
	act, ok := v.(string)
	return act, err == nil && ok
}

// architecture returns the modules of the architecture that config.json names,
// where there is a family of it.
func (s *Spec) architecture() (Network, bool) {
	n := newNetwork()
	arch, _ := s.Config["model_type"].(string)
	f, ok := findFamily(arch)
	if !ok || arch == "" {
		return n, false
	}
	var ignore []string
	err := f.apply(maps.Clone(s.configFile), &n, &ignore)
	return n, err == nil
}

// normFunction returns the function of a norm with or without a bias. A norm that
// adds a bias is no rms norm, though model_spec.json of Orion calls it one.
func (l *lowerer) normFunction(std string) string {
	f := l.Net.NormalizationFunction
	if f != "rms" || !l.has(std+".bias") {
		return f
	}
	if l.Spec.Set("iflow") {
		l.fail("network_structure.normalization_function: have rms, but the files have %s.bias; want std", std)
	}
	return "std"
}
