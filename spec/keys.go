package spec

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/expand"
	"gopkg.in/yaml.v3"
)

// The keys of network_structure are parameters of modules, in sections or at the top. A section
// may have keys of the top too, for its modules alone.

// network decodes network_structure over n. Tensor names are added in front of the existing ones;
// other keys are replaced.
func (d *decoder) network(node *yaml.Node, n *Network) error {
	node = deref(node)
	if node.Kind != yaml.MappingNode {
		return errAt(d.pos(node), "network_structure: have %s, want a mapping of keys", nodeKind(node))
	}
	own, rest := *node, *node
	own.Content, rest.Content = nil, nil
	for i := 0; i+1 < len(node.Content); i += 2 {
		to := &rest
		if slices.Contains(networkFields, node.Content[i].Value) {
			to = &own
		}
		to.Content = append(to.Content, node.Content[i], node.Content[i+1])
	}
	below := n.TensorNameMapping
	n.TensorNameMapping = nil
	if err := d.structure(&own, reflect.ValueOf(n).Elem(), networkKey); err != nil {
		return err
	}
	var named OrderedMap
	for _, prefix := range strings.Split(n.TensorNamePrefix, "|") {
		for _, e := range n.TensorNameMapping {
			e.Prefix = prefix
			named = append(named, e)
		}
	}
	n.TensorNameMapping = append(named, below...)
	in := *d
	in.lib = n.modules()
	return in.params(&rest, "", n.Params)
}

// networkKey is the key of a model spec whose keys are parameters of modules.
const networkKey = "network_structure"

// networkFields are its keys that are none.
var networkFields = fieldKeys(reflect.TypeFor[Network]())

// params decodes the keys of a section, or of the top.
func (d *decoder) params(node *yaml.Node, section string, out map[string]any) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, val := node.Content[i], node.Content[i+1]
		key := join(section, name.Value)
		path := join(networkKey, key)
		if seen[key] {
			return errAt(d.pos(name), "%s: given twice", path)
		}
		seen[key] = true
		given, err := d.param(name, val, section, out)
		if err != nil {
			return err
		}
		if given && d.set != nil {
			d.set[path] = d.pos(name)
		}
	}
	return nil
}

// param decodes a key, and reports whether it sets a value.
func (d *decoder) param(name, val *yaml.Node, section string, out map[string]any) (given bool, err error) {
	key := join(section, name.Value)
	path := join(networkKey, key)
	if s := sectionNamed(d.lib, key); s != nil {
		return d.section(val, s, path, out)
	}
	p, err := d.lib.Key(key)
	if p == nil && section != "" && !d.loose && slices.Contains(narrowed(d.lib, section), name.Value) {
		p, err = d.lib.Key(name.Value)
	}
	if err != nil {
		return false, errAt(d.pos(name), "%s: %v", path, err)
	}
	if p == nil {
		if d.loose {
			return false, nil
		}
		return false, errAt(d.pos(name), "unknown key %q%s%s", name.Value, within(strings.TrimSuffix(join(networkKey, section), ".")), suggest(name.Value, keysIn(d.lib, section)))
	}
	v, given, err := d.paramValue(val, p, path)
	if given && err == nil {
		out[key] = v
	}
	return given, err
}

// section decodes the keys of a section.
func (d *decoder) section(node *yaml.Node, s *expand.Section, path string, out map[string]any) (given bool, err error) {
	in, node, err := d.evaluated(node, path)
	if err != nil || node == nil {
		return false, err
	}
	if node.Kind != yaml.MappingNode {
		return false, errAt(d.pos(node), "%s: have %s, want a mapping of keys", path, nodeKind(node))
	}
	if s.Whole {
		maps.DeleteFunc(out, func(key string, _ any) bool { return strings.HasPrefix(key, s.Name+".") })
	}
	return true, in.params(node, s.Name, out)
}

// paramValue decodes the value of a parameter. An empty word is the default.
func (d *decoder) paramValue(node *yaml.Node, p *expand.Parameter, path string) (any, bool, error) {
	in, node, err := d.evaluated(node, path)
	if err != nil || node == nil {
		return nil, false, err
	}
	typ := paramTypes[p.Kind]
	if p.List || p.Layered && node.Kind == yaml.SequenceNode {
		typ = reflect.SliceOf(typ)
	}
	v := reflect.New(typ).Elem()
	tag := reflect.StructTag(`words:"` + strings.Join(p.Words, "|") + `"`)
	if _, err := in.value(node, v, tag, path); err != nil {
		return nil, false, err
	}
	if v.Kind() == reflect.String && v.Len() == 0 && p.Default != nil {
		return p.Default, true, nil
	}
	return v.Interface(), true, nil
}

// paramTypes are the types of parameters' values.
var paramTypes = map[string]reflect.Type{"int": reflect.TypeFor[int](), "float": reflect.TypeFor[float64](), "bool": reflect.TypeFor[bool](), "word": reflect.TypeFor[string]()}

// sectionNamed returns the section of a name; nil if there is none.
func sectionNamed(lib *expand.Library, name string) (found *expand.Section) {
	for _, s := range lib.Sections() { // several files may have parameters of it
		if s.Name == name && (found == nil || found.Doc == "") {
			found = &s
		}
	}
	return found
}

// checkParams returns an error for a value that a parameter must not have.
func (s *Spec) checkParams() error {
	for _, key := range slices.Sorted(maps.Keys(s.Network.Params)) {
		p, err := s.Network.modules().Key(key)
		if p == nil && err == nil { // one of the top, in a section
			p, err = s.Network.modules().Key(key[strings.LastIndexByte(key, '.')+1:])
		}
		if err == nil {
			err = p.Accepts(s.Network.Params[key])
		}
		if err != nil {
			path := join(networkKey, key)
			return errAt(s.Pos(path), "%s: %v", path, err)
		}
	}
	return nil
}

// narrowed returns the keys of the top that modules of a section have.
func narrowed(lib *expand.Library, section string) []string {
	names := append([]string{section[strings.LastIndexByte(section, '.')+1:]}, sectionNamed(lib, section).At...)
	keys, err := lib.Reached(rootModule, section, names)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return slices.DeleteFunc(keys, func(name string) bool { return lib.Declares(join(section, name)) })
}

// keysIn returns the keys of a section, or of the top.
func keysIn(lib *expand.Library, section string) (names []string) {
	prefix := join(section, "")
	for _, key := range lib.Keys() {
		if name, ok := strings.CutPrefix(key, prefix); ok && !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	for _, s := range lib.Sections() {
		if name, ok := strings.CutPrefix(s.Name, prefix); ok && !strings.Contains(name, ".") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if section == "" {
		names = append(names, networkFields...)
	}
	return names
}

// fieldKeys returns the keys of a struct's fields.
func fieldKeys(t reflect.Type) (keys []string) {
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("yaml"); key != "" && key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}
