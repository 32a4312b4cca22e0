package spec

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/expand"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// pageRows is the size of a KV cache page: one kernel tile of positions.
const pageRows = 64

// Lower returns the model as an IR module. It has the graph `decode`, `encode`
// for an encoder, or both for an encoder-decoder.
func Lower(m *Model) (*ir.Module, error) {
	if m.graph != nil {
		return m.lowerGraph()
	}
	m.declared = map[string]declaration{}
	l := newLowerer(m)
	if _, err := l.call("transformer", "", nil); err != nil {
		return nil, l.located(err)
	}
	if err := l.checkAllUsed(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(l.graphs, func(a, b *text) int { return last(a) - last(b) })
	elements := map[*ir.Value]ir.Arg{}
	mod := &ir.Module{Name: identifier(m.Spec.Name), Weights: l.arrays(elements), States: l.stateArrays(elements)}
	for _, g := range l.graphs {
		if err := g.finish(elements); err != nil {
			return nil, err
		}
		mod.Graphs = append(mod.Graphs, g.Graph)
	}
	return mod, nil
}

// last is 1 for the graph with the model's results, which is the last one.
func last(g *text) int {
	if g.Name == "decode" {
		return 1
	}
	return 0
}

var weightReference = regexp.MustCompile(`@[A-Za-z0-9_]+`)

// located returns an error of a module with a position: that of the key which sets a
// parameter, or of the tensor whose shape an op rejects.
func (l *lowerer) located(err error) error {
	pos := Pos{File: l.Spec.File}
	if l.misfit != nil {
		name := strings.TrimPrefix(weightReference.FindString(l.misfit.Error()), "@")
		for _, e := range l.elements {
			if e.name == name {
				t, _ := l.tensor(e.stored)
				return errAt(l.Model.at(t), "tensor %q (%s): shape %v does not fit the configuration: %v", t.File, e.stored, t.Shape, err)
			}
		}
		return errAt(pos, "the stored tensors do not fit the configuration: %v", err)
	}
	var e *expand.Error
	if !errors.As(err, &e) {
		return errAt(pos, "%v", err)
	}
	for _, name := range e.Params {
		for _, key := range keysOf(e.Module, e.Path, name) {
			if key = "network_structure." + key; l.Spec.Set(key) {
				return errAt(l.Spec.Pos(key), "%v", err)
			}
		}
	}
	return errAt(pos, "%v", err)
}

// A lowerer holds the module being written.
type lowerer struct {
	*Model
	byRef    map[string]*element
	made     map[string]*element // those of no layer, by what makes them
	elements []*element          // in the order of their first use
	states   map[string]*layerState
	declares []*layerState // in the order of their first use
	graphs   []*text
	t        *text           // the graph being written
	read     map[string]bool // standard names of tensors that modules know
	params   map[site]map[string]any
	found    map[paramKey]setting
	misfit   error // of an op
}

func newLowerer(m *Model) *lowerer {
	return &lowerer{Model: m, byRef: map[string]*element{}, made: map[string]*element{}, states: map[string]*layerState{}, read: map[string]bool{}, params: map[site]map[string]any{}, found: map[paramKey]setting{}}
}

// call expands a module of the library.
func (l *lowerer) call(module, path string, args []any) ([]any, error) {
	return expand.New(library(), ops.Table, moduleHost{l}).Call(module, path, args, nil)
}

// stateType returns the element type of the KV cache; without kv_type, f32 for f32 weights.
func (m *Model) stateType() tensor.DType {
	s := m.Spec
	switch {
	case s.KVType != tensor.Invalid:
		return s.KVType
	case s.Quant == tensor.F32, s.Quant == tensor.Invalid && m.stored == tensor.F32:
		return tensor.F32
	}
	return tensor.F16
}

// checkAllUsed returns an error for a tensor with a standard name that no module
// of this network reads. Omitting such a tensor silently would give wrong results.
func (l *lowerer) checkAllUsed() error {
	unread := func(m *Model, prefix string) error {
		for _, std := range m.Tensors() {
			form, _ := layerForm(prefix + strings.TrimPrefix(std, prefix))
			indexed := tensorIndex.ReplaceAllString(form, ".{j}.")
			alike := strings.Replace(indexed, "_norm.{j}.", "_norm.", 1) // one tensor per head
			if !l.read[form] && !l.read[indexed] && !l.read[alike] {
				return errAt(Pos{File: l.Spec.File}, "tensor %q maps to %s, which no module of this network reads%s", m.tensors[std].File, std, l.Spec.unreadHint())
			}
		}
		return nil
	}
	if l.Draft != nil {
		if err := unread(l.Draft.Model, joinedDraft); err != nil {
			return err
		}
	}
	return unread(l.Model, "")
}

var tensorIndex = regexp.MustCompile(`\.[0-9]+\.`)

// identifier converts a model's name to a module name.
func identifier(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', '0' <= c && c <= '9' && b.Len() > 0:
			b.WriteRune(c)
		default:
			b.WriteByte('_')
		}
	}
	if b.Len() == 0 {
		return "model"
	}
	return b.String()
}
