package spec

import (
	"sync"

	"github.com/iflowc/iflowc/ir/expand"
	"github.com/iflowc/iflowc/models"
)

// A Network is the network_structure of a model spec: its type, the names of stored tensors, and
// what parameters of modules are. Keys of Inferflow's specs have the same meaning.
type Network struct {
	Type                 string     `yaml:"type" words:"decoder_only|encoder_only|encoder_decoder|decoder_only.sparse_moe|general|transformer|bert|llama|bloom"` // topology of the network; transformer.X is the same as X, general and transformer are decoder_only, and bert is encoder_only; llama and bloom are decoder_only and preset norm, activation and positions
	TensorNamePrefix     string     `yaml:"tensor_name_prefix"`                                                                                                  // optional prefix of tensor names in the checkpoint, or several separated by |; tensor_name_mapping omits it
	TensorNameMapping    OrderedMap `yaml:"tensor_name_mapping"`                                                                                                 // tensor name in the checkpoint → standard name; {i} is the layer, {j} the expert; added to the built-in names
	TensorNamePreMapping OrderedMap `yaml:"tensor_name_pre_mapping"`                                                                                             // stored name → name that tensor_name_mapping matches, for single tensors
	UnevenTensors        []string   `yaml:"uneven_tensors"`                                                                                                      // tensors of a layer, such as self_attn.wo.bias, that only some layers have

	KQScale          any `yaml:"kq_scale"`                 // accepted and ignored: Inferflow's guard against fp16 overflow, which leaves the result unchanged
	TransformQK      any `yaml:"transform_qk"`             // accepted and ignored; Inferflow declares the key and does not read it
	MaskToken        any `yaml:"mask_token"`               // accepted and ignored; Inferflow declares the key and does not read it
	CrossAttnKVCache any `yaml:"has_cross_attn_kv_cache"`  // accepted and ignored; Inferflow declares the key and does not read it
	EagerBuilding    any `yaml:"is_eager_device_building"` // accepted and ignored; Inferflow declares the key and does not read it

	lib    *expand.Library // of the family
	Params map[string]any  `yaml:"-"` // by key, with dots between those of sections: int, float64, bool, string, or a list of one
}

// newNetwork returns a Network of modules of a library that sets nothing.
func newNetwork(lib *expand.Library) Network { return Network{lib: lib, Params: map[string]any{}} }

// modules is the library of the modules that the network is of.
func (n *Network) modules() *expand.Library {
	if n.lib == nil {
		return library()
	}
	return n.lib
}

// Param returns the value of a key: as it is set, or else its default; nil if it has none.
func (n *Network) Param(key string) any {
	if v, ok := n.Params[key]; ok {
		return v
	}
	p, err := n.modules().Key(key)
	if err != nil || p == nil {
		panic("bug: no key " + key + " of network_structure")
	}
	return p.Default
}

// number returns the value of a key that is a number, 0 if it has none.
func (n *Network) number(key string) int {
	i, _ := n.Param(key).(int)
	return i
}

// word returns the value of a key that is a word, "" if it has none.
func (n *Network) word(key string) string {
	s, _ := n.Param(key).(string)
	return s
}

// is reports whether a key is true.
func (n *Network) is(key string) bool { return n.Param(key) == true }

// Words returns the value of a key that is a list of words.
func (n *Network) Words(key string) []string {
	list, _ := n.Param(key).([]string)
	return list
}

// A typeMeaning is what a type of networks stands for.
type typeMeaning struct {
	Type   string         // a type of more meaning; "": itself
	Params map[string]any `yaml:",inline"` // what it sets
}

// networkTypes are the types that stand for others.
var networkTypes = sync.OnceValue(func() map[string]typeMeaning {
	return data[map[string]typeMeaning]("modules/types.yaml", models.NetworkTypes())
})

// Topology returns what the network type stands for: decoder_only, encoder_only,
// encoder_decoder or decoder_only.sparse_moe.
func (n *Network) Topology() string {
	if t, ok := networkTypes()[n.Type]; ok {
		return t.Type
	}
	return n.Type
}

// encodes reports whether the network has an encoder.
func (n *Network) encodes() bool {
	return n.Topology() == "encoder_only" || n.Topology() == "encoder_decoder"
}
func (n *Network) decodes() bool { return n.Topology() != "encoder_only" }
