package spec

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// pageRows is the KV page: one kernel tile of positions.
const pageRows = 64

// Lower writes the model as IR: one module with the graph `decode`.
func Lower(m *Model) (*ir.Module, error) {
	src, err := m.LowerText()
	if err != nil {
		return nil, err
	}
	mod, err := ir.Parse(m.Spec.Name+".ir", src, ops.Table)
	if err != nil {
		return nil, fmt.Errorf("bug: lowering wrote IR that does not parse: %w", err)
	}
	return mod, nil
}

// LowerText is Lower's text, in which the types of ops are left out.
func (m *Model) LowerText() ([]byte, error) {
	m.standard = map[string]string{}
	l := &lowerer{Model: m, t: newText(), decls: map[string]bool{}}
	l.graph()
	if l.err != nil {
		return nil, l.err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "module %s {\n", identifier(m.Spec.Name))
	for _, d := range l.weights {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	fmt.Fprintf(&b, "  %s\n", l.state())
	b.WriteString("  graph decode (T tokens, R wanted, S sequences) {\n")
	b.WriteString(l.t.b.String())
	b.WriteString("  }\n}\n")
	return []byte(b.String()), nil
}

// A lowerer holds the module being written. Its methods are the atomic
// modules, one file per family of them.
type lowerer struct {
	*Model
	t       *text
	weights []string // declarations, in order of use
	decls   map[string]bool
	cs      map[string]string // rope tables by kind
	err     error             // the first thing that could not be lowered
}

func (l *lowerer) fail(format string, args ...any) {
	if l.err == nil {
		l.err = errAt(Pos{File: l.Spec.File}, format, args...)
	}
}

// graph writes inputs, embedding, layers and head.
func (l *lowerer) graph() {
	l.t.line("input %%ids : i32[T]")
	l.t.line("input %%pos : i32[T]")
	l.t.line("input %%wanted : i32[R]")
	l.ropeTables()
	x := l.embedding()
	x = l.layers(x)
	l.t.line("yield %s", l.head(x))
}

// state declares the KV cache.
func (l *lowerer) state() string {
	kv := l.Spec.KVType
	if kv == tensor.Invalid {
		kv = tensor.F16
		if l.Spec.Quant == tensor.F32 {
			kv = tensor.F32
		}
	}
	h := l.Hyper
	s := fmt.Sprintf("state %%kv[%d] : rows {k: %s[%d, %d], v: %s[%d, %d]} paged %d", h.Layers, kv, h.KVHeads, h.HeadDim, kv, h.KVHeads, h.HeadDim, pageRows)
	for _, w := range l.windows {
		if w == 0 || w != l.windows[0] {
			return s
		}
	}
	return fmt.Sprintf("%s window %d", s, l.windows[0])
}

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
