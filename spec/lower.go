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

// pageRows is the KV page: one kernel tile of positions.
const pageRows = 64

// Lower writes the model as IR: one module with the graph `decode`, or
// `encode`, or both for an encoder-decoder.
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

// misfit returns the error for a graph that ops refuse: the shape of a stored tensor,
// where no rule of shapes says what it must be.
func (m *Model) misfit(err error) error {
	what, pos := err.Error(), Pos{File: m.Spec.File}
	if first := (*ir.Error)(nil); errors.As(err, &first) {
		what = first.Msg
	}
	name := strings.TrimPrefix(weightReference.FindString(what), "@")
	for _, std := range m.Tensors() {
		if form, _ := layerForm(std); form == m.standard[name] {
			t := m.tensors[std]
			return errAt(m.at(t), "tensor %q (%s): shape %v does not fit the configuration: %s", t.File, std, t.Shape, what)
		}
	}
	return errAt(pos, "the stored tensors do not fit the configuration: %s", what)
}

// LowerText is Lower's text, in which the types of ops are left out.
func (m *Model) LowerText() ([]byte, error) {
	if m.graph != nil {
		return m.lowerGraph(), nil
	}
	m.standard = map[string]string{}
	l := &lowerer{Model: m, decls: map[string]bool{}}
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
	if l.err != nil {
		return nil, l.err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "module %s {\n", identifier(m.Spec.Name))
	for _, d := range append(l.weights, l.states...) {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	for _, g := range l.graphs {
		b.WriteString(g)
	}
	b.WriteString("}\n")
	return []byte(b.String()), nil
}

// A lowerer holds the module being written. Its methods are the atomic
// modules, one file per family of them.
type lowerer struct {
	*Model
	weights []string // declarations, in order of use
	states  []string // declarations
	graphs  []string
	decls   map[string]bool
	err     error // the first thing that could not be lowered

	// The stack and graph being written.
	s       *stack
	Hyper   Hyper // of the stack
	windows []int
	kv      string // state of self-attention
	at      int    // first layer of the run being written
	t       *text
	cs      map[string]string // rope tables by kind
}

// enter starts on a stack.
func (l *lowerer) enter(s *stack) {
	l.s, l.Hyper, l.windows, l.at = s, s.hyper, s.windows, 0
	l.t, l.cs = newText(), map[string]string{}
	l.kv = "%kv"
	if s.std == "enc" {
		l.kv = "%enc"
	}
}

// has reports whether the model, or the layer being written, has the tensor.
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
	x := l.layers("xn", l.embedding())
	logits, hidden := l.head(x)
	if !l.crosses() {
		l.yield(map[string]string{"logits": logits, "hidden": hidden}, "logits", "hidden")
	} else {
		l.yield(map[string]string{"logits": logits}, "logits")
	}
	l.state(l.kv, l.windows, "")
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

// yield ends the graph with its results, under the names they go by.
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

// state declares keys and values of the stack's layers; suffix is "source" or "".
func (l *lowerer) state(name string, windows []int, suffix string) {
	h, kv := l.Hyper, l.Spec.stateType()
	s := fmt.Sprintf("state %s[%d] : rows {k: %s[%d, %d], v: %s[%d, %d]} paged %d", name, h.Layers, kv, h.KVHeads, h.HeadDim, kv, h.KVHeads, h.VDim, pageRows)
	if same := commonWindow(windows); same > 0 && suffix == "" {
		s += fmt.Sprintf(" window %d", same)
	}
	if suffix != "" {
		s += " " + suffix
	}
	l.states = append(l.states, s)
}

// stateType returns the element type of keys and values.
func (s *Spec) stateType() tensor.DType {
	switch {
	case s.KVType != tensor.Invalid:
		return s.KVType
	case s.Quant == tensor.F32:
		return tensor.F32
	}
	return tensor.F16
}

// commonWindow returns the window of all layers; 0 where they differ or have none.
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

// checkAllUsed refuses a tensor with a standard name that no module of this
// network reads: leaving it out silently would give wrong numbers.
func (l *lowerer) checkAllUsed() {
	used := map[string]bool{}
	for _, std := range l.standard {
		used[std] = true
	}
	for _, std := range l.Tensors() {
		form, _ := layerForm(std)
		form = tensorIndex.ReplaceAllString(form, ".{j}.")
		alike := strings.Replace(form, "_norm.{j}.", "_norm.", 1) // one tensor a head
		if used[form] || used[alike] || std == "output.weight" && l.Net.TiedEmbeddings {
			continue
		}
		l.fail("tensor %q stands for %s, which no module of this network reads%s", l.tensors[std].File, std, l.Spec.unreadHint())
		return
	}
}

var tensorIndex = regexp.MustCompile(`\.[0-9]+\.`)

// identifier makes a module name of a model's name.
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
