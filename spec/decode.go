package spec

import (
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir/expand"
	"github.com/iflowc/iflowc/ir/tensor"
	"gopkg.in/yaml.v3"
)

// A decoder decodes YAML nodes strictly into structs: unknown keys, duplicate
// keys, wrong types and unknown words are errors with a position.
type decoder struct {
	file   string
	config map[string]any  // hyper-parameters that $name refers to
	set    positions       // output: the position of each key
	lib    *expand.Library // whose modules have the keys of network_structure
	steps  *int            // of the expressions in the text; nil: of each alone
	loose  bool            // inside a value taken from config.json: unknown keys are skipped
}

func (d *decoder) pos(n *yaml.Node) Pos { return Pos{d.file, n.Line, n.Column} }

// structure decodes a mapping into the struct v. The path is the prefix of the
// keys in error messages.
func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) error {
	n = deref(n)
	if n.Kind != yaml.MappingNode {
		return errAt(d.pos(n), "%s: have %s, want a mapping of keys", orTop(path), nodeKind(n))
	}
	fields := map[string]int{}
	for i := 0; i < v.NumField(); i++ {
		if tag := v.Type().Field(i).Tag.Get("yaml"); tag != "" && tag != "-" {
			fields[tag] = i
		}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, val := n.Content[i], n.Content[i+1]
		key := k.Value
		if seen[key] {
			return errAt(d.pos(k), "%s: given twice", join(path, key))
		}
		seen[key] = true
		f, ok := fields[key]
		if !ok {
			if d.loose {
				continue
			}
			return errAt(d.pos(k), "unknown key %q%s%s", key, within(path), suggest(key, fieldKeys(v.Type())))
		}
		given, err := d.value(val, v.Field(f), v.Type().Field(f).Tag, join(path, key))
		if err != nil {
			return err
		}
		if given && d.set != nil {
			d.set[join(path, key)] = d.pos(k)
		}
	}
	return nil
}

// value decodes one node and reports whether it sets a value. A null does not,
// nor does an expression over absent hyper-parameters.
func (d *decoder) value(n *yaml.Node, v reflect.Value, tag reflect.StructTag, path string) (bool, error) {
	d, n, err := d.evaluated(n, path)
	if err != nil || n == nil {
		return false, err
	}
	switch v.Interface().(type) {
	case tensor.DType:
		return true, d.dtype(n, v, path)
	case OrderedMap:
		return true, d.ordered(n, v, path)
	}
	switch v.Kind() {
	case reflect.Struct:
		return true, d.structure(n, v, path)
	case reflect.Pointer:
		e := reflect.New(v.Type().Elem())
		given, err := d.value(n, e.Elem(), tag, path)
		if given && err == nil {
			v.Set(e)
		}
		return given, err
	case reflect.Slice:
		return true, d.list(n, v, tag, path)
	case reflect.Map, reflect.Interface:
		return true, d.free(n, v, path)
	}
	return true, d.scalar(n, v, tag, path)
}

// evaluated returns a node, or that of an expression's value with a decoder for it; nil for a
// null, and for an expression over absent hyper-parameters.
func (d *decoder) evaluated(n *yaml.Node, path string) (*decoder, *yaml.Node, error) {
	n = deref(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return d, nil, nil
	}
	if d.config == nil || !isExpr(n) {
		return d, n, nil
	}
	steps := d.steps
	if steps == nil {
		steps = new(int)
	}
	x, err := expand.Evaluate(library(), n.Value, d.config, steps)
	if x == nil && err == nil {
		return d, nil, nil
	}
	var m yaml.Node
	if err == nil {
		err = m.Encode(x)
	}
	if err != nil {
		return d, nil, errAt(d.pos(n), "%s: %v", path, err)
	}
	place(&m, n.Line, n.Column)
	return &decoder{file: d.file, config: d.config, set: d.set, lib: d.lib, steps: d.steps, loose: true}, &m, nil
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, tag reflect.StructTag, path string) error {
	wrong := func(want string) error {
		return errAt(d.pos(n), "%s: have %s, want %s", path, nodeKind(n), want)
	}
	if n.Kind != yaml.ScalarNode {
		return wrong(kindName(v.Kind()))
	}
	switch v.Kind() {
	case reflect.String:
		words := tag.Get("words")
		if n.Tag != "!!str" && !(d.loose && n.Tag == "!!int" && words != "") {
			return wrong("a string")
		}
		return d.word(n, v, words, path)
	case reflect.Bool:
		if n.Tag != "!!bool" {
			return wrong("true or false")
		}
		v.SetBool(n.Value == "true" || n.Value == "True" || n.Value == "TRUE")
	case reflect.Int:
		i, err := strconv.ParseInt(n.Value, 10, 64)
		if f, ferr := strconv.ParseFloat(n.Value, 64); err != nil && ferr == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			i, err = int64(f), nil
		}
		if err != nil || (n.Tag != "!!int" && n.Tag != "!!float") {
			return wrong("an integer")
		}
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || (n.Tag != "!!int" && n.Tag != "!!float") || math.IsNaN(f) || math.IsInf(f, 0) {
			return wrong("a number")
		}
		v.SetFloat(f)
	default:
		panic("bug: no reader for " + v.Kind().String())
	}
	return nil
}

// word decodes a string that may be limited to a closed list of words.
func (d *decoder) word(n *yaml.Node, v reflect.Value, words, path string) error {
	s := n.Value
	if words == "" {
		v.SetString(s)
		return nil
	}
	s = canonicalWord(s)
	legal := strings.Split(words, "|")
	for _, w := range legal {
		if s == w {
			v.SetString(s)
			return nil
		}
	}
	if s == "" {
		return nil
	}
	if strings.HasPrefix(d.file, familyFolder) { // the value comes from config.json, so it is not a typing error
		return errAt(d.pos(n), "%s: %s is not available; known: %s; use a graph block instead", path, n.Value, strings.Join(legal, ", "))
	}
	return errAt(d.pos(n), "%s: have %q%s", path, n.Value, suggest(n.Value, legal))
}

// canonicalWord returns the word of a spelling.
func canonicalWord(s string) string {
	l := strings.ToLower(s)
	if c, ok := spelled("words", l); ok {
		return c
	}
	return l
}

func (d *decoder) dtype(n *yaml.Node, v reflect.Value, path string) error {
	parse := ParseType
	if strings.Contains(path, "kv_") {
		parse = ParseKVType
	}
	t, err := parse(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		if err == nil {
			return errAt(d.pos(n), "%s: have %s, want a type", path, nodeKind(n))
		}
		return errAt(d.pos(n), "%s: %v", path, err)
	}
	v.Set(reflect.ValueOf(t))
	return nil
}

func (d *decoder) ordered(n *yaml.Node, v reflect.Value, path string) error {
	if n.Kind != yaml.MappingNode {
		return errAt(d.pos(n), "%s: have %s, want a mapping of names", path, nodeKind(n))
	}
	var out OrderedMap
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, val := n.Content[i], deref(n.Content[i+1])
		if val.Kind != yaml.ScalarNode {
			return errAt(d.pos(val), "%s: %q: have %s, want a name", path, k.Value, nodeKind(val))
		}
		if seen[k.Value] {
			return errAt(d.pos(k), "%s: %q given twice", path, k.Value)
		}
		seen[k.Value] = true
		out = append(out, Entry{Key: k.Value, Val: val.Value, Pos: d.pos(k)})
	}
	v.Set(reflect.ValueOf(out))
	return nil
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, tag reflect.StructTag, path string) error {
	if n.Kind != yaml.SequenceNode {
		return errAt(d.pos(n), "%s: have %s, want a list", path, nodeKind(n))
	}
	out := reflect.MakeSlice(v.Type(), 0, len(n.Content))
	for _, c := range n.Content {
		e := reflect.New(v.Type().Elem()).Elem()
		if err := d.scalar(deref(c), e, tag, path); err != nil {
			return err
		}
		out = reflect.Append(out, e)
	}
	v.Set(out)
	return nil
}

func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// place sets the position of a generated node and its children, so that errors
// point at the expression that produced it.
func place(n *yaml.Node, line, col int) {
	n.Line, n.Column = line, col
	for _, c := range n.Content {
		place(c, line, col)
	}
}

func nodeKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!str":
		return strconv.Quote(n.Value)
	case "!!null":
		return "nothing"
	}
	return n.Value
}

func kindName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Int:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	}
	return "a mapping"
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func within(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

func orTop(path string) string {
	if path == "" {
		return "model spec"
	}
	return path
}

// KVType reports whether t is a supported element type of the KV cache.
func KVType(t tensor.DType) bool {
	return t == tensor.F32 || t == tensor.F16 || t == tensor.BF16 || t == tensor.Q8B32T2 || t == tensor.Q4B32T2
}

// ParseKVType parses the type of a KV cache: like ParseType, but q4 and q4_b32t2 are 4-bit
// values with 5-bit keys, which are not weight types.
func ParseKVType(s string) (tensor.DType, error) {
	if l := strings.ToLower(s); l == "q4" || l == tensor.Q4B32T2.String() {
		return tensor.Q4B32T2, nil
	}
	return ParseType(s)
}

// checkKVType returns an error if a model spec or a flag asks for an unsupported
// KV cache type. tensor.Invalid means that none was requested.
func checkKVType(t tensor.DType) error {
	if t == tensor.Invalid || KVType(t) {
		return nil
	}
	return &Error{What: "have " + strconv.Quote(t.String()) + ", which is not a KV cache type" + suggest(t.String(), typeNames(KVType))}
}
