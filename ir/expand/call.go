package expand

import (
	"maps"
	"slices"
	"strconv"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/syntax"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// ofNames calls a function whose argument is a name: that of a tensor, or of a key.
func (f *frame) ofNames(e *syntax.Expr) (any, bool) {
	switch e.Text {
	case "stored":
		return f.stored(e), true
	case "known":
		return f.known(e), true
	case "size":
		return f.size(e), true
	case "tensor":
		if len(e.Args) < 1 || len(e.Args) > 2 || e.Args[0].Kind != syntax.StringLit {
			f.fail("tensor needs the name of a tensor in quotes, and perhaps its sizes")
		}
		s := f.tensor(e.Args[0])
		if len(e.Args) == 2 {
			s = f.sized(s, e.Args[1])
		}
		return s, true
	}
	return nil, false
}

// callExpr calls an op, a module or a function, and returns its results. names are those
// that the results get.
func (f *frame) callExpr(e *syntax.Expr, names []string) []any {
	f.step(e.Pos)
	if f.words {
		return f.wordCall(e)
	}
	if v, ok := f.ofNames(e); ok {
		return []any{v}
	}
	if f.isTransform(e, false) {
		return []any{f.source(e)}
	}
	args := make([]any, len(e.Args))
	for i, a := range e.Args {
		args[i] = f.eval(a)
	}
	f.at = e.Pos
	if fn, ok := functions[e.Text]; ok {
		if len(e.Named) > 0 || e.As != nil {
			f.fail("arguments of function %s have no names", e.Text)
		}
		return []any{fn.call(f, e.Text, args)}
	}
	if def := f.ops[e.Text]; def != nil {
		if e.As != nil {
			f.fail("%s is an op; only modules have instances", e.Text)
		}
		return f.callOp(def, e, args, names)
	}
	if below := f.module.below; e.Text == "base" && below != nil { // what the module replaces, in its own instance
		m, err := below.module(f.module.Name)
		if err != nil {
			panic(failure{err})
		}
		return f.call(f.lib, m, e, f.path, args, f.named(e))
	}
	path, lib := f.instance(e), f.lib
	f.at = e.Pos
	if own := f.host.Library(path); own != nil {
		lib = own
	}
	m, err := lib.module(e.Text)
	if err != nil {
		known := slices.Concat(lib.Names(), slices.Sorted(maps.Keys(f.ops)), functionNames())
		if _, isModule := lib.sources[e.Text]; isModule {
			panic(failure{err}) // of its text
		}
		f.fail("no op, module or function %s%s", e.Text, spelling.DidYouMean(e.Text, known))
	}
	return f.call(lib, m, e, path, args, f.named(e))
}

// named evaluates the arguments that have names.
func (f *frame) named(e *syntax.Expr) map[string]any {
	if len(e.Named) == 0 {
		return nil
	}
	out := make(map[string]any, len(e.Named))
	for _, a := range e.Named {
		if _, twice := out[a.Name]; twice {
			f.at = a.Pos
			f.fail("%s is given twice", a.Name)
		}
		out[a.Name] = f.eval(a.Val)
	}
	f.at = e.Pos
	return out
}

// instance returns the path of the instance that a call makes.
func (f *frame) instance(e *syntax.Expr) string {
	if e.As == nil {
		return join(f.path, e.Text)
	}
	if e.As.Index == nil {
		return below(f.path, e.As.Name, "")
	}
	n, ok := f.eval(e.As.Index).(int)
	if f.at = e.As.Pos; !ok || n < 0 {
		f.fail("the number of an instance is 0 or more")
	}
	return below(f.path, e.As.Name, strconv.Itoa(n))
}

// callOp adds an op to the graph.
func (f *frame) callOp(def *ir.OpDef, e *syntax.Expr, args []any, names []string) []any {
	if f.made++; f.made > maxOps {
		f.fail("the modules make more than %d ops", maxOps)
	}
	var values []*ir.Value
	for i, v := range f.flatten(nil, args) {
		switch v := v.(type) {
		case nil: // an optional argument that is absent
		case *ir.Value:
			values = append(values, v)
		case *weightVar:
			if v.found == nil {
				continue
			}
			values = append(values, f.use(v))
		default:
			f.fail("op %s: argument %d is %s, want a value, weight or state; attributes have names", def.Name, i+1, typeName(v))
		}
	}
	var attrs ir.Attrs
	for _, a := range e.Named {
		v := f.eval(a.Val)
		f.at = a.Pos
		if _, twice := attrs.Get(a.Name); twice {
			f.fail("%s is given twice", a.Name)
		}
		if v != nil {
			attrs = append(attrs, ir.Attr{Name: a.Name, Val: f.attr(def, a.Name, v)})
		}
	}
	f.at = e.Pos
	if names == nil {
		names = []string{def.Name}
	}
	results, err := f.host.Op(def, values, attrs, names)
	if err != nil {
		f.fail("%v", err)
	}
	out := make([]any, len(results))
	for i, v := range results {
		out[i], f.born[v] = v, f.made
	}
	return out
}

// attr converts the value of an attribute to the type that the op declares.
func (f *frame) attr(def *ir.OpDef, name string, v any) any {
	d := def.Attr(name)
	if d == nil {
		var known []string
		for _, a := range def.Attrs {
			known = append(known, a.Name)
		}
		f.fail("op %s has no attribute %s%s", def.Name, name, spelling.DidYouMean(name, known))
	}
	n, isInt := v.(int)
	x, isNumber := float(v)
	list, isList := v.([]any)
	f.spend(len(list))
	switch d.Kind {
	case ir.IntAttr, ir.PerLayerInt:
		if isInt {
			return n
		}
	case ir.FloatAttr, ir.PerLayerFloat:
		if isNumber {
			return x
		}
	case ir.BoolAttr:
		if b, ok := v.(bool); ok {
			return b
		}
	case ir.WordAttr:
		if s, ok := v.(string); ok {
			return s
		}
	case ir.IntsAttr:
		if out, ok := listOf[int](list); ok && isList {
			return out
		}
	case ir.FloatsAttr:
		if out, ok := floats(list); ok && isList {
			return out
		}
	}
	f.fail("op %s: attribute %s is %s, want %s", def.Name, name, show(v), d.Kind)
	return nil
}

// listOf returns a list whose elements all have a type.
func listOf[T any](list []any) ([]T, bool) {
	out := make([]T, len(list))
	for i, v := range list {
		x, ok := v.(T)
		if !ok {
			return nil, false
		}
		out[i] = x
	}
	return out, true
}

// floats returns a list of numbers.
func floats(list []any) ([]float64, bool) {
	out := make([]float64, len(list))
	for i, v := range list {
		x, ok := float(v)
		if !ok {
			return nil, false
		}
		out[i] = x
	}
	return out, true
}
