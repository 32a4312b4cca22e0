package spec

import (
	"reflect"

	"gopkg.in/yaml.v3"
)

// maxFree is the maximum number of values in a value of any form, aliases followed. The
// largest published configurations have a few thousand.
const maxFree = 1 << 16

// free decodes a value of any form (hyper, decoding_strategy).
func (d *decoder) free(n *yaml.Node, v reflect.Value, path string) error {
	left := maxFree
	x, err := d.plain(n, path, &left)
	if err != nil {
		return err
	}
	if x == nil || !reflect.TypeOf(x).AssignableTo(v.Type()) {
		return errAt(d.pos(n), "%s: have %s, want %s", path, nodeKind(n), kindName(v.Kind()))
	}
	v.Set(reflect.ValueOf(x))
	if n.Kind == yaml.MappingNode && d.set != nil {
		for i := 0; i+1 < len(n.Content); i += 2 {
			d.set[join(path, n.Content[i].Value)] = d.pos(n.Content[i])
		}
	}
	return nil
}

// plain returns a node as the value that a JSON decoder would return, in time linear in the
// number of values. The decoder of package yaml takes quadratic time for mappings.
func (d *decoder) plain(n *yaml.Node, path string, left *int) (any, error) {
	if *left--; *left < 0 {
		return nil, errAt(d.pos(n), "%s: more than %d values", path, maxFree)
	}
	n = deref(n)
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode {
				return nil, errAt(d.pos(k), "%s: have %s as a key, want a name", path, nodeKind(k))
			}
			if _, twice := m[k.Value]; twice {
				return nil, errAt(d.pos(k), "%s: given twice", join(path, k.Value))
			}
			x, err := d.plain(n.Content[i+1], path, left)
			if err != nil {
				return nil, err
			}
			m[k.Value] = x
		}
		return m, nil
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			x, err := d.plain(c, path, left)
			if err != nil {
				return nil, err
			}
			list[i] = x
		}
		return list, nil
	}
	var x any
	if err := n.Decode(&x); err != nil {
		return nil, errAt(d.pos(n), "%s: have %s, want a value", path, nodeKind(n))
	}
	return x, nil
}
