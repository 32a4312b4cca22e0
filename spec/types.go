package spec

import (
	"path"
	"sort"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// A WeightType is the type that `types` wants for one weight of the module.
type WeightType struct {
	Weight string // its name in the IR
	Type   tensor.DType
}

// engineNames are the names of matrices in Inferflow's engine configuration
// (device_weight_data_type.attn_wq).
var engineNames = map[string]string{
	"attn_wq": "dec.{i}.self_attn.wq", "attn_wk": "dec.{i}.self_attn.wk", "attn_wv": "dec.{i}.self_attn.wv", "attn_wo": "dec.{i}.self_attn.wo",
	"ffn_w1": "dec.{i}.feed_forward.w1", "ffn_w2": "dec.{i}.feed_forward.w2", "ffn_w3": "dec.{i}.feed_forward.w3",
}

// WeightTypes gives the exceptions that `types` makes from `quant`: its keys
// are standard tensor names ("dec.{i}.self_attn.wv", "output"), Inferflow's
// ("attn_wv") or weights of the IR, with * for anything ("w_*"). Later keys
// win. A key that no weight has is an error. Call it after Lower.
func (m *Model) WeightTypes() ([]WeightType, error) {
	var names []string
	for name := range m.standard {
		names = append(names, name)
	}
	sort.Strings(names)
	var out []WeightType
	for _, e := range m.Spec.Types {
		t, err := ParseType(e.Val)
		if err != nil {
			return nil, errAt(e.Pos, "types: %v", err)
		}
		found := false
		for _, name := range names {
			if m.namesWeight(e.Key, name) {
				out, found = append(out, WeightType{name, t}), true
			}
		}
		if !found {
			return nil, errAt(e.Pos, "types: no weight is called %q%s", e.Key, suggest(e.Key, names))
		}
	}
	return out, nil
}

func (m *Model) namesWeight(key, weight string) bool {
	if full, ok := engineNames[key]; ok {
		key = full
	}
	std := m.standard[weight]
	if key == std || key == strings.TrimSuffix(std, ".weight") {
		return true
	}
	ok, err := path.Match(key, weight)
	return err == nil && ok
}
