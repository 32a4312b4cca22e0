package spec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
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
// for an encoder, or both for an encoder-decoder. It returns an error if a tensor is
// missing, unused or of the wrong shape.
func Lower(m *Model) (*ir.Module, error) {
	if m.graph != nil {
		return m.lowerGraph()
	}
	m.declared = map[string]declaration{}
	l := newLowerer(m)
	_, err := l.call(rootModule, "", nil)
	if err != nil {
		err = l.located(err)
	}
	if err = cmp.Or(err, l.checkAlike(), m.checkUnused(), l.checkAllRead()); err != nil {
		return nil, cmp.Or(m.Spec.checkStandard(), err) // a name of no tensor is a likely reason
	}
	m.Unused, m.used = slices.Clone(m.ignored), l.used
	for _, t := range m.tensors {
		if !m.used[t.File] {
			m.Unused = append(m.Unused, t.File)
		}
	}
	slices.Sort(m.Unused)
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
// parameter, or of the tensor that is missing or has a wrong shape.
func (l *lowerer) located(err error) error {
	var e *expand.Error
	if !errors.As(err, &e) {
		return errAt(Pos{File: l.Spec.File}, "%v", err)
	}
	if rest, ofHeads := strings.CutPrefix(e.Std, joinedHeads); e.Absent && ofHeads {
		return errAt(l.Spec.Pos("medusa"), "medusa: no tensor %q of numbers; are the heads those of this model?", rest)
	}
	if e.Absent {
		return l.missing(e.Std)
	}
	pos, std := Pos{File: l.Spec.File}, e.Std
	if l.misfit != nil {
		name := strings.TrimPrefix(weightReference.FindString(l.misfit.Error()), "@")
		i := slices.IndexFunc(l.elements, func(e *element) bool { return e.name == name })
		if i < 0 {
			return inModule(pos, "the stored tensors do not fit the configuration: "+e.Msg, e)
		}
		std = l.elements[i].stored
		_, t, _ := l.tensor(std)
		e.Msg = fmt.Sprintf("tensor %q (%s): shape %v does not fit the configuration: %s", t.File, std, t.Shape, e.Msg)
	}
	keys, at := []string{}, siteOf(e.Path)
	for _, p := range e.Params {
		for _, key := range keysOf(l.of(at).Net.modules(), p, e.Reader, at.rest) {
			keys = append(keys, join(networkKey, key), join(networkKey, key[:max(strings.LastIndexByte(key, '.'), 0)]))
		}
		e.Config = append(e.Config, l.sizeKeys[p.Name]...)
	}
	for _, key := range e.Config {
		keys = append(keys, "hyper."+key)
	}
	set := slices.IndexFunc(keys, l.Spec.Set)
	_, t, ofTensor := l.tensor(std)
	switch {
	case ofTensor && t.Pos != Pos{}:
		pos = t.Pos
	case set >= 0:
		pos = l.Spec.Pos(keys[set])
	case ofTensor && l.Spec.ConfigFile != "":
		pos = Pos{File: filepath.Join(l.Spec.ModelDir, l.Spec.ConfigFile)}
	}
	return inModule(pos, e.Msg, e)
}

// inModule returns an error of one line, and behind it the place in the text of modules, if that matters.
func inModule(pos Pos, msg string, e *expand.Error) error {
	err := errAt(pos, "%s", msg).(*Error)
	if e.Line != "" {
		err.What += "\n" + e.Place()
	}
	return err
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
	t        *text                 // the graph being written
	read     map[string]bool       // standard names of tensors that modules know, with {j} for numbers
	used     map[string]bool       // stored names of tensors that weights are made of
	absent   map[string]bool       // standard names that modules ask for in vain
	present  map[string]bool       // those of layers that they ask for and find, with {i}
	firsts   map[string]firstShape // by form
	params   map[site]map[string]any
	found    map[paramKey]setting
	lastPath string // whose site is lastSite
	lastSite site
	misfit   error // of an op
}

func newLowerer(m *Model) *lowerer {
	return &lowerer{Model: m, byRef: map[string]*element{}, made: map[string]*element{}, states: map[string]*layerState{}, read: map[string]bool{}, used: map[string]bool{}, absent: map[string]bool{}, present: map[string]bool{}, firsts: map[string]firstShape{}, params: map[site]map[string]any{}, found: map[paramKey]setting{}}
}

// call expands a module of the library.
func (l *lowerer) call(module, path string, args []any) ([]any, error) {
	return expand.New(l.Net.modules(), ops.Table, moduleHost{l}).Call(module, path, args, nil)
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

// checkAlike returns an error for a tensor that some layers have and others lack, though their
// modules can read it: they would compute something else. uneven_tensors are exceptions.
func (l *lowerer) checkAlike() error {
	for _, std := range slices.Sorted(maps.Keys(l.absent)) {
		if form, _ := layerForm(std); l.present[form] && !slices.Contains(l.Net.UnevenTensors, siteOf(std).rest) {
			return l.missing(std)
		}
	}
	return nil
}

// checkAllRead returns an error for a tensor with a standard name that no module
// of this network reads. Omitting such a tensor silently would give wrong results.
func (l *lowerer) checkAllRead() error {
	if l.Draft != nil {
		if err := l.unread(l.Draft.Model, joinedDraft); err != nil {
			return err
		}
	}
	return l.unread(l.Model, "")
}

func (l *lowerer) unread(m *Model, prefix string) error {
	for _, std := range m.Tensors() {
		if !l.read[numberless(prefix+strings.TrimPrefix(std, prefix))] {
			return errAt(Pos{File: l.Spec.File}, "tensor %q maps to %s, which no module of this network reads%s", m.tensors[std].File, std, l.Spec.unreadHint())
		}
	}
	return nil
}

// numberless returns a standard name with {j} for the numbers in it, except for the layer's.
func numberless(std string) string {
	rest := siteOf(std).rest
	if !strings.ContainsAny(rest, "0123456789") { // of most, and models have up to 50,000
		return std
	}
	return std[:len(std)-len(rest)] + tensorIndex.ReplaceAllString("."+rest, ".{j}.")[1:]
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
