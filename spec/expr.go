package spec

import (
	"regexp"

	"github.com/iflowc/iflowc/ir/expand"
	"gopkg.in/yaml.v3"
)

// exprForm is the pattern of a value of a model spec that is an expression over config.json:
//
//	$rope_theta | 10000            the first present value
//	= 1 / sqrt($query_pre_attn_scalar)
//	act($hidden_act | gelu_new)    converts the activation name of transformers
//	$rope_scaling.factor           key of a mapping; of a list: the number of an entry
//	each($p, M, ssd, '*', full)    a list, or the characters of a text, with entries replaced
//
// An expression over absent parameters has no value and does not set the key.
const exprForm = `^(\$|= |(act|bf16|len|divided|int|each|layers_at|layers_below|layers_every|by_layer)\()`

var exprStart = regexp.MustCompile(exprForm)

func isExpr(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!str" && exprStart.MatchString(n.Value)
}

// evalExpr returns the expression's value: nil, a float64, a string, or a value of the
// configuration.
func evalExpr(src string, config map[string]any) (any, error) {
	return expand.Evaluate(library(), src, config, new(int))
}

// number converts any number type of the JSON, YAML and GGUF decoders to float64.
func number(x any) (float64, bool) {
	switch v := x.(type) {
	case int:
		return float64(v), true
	case int8:
		return float64(v), true
	case int16:
		return float64(v), true
	case int32:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint8:
		return float64(v), true
	case uint16:
		return float64(v), true
	case uint32:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float32:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
