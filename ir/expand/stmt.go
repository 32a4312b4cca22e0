package expand

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/participle/v2/lexer"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/syntax"
)

// param sets a parameter, unless the call does: by what the model says, or by its default.
func (f *frame) param(p *param) {
	f.step(p.Pos)
	if f.args[p.Name] {
		return
	}
	if _, twice := f.vars.get(p.Name); twice {
		f.fail("parameter %s has the name of an argument or of another parameter", p.Name)
	}
	v, set := f.host.Param(&p.home, &f.module.reader, f.path)
	if set && p.Layered {
		v, set = f.entry(v)
	}
	switch {
	case set:
	case p.Default != nil:
		v = f.eval(p.Default)
	default:
		f.fail("%s is not set; want %s", p.Name, p.typeText())
	}
	f.at = p.Pos
	f.vars.set(p.Name, f.convert(p, v))
}

// entry returns the entry of a list by layer that is the instance's; the list is repeated.
func (f *frame) entry(v any) (any, bool) {
	list := reflect.ValueOf(v)
	switch {
	case list.Kind() != reflect.Slice:
		return v, true
	case list.Len() > 0:
		return list.Index(f.layer() % list.Len()).Interface(), true
	}
	return nil, false
}

// layer returns the number of the layer that the instance is in; 0 outside of layers.
func (f *frame) layer() int {
	for _, part := range strings.Split(f.path, ".") {
		if n, err := strconv.Atoi(part); err == nil {
			return n
		}
	}
	return 0
}

// check fails if a condition is false, with the values of the names in it.
func (f *frame) check(c *syntax.Check) {
	f.step(c.Pos)
	if truth(f.eval(c.Cond)) {
		return
	}
	msg, err := strconv.Unquote(c.Else)
	if err != nil {
		msg = c.Else
	}
	f.at = c.Pos
	panic(failure{f.error(msg+f.because(c.Cond), "", c.Cond)})
}

// because returns the values of the variables in expressions, in parentheses.
func (f *frame) because(list ...*syntax.Expr) string {
	var names, parts []string
	for _, e := range list {
		names = namesIn(e, names)
	}
	for _, name := range names {
		if key, ofConfig := strings.CutPrefix(name, "$"); ofConfig {
			parts = append(parts, key+" "+show(f.config(key)))
		} else if v, ok := f.vars.get(name); ok {
			parts = append(parts, name+" "+show(v))
		}
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// namesIn adds the variables and keys of config.json in an expression to a list.
func namesIn(e *syntax.Expr, names []string) []string {
	if (e.Kind == syntax.NameRef || e.Kind == syntax.ConfigRef) && !slices.Contains(names, e.Text) {
		names = append(names, e.Text)
	}
	for _, a := range e.Args {
		names = namesIn(a, names)
	}
	for _, a := range e.Named {
		names = namesIn(a.Val, names)
	}
	return names
}

// unbound is what a name is that one branch of a condition binds only.
type unbound struct{ pos lexer.Position }

func (f *frame) stmts(list []*syntax.Stmt) {
	for i, s := range list {
		if f.done {
			return
		}
		if s.Yield != nil && i+1 < len(list) {
			f.step(list[i+1].Pos)
			f.fail("statement after yield")
		}
		f.stmt(s)
	}
}

func (f *frame) stmt(s *syntax.Stmt) {
	f.step(s.Pos)
	switch {
	case s.Op != nil:
		f.op(s.Op)
	case s.Yield != nil:
		for _, e := range s.Yield.Args {
			f.result = append(f.result, f.eval(e))
		}
		f.done = true
	case s.If != nil:
		f.branch(s.If)
	case s.For != nil:
		f.loop(s.For)
	case s.Weight != nil:
		f.weight(s.Weight)
	case s.State != nil:
		f.state(s.State)
	case s.Check != nil:
		f.check(s.Check)
	default:
		f.input(s.Input)
	}
}

// op evaluates an assignment or a call.
func (f *frame) op(o *syntax.Op) {
	if o.Right == nil || o.Right.Flat || len(o.Types) > 0 || len(o.Annotations) > 0 {
		f.fail("regions, types and attributes in braces have no place in a module; write name(arguments, attribute = value)")
	}
	if o.Targets == nil {
		if o.Right.Expr.Kind != syntax.CallExpr {
			f.fail("the result of %s is not used", o.Right.Expr)
		}
		f.callExpr(o.Right.Expr, nil)
		return
	}
	f.assign(o.Targets.List, o.Right.Expr)
}

func (f *frame) assign(targets []*syntax.Target, e *syntax.Expr) {
	var names []string
	for _, t := range targets {
		names = append(names, t.Name)
	}
	var list []any
	made := f.made
	if e.Kind == syntax.CallExpr {
		list = f.callExpr(e, names)
	} else {
		list = []any{f.eval(e)}
	}
	if l, ok := only(list).([]any); ok && len(targets) > 1 {
		list = l
	}
	if len(targets) == 1 && len(list) > 1 {
		list = []any{list}
	}
	if len(list) != len(targets) {
		f.at = targets[0].Pos
		f.fail("%d names for %d results", len(targets), len(list))
	}
	for i, t := range targets {
		f.at = t.Pos
		f.set(t.Name, list[i])
		if v, ok := list[i].(*ir.Value); ok && f.born[v] > made { // not another name of an older value
			f.host.Name(v, t.Name[1:])
		}
	}
}

// only returns the only element of a list; nil if it has several.
func only(list []any) any {
	if len(list) == 1 {
		return list[0]
	}
	return nil
}

// set binds a name. Those of values begin with %, others do not.
func (f *frame) set(name string, v any) {
	if f.module.params[name] != nil {
		f.fail("%s is a parameter, which no statement changes", name)
	}
	if graph := f.isGraph(v); !f.isNone(v) && graph != (name[0] == '%') && name[0] != '@' {
		if graph {
			f.fail("%s is %s: write %%%s", name, typeName(v), name)
		}
		f.fail("%s is %s: names with %% are values of the graph", name, typeName(v))
	}
	f.vars.set(name, v)
}

// isGraph reports whether a value is one of the graph, or a list of them.
func (f *frame) isGraph(v any) bool {
	switch v := v.(type) {
	case *ir.Value:
		return true
	case []any:
		f.spend(len(v))
		return slices.ContainsFunc(v, f.isGraph)
	}
	return false
}

// isNone reports whether a value is None, or a list of nothing else.
func (f *frame) isNone(v any) bool {
	list, ok := v.([]any)
	if !ok {
		return v == nil
	}
	f.spend(len(list))
	return !slices.ContainsFunc(list, func(x any) bool { return !f.isNone(x) })
}

// branch evaluates the statements of the first condition that is true. Names that only some
// branches bind are not bound afterwards.
func (f *frame) branch(s *syntax.If) {
	var unset []string
	for _, name := range f.module.partly[s] {
		if _, ok := f.vars.get(name); !ok {
			unset = append(unset, name)
		}
	}
	chosen := s.Else
	if truth(f.eval(s.Cond)) {
		chosen = s.Then
	} else {
		for _, e := range s.Elif {
			if truth(f.eval(e.Cond)) {
				chosen = e.Then
				break
			}
		}
	}
	if chosen != nil {
		f.stmts(chosen.Stmts)
	}
	for _, name := range unset {
		f.vars.set(name, unbound{s.Pos})
	}
}

// bound returns the names that all branches of a condition bind, and those that one does.
// A branch that ends the module counts as one that binds everything.
func bound(s *syntax.If) (all, some []string) {
	bodies := []*syntax.Body{s.Then}
	for _, e := range s.Elif {
		bodies = append(bodies, e.Then)
	}
	count, ends := map[string]int{}, 0
	for _, b := range append(bodies, s.Else) {
		if b == nil {
			continue
		}
		names, end := boundBy(b.Stmts)
		if end {
			ends++
		}
		for _, n := range names {
			if count[n]++; count[n] == 1 {
				some = append(some, n)
			}
		}
	}
	for _, n := range some {
		if s.Else != nil && count[n]+ends >= len(bodies)+1 {
			all = append(all, n)
		}
	}
	return all, some
}

// boundBy returns the names that statements bind in any case, and whether they end the module.
func boundBy(list []*syntax.Stmt) (names []string, ends bool) {
	add := func(n string) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	for _, s := range list {
		switch {
		case s.Op != nil && s.Op.Targets != nil:
			for _, t := range s.Op.Targets.List {
				add(t.Name)
			}
		case s.Weight != nil:
			add(s.Weight.Name)
		case s.State != nil:
			add(s.State.Name)
		case s.If != nil:
			all, _ := bound(s.If)
			for _, n := range all {
				add(n)
			}
		case s.Yield != nil:
			ends = true
		}
	}
	return names, ends
}

// loop evaluates statements for each element of a list.
func (f *frame) loop(s *syntax.For) {
	in, layers := s.Layers()
	list, ok := f.eval(&in).([]any)
	if f.at = in.Pos; !ok {
		f.fail("for needs a list, such as range(n)")
	}
	outer := f.path
	if layers != "" {
		if f.layered {
			f.fail("layers in layers; leave out the name of the inner loop")
		}
		f.layered = true
		defer func() { f.layered = false }()
	}
	for _, x := range list {
		f.step(s.Pos)
		f.set(s.Var, x)
		if layers != "" {
			i, ok := x.(int)
			if !ok || i < 0 {
				f.fail("%s is %s: layers have numbers from 0", s.Var, show(x))
			}
			f.path = below(outer, layers, strconv.Itoa(i))
			f.host.Layer(i)
		}
		f.stmts(s.Body.Stmts)
		if layers != "" {
			f.host.Layer(-1)
		}
		if f.done {
			f.fail("yield in a loop")
		}
	}
	f.path = outer
}

// below returns the path of an instance below another: that of a name, of the other one itself if
// the name is self, or of one of several with a number.
func below(path, name, number string) string {
	if name != "self" {
		path = join(path, name)
	}
	if number != "" {
		path = join(path, number)
	}
	return path
}

// join returns the path of an instance below another.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
