package spec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/expand"
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

// rootModule is the module that a model is.
const rootModule = "transformer"

// Modules returns the library of modules, with those of a family if family is not "".
func Modules(family string) (*expand.Library, error) {
	if family == "" {
		return library(), nil
	}
	f, ok := findFamily(family)
	if !ok {
		return nil, fmt.Errorf("no family %q%s", family, suggest(family, Architectures()))
	}
	return f.modules(), nil
}

// Families returns the names of all families, sorted.
func Families() []string { return slices.Sorted(maps.Keys(models.Families())) }

// irNames returns the names that paths of instances have in the IR.
var irNames = sync.OnceValue(func() map[string]string {
	return data[map[string]string]("modules/names.yaml", models.ModuleNames())
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

// A moduleHost is the model for modules that are written as text.
type moduleHost struct{ *lowerer }

func (h moduleHost) Tensor(std string) (expand.Tensor, bool) {
	_, t, ok := h.tensor(std)
	if !ok {
		h.absent[std] = true
		return expand.Tensor{}, false
	}
	if form, layer := layerForm(std); layer >= 0 {
		h.present[form] = true
	}
	out := expand.Tensor{File: t.File, Pattern: t.Pattern, Transform: tensor.Source(t.Pattern), Shape: t.Shape, Type: t.DType}
	if h.at(std).storesTransposed(std, t.Shape) {
		out.Transform, out.Shape, out.Computed = &tensor.Transform{Op: "transpose", Args: []*tensor.Transform{out.Transform}}, []int{t.Shape[1], t.Shape[0]}, t.DType.IsBlock()
	}
	return out, true
}

// tensor returns the tensor of a standard name, and what name it is stored under: of the model, of its
// draft layer, or of its Medusa heads.
func (m *Model) tensor(std string) (name string, t Tensor, ok bool) {
	rest, ofDraft := strings.CutPrefix(std, joinedDraft)
	if ofDraft && m.Draft != nil {
		if t, ok = m.Draft.Model.tensors[std]; ok {
			return std, t, ok
		}
		name, t, ok = m.Draft.Model.find(rest)
		return joinedDraft + name, t, ok
	}
	if rest, ofHeads := strings.CutPrefix(std, joinedHeads); ofHeads && m.Medusa != nil {
		t, ok = m.Medusa.tensors[m.Medusa.prefix+rest]
		return std, t, ok
	}
	return m.find(std)
}

// of returns the model that a place is in: the draft layer is one of its own.
func (m *Model) of(at site) *Model {
	if at.draft && m.Draft != nil {
		return m.Draft.Model
	}
	return m
}

func (h moduleHost) Read(std string) bool {
	name, _, ok := h.tensor(std)
	h.read[numberless(name)] = true
	return ok
}

func (h moduleHost) Same(a, b string) bool {
	_, x, stored := h.tensor(a)
	_, y, both := h.tensor(b)
	c, compares := h.headers.(Comparer)
	return stored && both && slices.Equal(x.Shape, y.Shape) && (!compares || c.Same(x.File, y.File))
}

// maxValues is the most numbers of a tensor that modules read.
const maxValues = 1 << 12

func (h moduleHost) Values(std string) (list []float64, err error) {
	_, t, _ := h.tensor(std)
	v, readable := h.headers.(Values)
	if !readable || len(t.Shape) != 1 || t.Shape[0] > maxValues {
		return nil, fmt.Errorf("tensor %q: shape %v, want a list of at most %d numbers", t.File, t.Shape, maxValues)
	}
	h.Read(std)
	h.used[t.File] = true
	f, err := v.Float32(t.File)
	for _, x := range f {
		list = append(list, tensor.Decimal(x))
	}
	return list, err
}

func (h moduleHost) Config(path, key string) (any, bool) {
	v, ok := h.at(path).Spec.Config[key]
	return v, ok
}

// Library returns the library of the family of the draft layer, which is often another one.
func (h moduleHost) Library(path string) *expand.Library { return h.at(path).Net.modules() }

// at returns the model that a path or a standard name is of.
func (h moduleHost) at(path string) *Model {
	if h.Draft == nil { // of most, and siteOf takes time
		return h.Model
	}
	return h.of(siteOf(path))
}

// Param returns what a parameter is set to: by the section of the module's file, or one that describes a
// part of the path, the innermost one, or else by the parameter's own key.
func (h moduleHost) Param(p *expand.Declared, m *expand.Reader, path string) (any, bool) {
	if path != h.lastPath { // parameters of an instance follow each other
		h.lowerer.lastPath, h.lowerer.lastSite = path, siteOf(path)
	}
	at := h.lastSite
	key := paramKey{site{draft: at.draft, std: at.std, rest: at.rest}, m.Module, p.Module, p.Name} // the same in all layers
	v, known := h.found[key]
	if !known {
		v = h.find(p, m, &key)
		h.found[key] = v
	}
	return v.value, v.set
}

// A paramKey is a parameter of the modules at a place of a stack, in any layer.
type paramKey struct {
	at                 site
	module, home, name string
}

// A setting is what a parameter is set to.
type setting struct {
	value any
	set   bool
}

func (l *lowerer) find(p *expand.Declared, m *expand.Reader, at *paramKey) setting {
	set := l.paramsOf(site{draft: at.at.draft, std: at.at.std})
	for _, key := range keysOf(l.of(at.at).Net.modules(), p, m, at.at.rest) {
		v, ok := set[key]
		if list := reflect.ValueOf(v); !ok || list.Kind() == reflect.Slice && list.Len() == 0 { // as if it were not set
			continue
		}
		return setting{v, true}
	}
	return setting{}
}

// keysOf returns the keys that set a parameter of an instance, the strongest first: those of
// the section of the module's file and of sections that describe a part of the path in its layer, and its own, in
// a section or at the top.
func keysOf(lib *expand.Library, p *expand.Declared, m *expand.Reader, path string) (keys []string) {
	add := func(section string) {
		key := section + "." + p.Name
		if slices.Contains(p.Sections, section) || !lib.Declares(key) { // a section's own key of the name is another parameter
			keys = append(keys, key)
		}
	}
	if len(m.Sections) == 1 {
		add(m.Sections[0])
	}
	for section := path; section != ""; {
		add(sectionOf(lib, section))
		section = section[:max(strings.LastIndexByte(section, '.'), 0)]
	}
	if last := path[strings.LastIndexByte(path, '.')+1:]; last != path {
		add(sectionOf(lib, last))
	}
	switch {
	case p.Given || len(p.Sections) == 0:
		keys = append(keys, p.Name)
	case len(p.Sections) == 1:
		keys = append(keys, p.Sections[0]+"."+p.Name)
	}
	return keys
}

// sectionOf returns the section that describes the module at a path.
func sectionOf(lib *expand.Library, path string) string {
	first, rest, below := strings.Cut(path, ".")
	if below {
		return lib.SectionAt(first) + "." + rest
	}
	return lib.SectionAt(first)
}

func (h moduleHost) Weight(w *expand.Weight) (*ir.Value, error) {
	form, layer := layerForm(w.Std)
	e := &element{std: form, stored: w.Std, layer: layer, experts: w.Count, typ: w.Tensors[0].Type, wide: w.Computed, shape: w.Shape, transform: w.Transform}
	if inner := strings.TrimPrefix(form, joinedDraft); strings.HasPrefix(inner, "dec.") {
		e.std = inner
	}
	for _, t := range w.Tensors {
		e.wide, e.block = e.wide || t.Type != e.typ, e.block || t.Type.IsBlock()
		h.used[t.File] = true
	}
	e.layered = layer >= 0 && slices.ContainsFunc(w.Transform.Sources(), func(name string) bool { return strings.Contains(name, "{i") })
	for _, std := range w.Stds {
		name, _, _ := h.tensor(std)
		h.read[numberless(name)] = true
	}
	if layer >= 0 {
		if err := h.checkAlikeShapes(w); err != nil {
			return nil, err
		}
	}
	at := siteOf(w.Path)
	e.name = at.prefix() + irName(at.rest, w.Name)
	if strings.HasPrefix(form, "enc.") && h.Net.decodes() { // beside the decoder's of that name
		e.name = "enc_" + e.name
	}
	if e.base = e.name; e.layer < 0 && (strings.Contains(w.Name, ".") || numberBehind.MatchString(strings.ReplaceAll(w.Path, ".", "_"))) {
		e.base = numberBehind.ReplaceAllString(e.name, "")
	}
	return h.declare(e, w.Name)
}

// checkAlikeShapes returns an error for a tensor of a layer that has another shape than that of
// the first layer, though the weight's shape is the same, or may be any.
func (h moduleHost) checkAlikeShapes(w *expand.Weight) error {
	for i, std := range w.Stds {
		if i >= len(w.Tensors) {
			break
		}
		form, _ := layerForm(std)
		first, seen := h.firsts[form]
		if !seen {
			h.firsts[form] = firstShape{&w.Tensors[i], w.Shape}
			continue
		}
		t := &w.Tensors[i]
		if !slices.Equal(t.Shape, first.stored.Shape) && (w.Free || slices.Equal(w.Shape, first.made)) {
			return fmt.Errorf("tensor %q (%s): shape %v, want %v (that of %q)", t.File, std, t.Shape, first.stored.Shape, first.stored.File)
		}
	}
	return nil
}

// A firstShape is the shape of a tensor of the first layer that has it, and of the weight that
// it makes.
type firstShape struct {
	stored *expand.Tensor
	made   []int
}

func (h moduleHost) Name(v *ir.Value, name string) { h.t.hints[v] = name }

func (h moduleHost) State(path, name string, s *ir.StateType) (*ir.Value, error) {
	if !s.Fixed {
		s.Page = pageRows
	}
	at, ref := siteOf(path), path+"%"+name
	have := h.states[ref]
	if have == nil {
		have = &layerState{name: at.prefix() + irName(at.rest, name)}
		have.value = &ir.Value{Name: have.name, Kind: ir.State, State: s}
		h.states[ref], h.declares = have, append(h.declares, have)
	}
	return have.value, nil
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
	if h.t == nil {
		return nil, fmt.Errorf("op %s is in no graph", def.Name)
	}
	results, err := h.t.add(def, args, attrs, names)
	if err != nil {
		h.misfit = err
	}
	return results, err
}

func (h moduleHost) Layer(index int) {
	switch {
	case h.t == nil: // in no graph
	case index < 0:
		h.t.end()
	default:
		h.t.begin(index)
	}
}

func (h moduleHost) Graph(name string, dims []*ir.Dim) error {
	h.t = newText(name, dims)
	h.graphs = append(h.graphs, h.t)
	return nil
}

func (h moduleHost) Input(name string, t ir.Type) (*ir.Value, error) {
	v := &ir.Value{Name: name, Kind: ir.Input, Type: t}
	h.t.Inputs = append(h.t.Inputs, v)
	return v, nil
}

func (h moduleHost) Results(names []string, values []*ir.Value) error {
	h.t.results, h.t.Body.Yield = names, values
	h.lowerer.t = nil
	return nil
}
