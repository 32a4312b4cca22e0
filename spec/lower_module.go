package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/expand"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/models"
)

// library returns the modules that are written as text.
var library = sync.OnceValue(func() *expand.Library {
	l, err := expand.NewLibrary(models.Modules())
	if err != nil {
		panic("bug: " + err.Error())
	}
	return l
})

// irNames returns the names that paths of instances have in the IR.
var irNames = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	if err := yaml.Unmarshal(models.ModuleNames(), &out); err != nil {
		panic("bug: names of modules: " + err.Error())
	}
	return out
})

// irName returns the name in the IR of a part of the module at a path. Parts that are called
// weight or state have the name of their module.
func irName(path, part string) string {
	if part, number, numbered := strings.Cut(part, "."); numbered {
		return irName(path, part) + "_" + number
	}
	if part != "weight" && part != "state" {
		path += "." + part
	}
	if name, ok := irNames()[path]; ok {
		return name
	}
	at := strings.LastIndexByte(path, '.')
	if at < 0 {
		return path
	}
	if above := irName(path[:at], "weight"); above != "" {
		return above + "_" + path[at+1:]
	}
	return path[at+1:]
}

// call writes a module of the library at the path of a layer, such as linear_attn, and returns
// the names of its results.
func (l *lowerer) call(module, path string, args []string, named map[string]any) []string {
	if l.expander == nil {
		l.expander = expand.New(library(), ops.Table, moduleHost{l})
	}
	var values []any
	for _, a := range args {
		if a == "" {
			values = append(values, nil)
			continue
		}
		v := l.t.value(a)
		if v == nil {
			return []string{a, a}
		}
		values = append(values, v)
	}
	results, err := l.expander.Call(module, layerName(l.s.in(path), l.at), values, named)
	if err != nil {
		switch {
		case l.err != nil:
		case l.t.err != nil: // of an op
			l.err = l.misfit(err)
		default:
			l.err = errAt(Pos{File: l.Spec.File}, "%v", err)
		}
		return args
	}
	var out []string
	for _, r := range results {
		name := ""
		if v, ok := r.(*ir.Value); ok {
			name = l.t.fresh("y")
			l.t.values[name] = v
		}
		out = append(out, name)
	}
	return out
}

// A moduleHost is the model for modules that are written as text.
type moduleHost struct{ *lowerer }

func (h moduleHost) Tensor(std string) (expand.Tensor, bool) {
	t, ok := h.tensors[std]
	if !ok {
		return expand.Tensor{}, false
	}
	out := expand.Tensor{File: t.File, Pattern: t.Pattern, Transform: tensor.Source(t.Pattern), Shape: t.Shape, Type: t.DType}
	if h.storesTransposed(std, t.Shape) {
		out.Transform, out.Shape, out.Computed = apply("transpose", out.Transform), []int{t.Shape[1], t.Shape[0]}, t.DType.IsBlock()
	}
	return out, true
}

func (h moduleHost) Missing(std string) string { return message(h.missing(std, nil)) }

func (h moduleHost) Read(std string) {
	form, _ := layerForm(std)
	h.read[form] = true
}

func (h moduleHost) Config(key string) (any, bool) {
	v, ok := h.Spec.Config[key]
	return v, ok
}

// Param returns the value of a key of network_structure: of a section that describes a part
// of the path, or else at the top.
func (h moduleHost) Param(module, path, name string) (any, bool) {
	if h.params == nil {
		h.params = map[string]any{}
		flattenKeys(reflect.ValueOf(*h.Net), "", h.params)
		h.params["inferflow"] = !h.Spec.Set("iflow")
	}
	if v, ok := h.params[module+"."+name]; ok && !inherits(name, v) {
		return v, true
	}
	_, path, _ = strings.Cut(path, ".") // the stack
	for section := path; section != ""; {
		if v, ok := h.params[sectionOf(section)+"."+aliasOf(name)]; ok && !inherits(name, v) {
			return v, true
		}
		at := strings.LastIndexByte(section, '.')
		section = section[:max(at, 0)]
	}
	v, ok := h.params[name]
	return v, ok && !inherits("", v)
}

// inherits reports whether a section leaves a key to the top, or to the module's default: an
// empty list, and an ε of 0.
func inherits(name string, v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Slice && r.Len() == 0 || name == "norm_eps" && r.IsZero()
}

// sectionNames are the sections of network_structure that describe modules.
var sectionNames = map[string]string{"linear_attn": "linear_attention", "scan": "selective_scan"}

// sectionOf returns the section that describes the module at a path in a layer.
func sectionOf(path string) string {
	_, path, _ = strings.Cut(path, ".") // the layer
	first, rest, _ := strings.Cut(path, ".")
	if s, ok := sectionNames[first]; ok {
		first = s
	}
	if rest != "" {
		return first + "." + rest
	}
	return first
}

// aliasOf returns the key of a section that sets a parameter.
func aliasOf(name string) string {
	if name == "head_norm_eps" {
		return "norm_eps"
	}
	return name
}

// flattenKeys adds the fields of a struct by the names of their keys, with dots between
// those of sections.
func flattenKeys(v reflect.Value, prefix string, out map[string]any) {
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if key == "" || key == "-" {
			continue
		}
		if f := v.Field(i); f.Kind() == reflect.Struct {
			flattenKeys(f, prefix+key+".", out)
		} else {
			out[prefix+key] = f.Interface()
		}
	}
}

func (h moduleHost) Weight(w *expand.Weight) (*ir.Value, error) {
	form, layer := layerForm(w.Std)
	e := &element{std: form, layer: layer, experts: w.Count, typ: w.Tensors[0].Type, wide: w.Computed, shape: w.Shape, transform: w.Transform}
	for _, t := range w.Tensors {
		e.wide, e.block = e.wide || t.Type != e.typ, e.block || t.Type.IsBlock()
	}
	e.layered = layer >= 0 && slices.ContainsFunc(w.Transform.Sources(), func(name string) bool { return strings.Contains(name, "{i") })
	for _, std := range w.Stds {
		h.Read(std)
	}
	_, path, _ := strings.Cut(w.Path, ".")
	if layer >= 0 {
		_, path, _ = strings.Cut(path, ".")
	}
	path, second := strings.CutPrefix(path, secondPart)
	e.name = h.nameOf(irName(path, w.Name), form, second)
	if first := h.byRef[e.ref()]; first != nil && first.transform.String() != e.transform.String() {
		return nil, fmt.Errorf("weight @%s is declared again, of other tensors; give it a number, as in weight @%s[i]", w.Name, w.Name)
	}
	return h.refs[h.declare(e)], nil
}

func (h moduleHost) Name(v *ir.Value, name string) { h.t.hints[v] = name }

func (h moduleHost) State(path, name string, s *ir.StateType) (*ir.Value, error) {
	form, layer := layerForm(path + ".")
	if layer < 0 {
		return nil, fmt.Errorf("state %s is in no layer", name)
	}
	if !s.Fixed {
		s.Page = pageRows
	}
	_, in, _ := strings.Cut(strings.TrimSuffix(form, "."), "{i}.")
	return h.refs[h.stateOf(h.prefix+irName(in, name), layer, s)], nil
}

func (h moduleHost) StateElem(field string, bits int) tensor.DType {
	switch t := h.stateType(); {
	case bits > 0 && t.IsBlock():
		return tensor.F16
	case bits == 0 && field == "k":
		return t.OfKeys()
	default:
		return t
	}
}

func (h moduleHost) Op(def *ir.OpDef, args []*ir.Value, attrs ir.Attrs, names []string) ([]*ir.Value, error) {
	hints := make([]string, len(names))
	for i, n := range names {
		hints[i] = strings.TrimPrefix(n, "%")
	}
	return h.t.add(def, args, attrs, hints)
}

func (h moduleHost) Layer(index int) {
	if index < 0 {
		h.t.end()
		return
	}
	h.t.begin(index)
}
