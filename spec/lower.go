package spec

import (
	"regexp"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/expand"
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
	l := &lowerer{Model: m, refs: map[string]*ir.Value{}, byRef: map[string]*element{}, read: map[string]bool{}}
	for _, s := range m.stacks() {
		l.enter(&s)
		if s.std == "enc" {
			l.encode()
		} else {
			l.decode()
		}
	}
	if m.Medusa != nil {
		l.medusa()
	}
	l.checkAllUsed()
	if m.Draft != nil {
		l.draft()
	}
	if l.err != nil {
		return nil, l.err
	}
	for _, g := range l.graphs {
		if g.err != nil {
			return nil, l.misfit(g.err)
		}
	}
	elements := l.collect()
	mod := &ir.Module{Name: identifier(m.Spec.Name), Weights: l.weights, States: l.states}
	for _, g := range l.graphs {
		if err := g.finish(elements); err != nil {
			return nil, err
		}
		mod.Graphs = append(mod.Graphs, g.Graph)
	}
	return mod, nil
}

var weightReference = regexp.MustCompile(`@[A-Za-z0-9_]+`)

// misfit converts an ir error to one about the stored tensors or the
// configuration: an op rejects a stored shape that checkTensors does not check.
func (l *lowerer) misfit(err error) error {
	what, pos := err.Error(), Pos{File: l.Spec.File}
	name := strings.TrimPrefix(weightReference.FindString(what), "@")
	for _, e := range l.elements {
		std := layerName(e.std, max(e.layer, 0))
		if t, ok := l.tensors[std]; ok && e.name == name {
			return errAt(l.Model.at(t), "tensor %q (%s): shape %v does not fit the configuration: %s", t.File, std, t.Shape, what)
		}
	}
	return errAt(pos, "the stored tensors do not fit the configuration: %s", what)
}

// A lowerer holds the module being written. Its methods write the atomic
// modules, grouped by file.
type lowerer struct {
	*Model
	byRef       map[string]*element
	elements    []*element // in the order of their first use
	layerStates []layerState
	weights     []*ir.Value // arrays of the elements
	states      []*ir.Value
	refs        map[string]*ir.Value // elements and states of layers
	graphs      []*text
	read        map[string]bool // standard names of tensors that a weight of several tensors reads
	err         error           // the first error
	expander    *expand.Expander
	params      map[string]any // keys of network_structure

	// The stack and graph being written.
	s             *stack
	Hyper         Hyper // of the stack
	windows       []int
	kv            string // KV cache of self-attention
	embedded      string // token embeddings
	perLayerInput string // embeddings of all layers
	shortcut      string // output of the current layer's experts, added at its end
	temperature   string // factor on queries by position
	firstValues   string // values of the first layer
	selected      string // rows that the last layer with an indexer chose
	isGlobal      string // whether a token is global
	at            int    // layer being written
	t             *text
	cs            map[string]string // rope tables by kind

	// The draft layer.
	draftLowerer *lowerer
	tapped       map[int]string // inputs of the layers that it reads
	prefix       string         // of the names of its weights
	beside       string         // value beside the input of its attention
}

// enter makes s the current stack.
func (l *lowerer) enter(s *stack) {
	l.s, l.Hyper, l.windows, l.at = s, s.hyper, s.windows, 0
	l.t, l.cs, l.tapped = newText(l.refs), map[string]string{}, map[int]string{}
	l.kv = "kv"
	if s.std == "enc" {
		l.kv = "enc"
	}
}

// has reports whether the model, or the current layer, has the tensor.
func (l *lowerer) has(std string) bool {
	_, ok := l.tensors[layerName(std, l.at)]
	return ok
}

func (l *lowerer) fail(format string, args ...any) {
	if l.err == nil {
		l.err = errAt(Pos{File: l.Spec.File}, format, args...)
	}
}

// decode writes the decoder's graph: inputs, embedding, layers and head.
func (l *lowerer) decode() {
	l.inputs("ids", "pos", "out_rows")
	l.ropeTables()
	l.embedded = l.embedding()
	l.perLayerInputs()
	if n := l.Net; n.TemperatureFloor > 0 {
		a := attrs{}.int("floor", n.TemperatureFloor).num("by", n.TemperatureScale)
		if n.TemperatureRope {
			a = a.int("offset", 0)
		}
		l.temperature = l.t.op("temp", "position_scale", []string{"%pos"}, a)
	}
	x := l.layers(l.expandStreams(l.embedded))
	results := map[string]string{}
	if l.Draft != nil {
		results[draftFeatures] = l.features(x)
	}
	logits, hidden := l.head(x)
	if results["logits"] = logits; !l.crosses() {
		results["hidden"] = hidden
		l.decoderHeads(hidden, results)
		l.yield(results, "logits", "hidden", "classes", "embedding", draftFeatures)
	} else {
		l.yield(results, "logits")
	}
	l.graph("decode")
}

func (l *lowerer) inputs(names ...string) {
	for _, n := range names {
		dim := "T"
		if n == "out_rows" {
			dim = "R"
		}
		l.t.input(n, tensor.I32, dim)
	}
}

// yield ends the graph with its results under the given names.
func (l *lowerer) yield(values map[string]string, order ...string) {
	for _, name := range order {
		if v, ok := values[name]; ok {
			l.t.yield = append(l.t.yield, yielded{name, v})
		}
	}
}

func (l *lowerer) graph(name string) {
	l.t.Name = name
	l.graphs = append(l.graphs, l.t)
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
func (l *lowerer) checkAllUsed() {
	used := map[string]bool{}
	for _, e := range l.elements {
		used[e.std] = true
	}
	for _, std := range l.Tensors() {
		form, _ := layerForm(std)
		form = tensorIndex.ReplaceAllString(form, ".{j}.")
		alike := strings.Replace(form, "_norm.{j}.", "_norm.", 1) // one tensor per head
		if used[std] || used[form] || used[alike] || l.read[form] || std == "output.weight" && l.Net.TiedEmbeddings {
			continue
		}
		l.fail("tensor %q maps to %s, which no module of this network reads%s", l.tensors[std].File, std, l.Spec.unreadHint())
		return
	}
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
