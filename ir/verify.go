package ir

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// Verify checks the invariants of a module between passes. It returns all violations
// joined, each as an Error with its position if known. It does not change the module.
func Verify(m *Module) error {
	v := &verifier{mod: m, weights: map[*Value]bool{}, states: map[*Value]bool{}}
	v.declarations()
	for _, g := range m.Graphs {
		v.graph(g)
	}
	v.stateOrder()
	v.sources()
	return v.errs.err()
}

// goodName matches legal names of values, without the sigil.
var goodName = regexp.MustCompile(`^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$`)

// goodWord matches legal names of modules, graphs, dims and fields.
var goodWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

type verifier struct {
	mod     *Module
	weights map[*Value]bool
	states  map[*Value]bool
	errs    errorList
}

// A scope is the verifier's state in a graph.
type scope struct {
	*verifier
	graph   *Graph
	names   map[string]*Value // of the whole graph, and the states
	defined map[*Value]bool   // anywhere in the graph so far
	visible []map[*Value]bool // innermost last
	regions []*Op             // enclosing ops with bodies, outermost first
}

func (v *verifier) graph(g *Graph) {
	if !goodWord.MatchString(g.Name) {
		v.errs.addf(g.Pos, "graph name %q is not a word", g.Name)
	}
	if v.mod.Graph(g.Name) != g {
		v.errs.addf(g.Pos, "graph %s is declared twice", g.Name)
	}
	s := &scope{verifier: v, graph: g, names: map[string]*Value{}, defined: map[*Value]bool{}, visible: []map[*Value]bool{{}}}
	for _, st := range v.mod.States {
		s.names[st.Name] = st
	}
	s.dims()
	for _, in := range g.Inputs {
		if in.Kind != Input {
			v.errs.addf(in.Pos, "%s is listed as an input but is a %s", in, in.Kind)
		}
		s.checkType(in)
		s.define(in)
	}
	if g.Body == nil {
		v.errs.addf(g.Pos, "graph %s has no body", g.Name)
		return
	}
	s.block(g.Body)
}

func (s *scope) dims() {
	for i, d := range s.graph.Dims {
		switch d.Role {
		case "tokens", "out_rows", "sequences":
		default:
			s.errs.addf(s.graph.Pos, "graph %s: dim %s has role %q, expected tokens, out_rows or sequences", s.graph.Name, d.Name, d.Role)
		}
		if !goodWord.MatchString(d.Name) {
			s.errs.addf(s.graph.Pos, "graph %s: dim name %q is not a word", s.graph.Name, d.Name)
		}
		for _, e := range s.graph.Dims[:i] {
			if d.Name == e.Name || d.Role == e.Role {
				s.errs.addf(s.graph.Pos, "graph %s: dims %s %s and %s %s share a name or a role", s.graph.Name, e.Name, e.Role, d.Name, d.Role)
			}
		}
	}
}

// checkType checks that a value's dims belong to its graph.
func (s *scope) checkType(v *Value) {
	if v.Type.Elem == 0 {
		s.errs.addf(v.Pos, "%s has no type", v)
	}
	for _, size := range v.Type.Shape {
		switch {
		case size.Dim != nil && !slices.Contains(s.graph.Dims, size.Dim):
			s.errs.addf(v.Pos, "%s is %s, but dim %s is not one of graph %s", v, v.Type, size.Dim.Name, s.graph.Name)
		case size.Dim == nil && (size.N < 1 || size.N > maxSize):
			s.errs.addf(v.Pos, "%s is %s: size %d is out of range", v, v.Type, size.N)
		}
	}
}

func (s *scope) define(v *Value) {
	switch old := s.names[v.Name]; {
	case !goodName.MatchString(v.Name):
		s.errs.addf(v.Pos, "name %q contains illegal characters", v.Name)
	case old == v:
		s.errs.addf(v.Pos, "%s is defined in two places", v)
	case old != nil:
		s.errs.addf(v.Pos, "%s is defined twice, first at %s", v, old.Pos)
	}
	s.names[v.Name] = v
	s.defined[v] = true
	s.visible[len(s.visible)-1][v] = true
}

func (s *scope) sees(v *Value) bool {
	return slices.ContainsFunc(s.visible, func(m map[*Value]bool) bool { return m[v] })
}

func (s *scope) block(b *Block) {
	for _, o := range b.Ops {
		s.op(o)
	}
	for _, y := range b.Yield {
		if err := s.checkUse(Arg{Value: y}, func() int { return len(y.Count) }); err != nil {
			at := s.graph.Pos
			if len(s.regions) > 0 {
				at = s.regions[len(s.regions)-1].Pos
			}
			s.errs.addf(at, "graph %s: yield: %v", s.graph.Name, err)
		} else if y.Kind == Weight || y.Kind == State {
			s.errs.addf(y.Pos, "graph %s: yield of %s, which is a %s", s.graph.Name, y, y.Kind)
		}
	}
}

// opName returns a description of an op for messages: "%q = matmul".
func opName(o *Op) string {
	if len(o.Results) == 0 {
		return o.Def.Name
	}
	return o.Results[0].String() + " = " + o.Def.Name
}

func (s *scope) complain(o *Op, format string, args ...any) {
	s.errs.addf(o.Pos, "graph %s: %s: %s", s.graph.Name, opName(o), fmt.Sprintf(format, args...))
}

func (s *scope) op(o *Op) {
	if o.Def == nil || o.Def.Infer == nil {
		s.errs.addf(o.Pos, "graph %s: op is not in the table", s.graph.Name)
		return
	}
	ok := true
	for i, a := range o.Args {
		if err := s.checkUse(a, func() int { return o.IndexCount(i) }); err != nil {
			s.complain(o, "%v", err)
			ok = false
		}
	}
	if err := o.checkAttrs(); err != nil { // the checks below read them
		s.complain(o, "%v", err)
	} else {
		s.placement(o)
		s.perLayer(o)
		if o.Body != nil {
			s.body(o)
		}
		if ok {
			s.results(o)
		}
	}
	for _, r := range o.Results {
		if r.Kind != Result || r.Op != o {
			s.complain(o, "result %s does not point back to its op", r)
		}
		s.checkType(r)
		s.define(r)
	}
}

func (s *scope) body(o *Op) {
	s.visible = append(s.visible, map[*Value]bool{})
	s.regions = append(s.regions, o)
	if o.Def != Repeat && len(o.Body.Params) > 0 {
		s.complain(o, "carried values belong to repeat only")
	}
	for _, p := range o.Body.Params {
		if p.Kind != Carry {
			s.complain(o, "%s is listed as a carried value but is a %s", p, p.Kind)
		}
		s.checkType(p)
		s.define(p)
	}
	s.block(o.Body)
	s.visible = s.visible[:len(s.visible)-1]
	s.regions = s.regions[:len(s.regions)-1]
}

// results compares the recorded types with the inferred ones.
func (s *scope) results(o *Op) {
	types, err := o.infer()
	if err != nil {
		s.complain(o, "%v", err)
		return
	}
	if len(types) != len(o.Results) {
		s.complain(o, "has %d results, expected %d", len(o.Results), len(types))
		return
	}
	for i, t := range types {
		if !t.Equal(o.Results[i].Type) {
			s.complain(o, "%s is recorded as %s but the op returns %s", o.Results[i], o.Results[i].Type, t)
		}
	}
}

// checkUse checks that a value may be used here, and that its index has count
// numbers.
func (s *scope) checkUse(a Arg, count func() int) error {
	switch {
	case a.Value == nil:
		return fmt.Errorf("an argument is missing")
	case a.Kind == Weight && !s.weights[a.Value], a.Kind == State && !s.states[a.Value]:
		return fmt.Errorf("%s %s is not declared in the module", a.Kind, a.Value)
	case a.Kind == Weight || a.Kind == State:
		return s.checkIndex(a, a.Count[:count()])
	case s.sees(a.Value):
		return nil
	case s.defined[a.Value]:
		return fmt.Errorf("%s is used outside the region that defines it", a)
	}
	return fmt.Errorf("%s is used before it is defined", a)
}

// checkIndex checks an index against the declared ranges of the value, in every
// iteration of the enclosing regions. If no index is written, it checks the ranges of
// the regions.
func (s *scope) checkIndex(a Arg, count []Range) error {
	around := s.indexRanges()
	if a.Index != nil {
		if len(a.Index) != len(count) {
			return fmt.Errorf("%s has %d indices, expected %d", a, len(a.Index), len(count))
		}
		for i, x := range a.Index {
			err := eachIndex(x, around, func(regions []int, n int) error {
				if n < count[i].Lo || n >= count[i].Hi {
					return fmt.Errorf("index %s is outside %d..%d", indexText(x, regions, n), count[i].Lo, count[i].Hi)
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("%s: %w", a, err)
			}
		}
		return nil
	}
	if len(count) > len(around) {
		return fmt.Errorf("%s has %d indices but is in %d repeat and par regions; write the index", a, len(count), len(around))
	}
	for i, c := range count {
		if r := around[i]; r.Lo < c.Lo || r.Hi > c.Hi {
			return fmt.Errorf("%s: indices %d..%d of the enclosing region are outside %d..%d", a, r.Lo, r.Hi, c.Lo, c.Hi)
		}
	}
	return nil
}

// indexText returns a computed index with its value in one iteration: 2*i (8 where i
// is 4).
func indexText(x Index, regions []int, n int) string {
	var where []string
	for k, at := range regions {
		if x.Reads(k) {
			where = append(where, fmt.Sprintf("%s is %d", tensor.IndexName(k), at))
		}
	}
	if where == nil {
		return x.String()
	}
	return fmt.Sprintf("%s (%d where %s)", x, n, strings.Join(where, ", "))
}

// indexRanges returns the index ranges of the enclosing repeat and par regions,
// outermost first.
func (s *scope) indexRanges() []Range {
	var out []Range
	for _, r := range s.regions {
		switch r.Def {
		case Repeat:
			out = append(out, Range{r.Int("lo"), r.Int("hi")})
		case Par:
			out = append(out, Range{0, r.Int("ranks")})
		}
	}
	return out
}
