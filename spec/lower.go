package spec

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// pageRows is the size of a KV cache page: one kernel tile of positions.
const pageRows = 64

// Lower returns the model as an IR module. It has the graph `decode`, `encode`
// for an encoder, or both for an encoder-decoder.
func Lower(m *Model) (*ir.Module, error) {
	src, err := m.LowerText()
	if err != nil {
		return nil, err
	}
	if m.graph != nil {
		return m.parseGraph(src)
	}
	mod, err := ir.Parse(m.Spec.Name+".ir", src, ops.Table)
	if err != nil {
		return nil, m.misfit(err)
	}
	return mod, nil
}

var weightReference = regexp.MustCompile(`@[A-Za-z0-9_]+`)

// misfit converts an ir error to one about the stored tensors or the
// configuration: an op rejects a stored shape that checkTensors does not check.
func (m *Model) misfit(err error) error {
	what, pos := err.Error(), Pos{File: m.Spec.File}
	if first := (*ir.Error)(nil); errors.As(err, &first) {
		what = first.Msg
	}
	name := strings.TrimPrefix(weightReference.FindString(what), "@")
	for _, std := range m.Tensors() {
		if form, _ := layerForm(std); form == m.declared[name].std {
			t := m.tensors[std]
			return errAt(m.at(t), "tensor %q (%s): shape %v does not fit the configuration: %s", t.File, std, t.Shape, what)
		}
	}
	return errAt(pos, "the stored tensors do not fit the configuration: %s", what)
}

// LowerText returns the IR text that Lower parses. It omits the types of ops.
func (m *Model) LowerText() ([]byte, error) {
	if m.graph != nil {
		return m.lowerGraph(), nil
	}
	m.declared = map[string]declaration{}
	l := &lowerer{Model: m, decls: map[string]bool{}, read: map[string]bool{}}
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
	var b strings.Builder
	fmt.Fprintf(&b, "module %s {\n", ir.QuoteName(identifier(m.Spec.Name)))
	for _, d := range append(l.weights, l.states...) {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	for _, g := range l.graphs {
		b.WriteString(g)
	}
	b.WriteString("}\n")
	return []byte(b.String()), nil
}

// A lowerer holds the module being written. Its methods write the atomic
// modules, grouped by file.
type lowerer struct {
	*Model
	weights []string // declarations, in the order of their first use
	states  []string // declarations
	graphs  []string
	decls   map[string]bool // declared weights, with @, and fixed states, with %
	read    map[string]bool // standard names of tensors that a weight of several tensors reads
	err     error           // the first error

	// The stack and graph being written.
	s                   *stack
	Hyper               Hyper // of the stack
	windows             []int
	kv                  string // KV cache of self-attention
	embedded            string // token embeddings
	perLayerInput       string // embeddings of all layers
	shortcut            string // output of the current layer's experts, added at its end
	temperature         string // factor on queries by position
	values, firstValues string // values of the layer being written, and of the first layer
	selected            string // rows that the last layer with an indexer chose
	isGlobal            string // whether a token is global
	attendedTo          string // input of the attention being written
	at                  int    // first layer of the run being written
	layersOfRun         int
	t                   *text
	cs                  map[string]string // rope tables by kind

	// The draft layer.
	draftLowerer *lowerer
	tapped       map[int]string // inputs of the layers that it reads
	prefix       string         // of the names of its weights
	beside       string         // value beside the input of its attention
}

// enter makes s the current stack.
func (l *lowerer) enter(s *stack) {
	l.s, l.Hyper, l.windows, l.at = s, s.hyper, s.windows, 0
	l.t, l.cs, l.tapped = newText(), map[string]string{}, map[int]string{}
	l.kv = "%kv"
	if s.std == "enc" {
		l.kv = "%enc"
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
	x := l.layers("xn", l.expandStreams(l.embedded))
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
	for k, layers := range l.caches() {
		h := l.sizesAt(l.s, layers[0])
		if l.Net.Differential {
			h.KVHeads, h.VDim = h.KVHeads/2, 2*h.VDim
			l.state(secondCache(l.cacheName(k)), h, layers, "")
		}
		l.state(l.cacheName(k), h, layers, "")
		if l.Net.LayerParts == 2 {
			l.state(secondCache(l.cacheName(k)), h, layers, "")
		}
	}
	l.indexState()
	l.compressedState()
	l.graph("decode")
}

func (l *lowerer) inputs(names ...string) {
	for _, n := range names {
		dim := "T"
		if n == "out_rows" {
			dim = "R"
		}
		l.t.line("input %%%s : i32[%s]", n, dim)
	}
}

// yield ends the graph with its results under the given names.
func (l *lowerer) yield(values map[string]string, order ...string) {
	var out []string
	for _, name := range order {
		if v, ok := values[name]; ok {
			l.t.rename(v, "%"+name)
			out = append(out, "%"+name)
		}
	}
	l.t.line("yield %s", strings.Join(out, ", "))
}

func (l *lowerer) graph(name string) {
	l.graphs = append(l.graphs, fmt.Sprintf("  graph %s (T tokens, R out_rows, S sequences) {\n%s  }\n", name, l.t.b.String()))
}

// state declares the KV cache of layers with the heads of h;
// suffix is "source" or "".
func (l *lowerer) state(name string, h Hyper, layers []int, suffix string) {
	kv := l.stateType()
	var windows []int
	for _, i := range layers {
		if suffix == "" {
			windows = append(windows, l.windows[i])
		}
	}
	s := fmt.Sprintf("state %s[%d] : rows {k: %s[%d, %d], v: %s[%d, %d]} paged %d", name, len(layers), kv.OfKeys(), h.KVHeads, h.HeadDim, kv, h.KVHeads, h.VDim, pageRows)
	if same := commonWindow(windows); same > 0 && suffix == "" {
		s += fmt.Sprintf(" window %d", same)
	}
	if suffix != "" {
		s += " " + suffix
	}
	l.states = append(l.states, s)
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

// indexType returns the element type of an indexer's keys.
func (m *Model) indexType() tensor.DType {
	if t := m.stateType(); !t.IsBlock() {
		return t
	}
	return tensor.F16
}

// commonWindow returns the window of all layers; 0 if they differ or have none.
func commonWindow(windows []int) int {
	for _, w := range windows {
		if w != windows[0] {
			return 0
		}
	}
	if len(windows) == 0 {
		return 0
	}
	return windows[0]
}

// checkAllUsed returns an error for a tensor with a standard name that no module
// of this network reads. Omitting such a tensor silently would give wrong results.
func (l *lowerer) checkAllUsed() {
	used := map[string]bool{}
	for _, d := range l.declared {
		used[d.std] = true
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
