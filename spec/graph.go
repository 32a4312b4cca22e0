package spec

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/expand"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/syntax"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// graphReference matches the references in a model spec's `graph`, which is a
// module in the IR language in place of the one generated from
// network_structure. $name is a hyper-parameter and ${…} an expression over
// them; $weight_type and $kv_type are the types of the stored matrices and of
// the KV cache.
var graphReference = regexp.MustCompile(`\$\{([^}\n]*)\}|\$[A-Za-z_][A-Za-z0-9_]*`)

// maxName is the most bytes of a value in a graph.
const maxName = 256

// graphText replaces the references of the graph by the values of hyper-parameters.
func (m *Model) graphText() ([]byte, error) {
	values := map[string]any{}
	for k, v := range m.Spec.Config {
		values[k] = v
	}
	for k, size := range map[string]string{"head_dim": "head_dim", "num_key_value_heads": "kv_heads"} {
		if n := m.size(size); values[k] == nil && n > 0 {
			values[k] = float64(n)
		}
	}
	values["weight_type"], values["kv_type"] = m.stored.String(), m.stateType().String()
	var failed error
	steps := 0
	text := graphReference.ReplaceAllStringFunc(m.Spec.Graph, func(ref string) string {
		if failed != nil {
			return ""
		}
		src := ref
		if strings.HasPrefix(ref, "${") {
			src = ref[2 : len(ref)-1]
		}
		x, err := expand.Evaluate(library(), src, values, &steps)
		if err == nil && x == nil {
			err = errors.New("missing; give the value that the model was trained with under hyper:")
		}
		if err != nil {
			failed = errAt(m.Spec.Pos("graph"), "graph: %s: %v", ref, err)
			return ""
		}
		if f, ok := number(x); ok {
			if math.Abs(f) < 1<<53 && f == math.Trunc(f) { // sizes are written without exponents
				return strconv.FormatInt(int64(f), 10)
			}
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
		text := fmt.Sprint(x)
		if len(text) > maxName {
			failed = errAt(m.Spec.Pos("graph"), "graph: %s: a value of %d bytes; want a number or a name", ref, len(text))
			return ""
		}
		return text
	})
	text = strings.ReplaceAll("\n"+text, "\n", "\n  ") // indented as in a model spec
	return []byte("module " + syntax.QuoteName(identifier(m.Spec.Name)) + " {" + text + "\n}\n"), failed
}

// parseGraph parses the text of a graph. The text starts on the line of the key,
// so that errors contain positions in the model spec.
func (m *Model) parseGraph(src []byte) (*ir.Module, error) {
	at := m.Spec.Pos("graph")
	mod, err := ir.Parse(at.File, append(bytes.Repeat([]byte{'\n'}, max(at.Line-1, 0)), src...), ops.Table)
	if err != nil {
		return nil, err
	}
	for _, s := range mod.States { // $kv_type is the type of values
		for i, f := range s.State.Fields {
			if f.Name == "k" && !s.State.Fixed {
				s.State.Fields[i].Elem = f.Elem.OfKeys()
			}
		}
	}
	return mod, nil
}

// resolveGraph parses the model spec's graph and checks that the files contain
// exactly the tensors that its weights read.
func (m *Model) resolveGraph(h Headers) error {
	src, err := m.graphText()
	if err != nil {
		return err
	}
	mod, err := m.parseGraph(src)
	if err != nil {
		return err
	}
	if err := ir.Verify(mod); err != nil {
		return err
	}
	m.graph = src
	if err := m.pinFloats(mod); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, w := range mod.Weights {
		if w.Transform == nil {
			return errAt(m.Spec.Pos("graph"), "graph: weight %s: no transform; want from \"NAME\"", w)
		}
		for _, pattern := range w.Transform.Sources() {
			names, err := storedNames(pattern, w.Count)
			if err != nil {
				return errAt(m.Spec.Pos("graph"), "graph: weight %s: %v", w, err)
			}
			for _, name := range names {
				if _, _, ok := h.Lookup(name); !ok {
					return errAt(m.Spec.Pos("graph"), "graph: weight %s: the files have no tensor %q%s", w, name, suggestOnlyOf(name, h.Names()))
				}
				used[name] = true
			}
		}
	}
	for _, name := range h.Names() {
		switch {
		case m.Spec.ignored(name):
			m.Unused = append(m.Unused, name)
		case !used[name]:
			m.unmatched = append(m.unmatched, name)
		}
	}
	return m.checkUnused()
}

// pinFloats finds the weights that the graph declares as f32, whatever $weight_type is: quant
// does not change them.
func (m *Model) pinFloats(mod *ir.Module) error {
	other := mod
	if m.stored == tensor.F32 {
		as := *m
		as.stored = tensor.F16
		src, err := as.graphText()
		if err != nil {
			return err
		}
		if other, err = m.parseGraph(src); err != nil {
			return err
		}
	}
	for _, w := range mod.Weights {
		if o := other.Weight(w.Name); w.Type.Elem == tensor.F32 && o != nil && o.Type.Elem == tensor.F32 {
			m.pinned = append(m.pinned, w.Name)
		}
	}
	return nil
}

func suggestOnlyOf(name string, names []string) string {
	if n := spelling.Nearest(name, names); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}

// maxGraphTensors is the maximum number of tensors that one weight of a graph may read.
const maxGraphTensors = 1 << 20

// storedNames returns the names that a pattern expands to for all indices of the
// weight.
func storedNames(pattern string, counts []ir.Range) ([]string, error) {
	indices, err := tensor.SourceIndices(pattern)
	if err != nil {
		return nil, err
	}
	all := [][]int{{}} // indices of the weight that occur in the pattern
	for k, c := range counts {
		if !slices.ContainsFunc(indices, func(x tensor.Index) bool { return x.Reads(k) }) {
			c.Hi = c.Lo + 1
		}
		if len(all)*c.Len() > maxGraphTensors {
			return nil, fmt.Errorf("tensor %q: more than %d names", pattern, maxGraphTensors)
		}
		var next [][]int
		for _, index := range all {
			for n := c.Lo; n < c.Hi; n++ {
				next = append(next, append(slices.Clip(index), n))
			}
		}
		all = next
	}
	var names []string
	for _, index := range all {
		name, err := tensor.SourceName(pattern, index)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// lowerGraph is Lower for a model spec with a graph.
func (m *Model) lowerGraph() (*ir.Module, error) {
	m.declared = map[string]declaration{}
	mod, err := m.parseGraph(m.graph)
	if err != nil {
		return nil, err
	}
	for _, w := range mod.Weights {
		m.declared[w.Name] = declaration{name: w.Name, std: w.Name, base: w.Name}
	}
	return mod, nil
}
