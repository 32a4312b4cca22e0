package spec

import (
	"bytes"
	"cmp"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/iflowc/iflowc/ir/expand"
	"github.com/iflowc/iflowc/ir/tensor"
	"gopkg.in/yaml.v3"
)

// YAML returns the model spec as a YAML file. Keys derived from config.json or
// metadata are written out, so that reading it with the same model folder returns
// the same model. It omits model_dir.
func (s *Spec) YAML() ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	put(root, "iflow", scalarNode(Version))
	v := reflect.ValueOf(*s)
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("yaml")
		switch tag {
		case "", "-", "iflow", "model_dir", "family", "hyper", "network_structure", "COMMENTS", "qkv_format", "ignore_tensors":
			continue
		}
		if n := fieldNode(v.Field(i)); n != nil && !v.Field(i).IsZero() {
			put(root, tag, n)
		}
	}
	if name := s.ownFamily(); name != "" {
		put(root, "family", scalarNode(name))
	}
	baseline, hyper, err := s.baseline()
	if err != nil {
		return nil, err
	}
	if len(hyper) > 0 {
		put(root, "hyper", freeNode(hyper))
	}
	if own := s.ownIgnores(); len(own) > 0 {
		put(root, "ignore_tensors", flow(fieldNode(reflect.ValueOf(own))))
	}
	put(root, "network_structure", s.Network.node(baseline))
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

// ownFamily returns the name of the model's family if that has modules of its own; "" if not.
func (s *Spec) ownFamily() string {
	arch, _ := s.Config["model_type"].(string)
	if f, ok := findFamily(cmp.Or(s.Family, arch)); ok && s.Network.modules() != library() {
		return f.name
	}
	return ""
}

// hyperNames are the parameters that hyperparameters reads and that a family may
// change.
var hyperNames = []string{"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size", "max_position_embeddings",
	"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"}

// baseline returns the Network that the printed model spec starts from with this config.json, and the hyper-parameters in which the model differs.
func (s *Spec) baseline() (*Network, map[string]any, error) {
	config := maps.Clone(s.configFile)
	if config == nil {
		config = map[string]any{}
	}
	f, _ := findFamily(cmp.Or(s.ownFamily(), "generic"))
	n := newNetwork(f.modules())
	if _, err := f.apply(config, &n); err != nil {
		return nil, nil, err
	}
	hyper := map[string]any{}
	for _, name := range slices.Concat(hyperNames, s.graphNames()) {
		if have := s.Config[name]; have != nil && !sameValue(have, config[name]) {
			hyper[name] = have
		}
	}
	for name, v := range s.Hyper {
		hyper[name] = v
	}
	return &n, hyper, nil
}

var graphName = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// graphNames returns the hyper-parameters that the graph references.
func (s *Spec) graphNames() (names []string) {
	for _, m := range graphName.FindAllStringSubmatch(s.Graph, -1) {
		names = append(names, m[1])
	}
	return names
}

// ownIgnores returns the ignore patterns without those of the generic family.
func (s *Spec) ownIgnores() []string {
	generic, _ := findFamily("generic")
	var out []string
	for _, g := range s.Ignore {
		if !slices.Contains(generic.Ignore, g) && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// node returns the keys with values that differ from the defaults of the language and
// from the values that config.json implies, and those that have no default.
func (n *Network) node(baseline *Network) *yaml.Node {
	root := &yaml.Node{Kind: yaml.MappingNode}
	have, base := reflect.ValueOf(*n), reflect.ValueOf(*baseline)
	for i, tag := range networkFields {
		f := have.Field(i)
		if tag == "tensor_name_mapping" {
			if m := n.mappingNode(); len(m.Content) > 0 {
				put(root, tag, m)
			}
			continue
		}
		if f.IsZero() && base.Field(i).IsZero() {
			continue
		}
		if node := fieldNode(f); node != nil {
			put(root, tag, flow(node))
		}
	}
	n.putParams(root, baseline, "")
	return root
}

// putParams adds the keys of a section, or of the top.
func (n *Network) putParams(to *yaml.Node, baseline *Network, section string) {
	for _, name := range keysIn(n.modules(), section) {
		key := join(section, name)
		if s := sectionNamed(n.modules(), key); s != nil {
			n.putSection(to, baseline, s, name)
			continue
		}
		p, err := n.modules().Key(key)
		if p == nil || err != nil {
			continue // a field of Network
		}
		if v, set := n.Params[key]; p.Default == nil && set || !sameParam(n.Param(key), p.Default) || !sameParam(n.Param(key), baseline.Param(key)) {
			if !set {
				v = p.Default
			}
			put(to, name, flow(scalarNode(v)))
		}
	}
}

// putSection adds a section: all of it, if it replaces what is below.
func (n *Network) putSection(to *yaml.Node, baseline *Network, s *expand.Section, name string) {
	m := &yaml.Node{Kind: yaml.MappingNode}
	if n.putParams(m, baseline, s.Name); s.Whole && len(m.Content) > 0 {
		m.Content = nil
		none := newNetwork(n.lib)
		n.putParams(m, &none, s.Name)
	}
	for _, key := range slices.Sorted(maps.Keys(n.Params)) { // of the top, for the modules of the section
		if name, ok := strings.CutPrefix(key, s.Name+"."); ok && !n.modules().Declares(key) && !strings.Contains(name, ".") {
			put(m, name, flow(scalarNode(n.Params[key])))
		}
	}
	if len(m.Content) > 0 {
		put(to, name, m)
	}
}

// sameParam reports whether two values of a parameter are equal.
func sameParam(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if x.Kind() == reflect.Slice && y.Kind() == reflect.Slice && x.Len() == y.Len() {
		for i := range x.Len() {
			if !sameValue(x.Index(i).Interface(), y.Index(i).Interface()) {
				return false
			}
		}
		return true
	}
	return sameValue(a, b)
}

// mappingNode returns the tensor names. A name from a layer with another prefix is
// written with and without that prefix, as rulesOf reads it.
func (n *Network) mappingNode() *yaml.Node {
	root := &yaml.Node{Kind: yaml.MappingNode}
	seen := map[string]bool{}
	for _, e := range n.TensorNameMapping {
		keys := []string{e.Key}
		if e.Prefix != n.TensorNamePrefix {
			keys = []string{e.Prefix + e.Key, e.Key}
		}
		for _, key := range keys {
			if !seen[key] {
				seen[key] = true
				put(root, key, scalarNode(e.Val))
			}
		}
	}
	return root
}

// data returns the value of an embedded YAML file.
func data[T any](file, text string) (out T) {
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		panic("bug: " + file + ": " + err.Error())
	}
	return out
}

func put(m *yaml.Node, key string, v *yaml.Node) {
	m.Content = append(m.Content, scalarNode(key), v)
}

func scalarNode(v any) *yaml.Node {
	n := &yaml.Node{}
	if err := n.Encode(v); err != nil {
		panic("bug: " + err.Error())
	}
	return n
}

func freeNode(m map[string]any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		v := m[k]
		if f, ok := number(v); ok && f == float64(int64(f)) {
			v = int64(f)
		}
		put(n, k, scalarNode(v))
	}
	return n
}

// flow switches lists to the one-line style.
func flow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.SequenceNode {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		flow(c)
	}
	return n
}

// fieldNode returns the YAML of a field's value; nil if there is nothing to write.
func fieldNode(v reflect.Value) *yaml.Node {
	switch x := v.Interface().(type) {
	case tensor.DType:
		if x == tensor.Invalid {
			return nil
		}
		return scalarNode(x.String())
	case OrderedMap:
		m := &yaml.Node{Kind: yaml.MappingNode}
		for _, e := range x {
			put(m, e.Key, scalarNode(e.Val))
		}
		return m
	}
	return scalarNode(v.Interface())
}
