package spec

import (
	"strings"
)

// activations maps the values of activation_function (without glu_) to ops.
var activations = map[string]string{
	"sigmoid": "sigmoid", "elu": "elu", "relu": "relu", "gelu": "gelu_tanh", "gelu_erf": "gelu", "silu": "silu",
	"quick_gelu": "quick_gelu", "relu2": "relu2", "tanh": "tanh", "identity": "identity",
}

func (l *lowerer) activation(x string) string {
	return l.activationOp(l.Net.ActivationFunction, x)
}

func (l *lowerer) activationOp(name, x string) string {
	name = strings.TrimPrefix(name, "glu_")
	op, ok := activations[name]
	if !ok {
		panic("bug: no op for activation_function " + name)
	}
	return l.t.op("act", op, []string{x}, nil)
}
