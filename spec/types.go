package spec

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/dtype"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// A WeightType is the type that `types` sets for one weight of the module.
type WeightType struct {
	Weight string // its name in the IR
	Type   tensor.DType
}

// engineNames maps the names of matrices in Inferflow's engine configuration
// (device_weight_data_type.attn_wq) to standard names.
var engineNames = map[string]string{
	"attn_wq": "dec.{i}.self_attn.wq", "attn_wk": "dec.{i}.self_attn.wk", "attn_wv": "dec.{i}.self_attn.wv", "attn_wo": "dec.{i}.self_attn.wo",
	"ffn_w1": "dec.{i}.feed_forward.w1", "ffn_w2": "dec.{i}.feed_forward.w2", "ffn_w3": "dec.{i}.feed_forward.w3",
}

// WeightTypes returns the exceptions from `quant`: the weights that a graph declares as
// f32, and those that `types` lists. Its keys
// are standard tensor names ("dec.{i}.self_attn.wv", "output"), Inferflow's names
// ("attn_wv") or weights of the IR, with * for any characters ("w_*"). Layers may
// follow ("w_down[0..4]"). The last matching key wins. A key without a matching
// weight is an error. Call it after Lower.
func (m *Model) WeightTypes() ([]WeightType, error) {
	var names []string
	for name := range m.declared {
		names = append(names, name)
	}
	sort.Strings(names)
	var out []WeightType
	for _, name := range m.pinned {
		out = append(out, WeightType{name, tensor.F32})
	}
	for _, e := range m.Spec.Types {
		t, err := ParseType(e.Val)
		if err != nil {
			return nil, errAt(e.Pos, "types: %v", err)
		}
		found := false
		for _, name := range names {
			if d := m.declared[name]; keyOf(e.Key).names(&d) {
				out, found = append(out, WeightType{name, t}), true
			}
		}
		if !found {
			return nil, errAt(e.Pos, "types: no weight matches %q%s", e.Key, suggest(e.Key, names))
		}
	}
	return out, nil
}

// A typeKey is a key of `types`: a name, and the layers LO to HI-1 if [LO..HI]
// follows it. Without layers it names weights by their whole name, with layers by the
// name that all layers share.
type typeKey struct {
	name   string
	layers bool
	lo, hi int
}

var layersForm = regexp.MustCompile(`^(.+)\[([0-9]{1,6})\.\.([0-9]{1,6})\]$`)

func keyOf(key string) typeKey {
	k := typeKey{name: key}
	if m := layersForm.FindStringSubmatch(key); m != nil {
		k.name, k.layers = m[1], true
		k.lo, _ = strconv.Atoi(m[2]) // at most six digits
		k.hi, _ = strconv.Atoi(m[3])
	}
	if full, ok := engineNames[k.name]; ok {
		k.name = full
	}
	return k
}

// names reports whether the key names a declared weight.
func (k typeKey) names(d *declaration) bool {
	name := d.name
	if k.layers {
		if name = d.base; !d.layered || d.lo < k.lo || d.hi > k.hi {
			return false
		}
	}
	std := numberless(d.std)
	if k.name == d.std || k.name == std || k.name == strings.TrimSuffix(d.std, ".weight") || k.name == strings.TrimSuffix(std, ".weight") {
		return true
	}
	if !d.layered && k.name == d.base { // of all numbers
		return true
	}
	ok, err := path.Match(k.name, name)
	return err == nil && ok
}

// typesAt returns the keys with layers that name an element, by their positions. Elements
// of equal keys are one array.
func (m *Model) typesAt(e *element) (keys []int) {
	d := declaration{std: e.std, base: e.base, lo: e.layer, hi: e.layer + 1, layered: true}
	for i, t := range m.Spec.Types {
		if k := keyOf(t.Key); k.layers && k.names(&d) {
			keys = append(keys, i)
		}
	}
	return keys
}

// ParseType parses a weight type: a size such as q4, a type's name or one of its
// aliases, case-insensitively. For a type of another program, the error names the
// nearest size.
func ParseType(s string) (tensor.DType, error) {
	t, ok := tensor.ParseDType(s)
	if ok && t.IsWeight() {
		return t, nil
	}
	if size, from := sizeOf(s); size != nil {
		return tensor.Invalid, &Error{What: fmt.Sprintf("%s is a type of %s; the nearest size of iflowc is %s (%s, %.4g bits)",
			s, from, size.Name, size.Type, size.Type.Bits())}
	}
	return tensor.Invalid, &Error{What: fmt.Sprintf("have %q, which is not a weight type%s", s, suggestType(s))}
}

// suggestType returns the end of an error about an unknown type: the nearest name,
// or the lists of sizes and types.
func suggestType(s string) string {
	sizes, types := SizeNames(), TypeNames()
	if n := spelling.Nearest(s, slices.Concat(sizes, types)); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return fmt.Sprintf("; want a size (%s) or a type (%s)", strings.Join(sizes, " "), strings.Join(types, " "))
}

// SizeNames returns the names of the weight sizes, such as q4.
func SizeNames() (names []string) {
	for _, size := range dtype.Sizes {
		names = append(names, size.Name)
	}
	return names
}

// TypeNames returns the names of the weight types.
func TypeNames() []string { return typeNames(tensor.DType.IsWeight) }

// KVTypeNames returns the names of the KV cache types.
func KVTypeNames() []string { return typeNames(KVType) }

// typeNames returns the names of all types for which ok returns true.
func typeNames(ok func(tensor.DType) bool) (names []string) {
	for d := tensor.F32; d < dtype.Count; d++ {
		if ok(d) {
			names = append(names, d.String())
		}
	}
	return names
}

// Type names of other programs, with the bits of their codes.
var (
	llamaCppType = regexp.MustCompile(`^(?:i?q|tq)([1-8])_(?:0|1|k|k_xl|k_[sml]|xxs|xs|s|m|nl)$`)
	otherType    = regexp.MustCompile(`^(?:u?int|i|nf|fp|mxfp|nvfp|w)?([2-8])(?:-?bits?|a16|a8|_e[0-9]m[0-9])?$`)
	fourBits     = []string{"awq", "gptq", "bnb"} // methods that usually use 4 bits
)

// sizeOf returns the size nearest in bits to another program's type, and the name
// of that program; nil if the name is unknown.
func sizeOf(name string) (size *dtype.Size, from string) {
	name = strings.ToLower(name)
	bits := ""
	if m := llamaCppType.FindStringSubmatch(name); m != nil {
		bits, from = m[1], "llama.cpp"
	} else if m := otherType.FindStringSubmatch(name); m != nil {
		bits, from = m[1], "other programs"
	} else if slices.Contains(fourBits, name) {
		bits, from = "4", "other programs"
	} else {
		return nil, ""
	}
	for i := range dtype.Sizes { // sorted by decreasing size: find the smallest with enough bits
		if s := &dtype.Sizes[i]; size == nil || s.Name >= "q"+bits {
			size = s
		}
	}
	return size, from
}

// LayersKey returns the key of `types` for layers lo to hi−1 of a weight of the lowered
// module, or for the whole weight if it has no others.
func (m *Model) LayersKey(weight string, lo, hi int) string {
	d, ok := m.declared[weight]
	if !ok || !d.layered || lo <= d.lo && hi >= d.hi {
		return weight
	}
	return fmt.Sprintf("%s[%d..%d]", d.base, lo, hi)
}

// Layers returns the layers lo to hi−1 of a weight of the lowered module that is an array
// over layers; false for other weights.
func (m *Model) Layers(weight string) (lo, hi int, ok bool) {
	d := m.declared[weight]
	return d.lo, d.hi, d.layered
}
