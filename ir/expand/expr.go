package expand

import (
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir/syntax"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// eval computes an expression.
func (f *frame) eval(e *syntax.Expr) any {
	f.step(e.Pos)
	switch e.Kind {
	case syntax.NumberLit:
		return f.number(e.Text)
	case syntax.StringLit:
		s, err := syntax.Unquote(e.Text)
		if err != nil {
			f.fail("bad string %s", e.Text)
		}
		return s
	case syntax.NameRef:
		switch e.Text {
		case "True":
			return true
		case "False":
			return false
		case "None":
			return nil
		}
		return f.name(e.Text)
	case syntax.ValueRef, syntax.WeightRef:
		return f.name(e.Text)
	case syntax.ConfigRef:
		return f.config(e.Text[1:])
	case syntax.ListExpr:
		out := make([]any, len(e.Args))
		for i, a := range e.Args {
			out[i] = f.eval(a)
		}
		return out
	case syntax.CompExpr:
		return f.comprehension(e)
	case syntax.UnaryExpr:
		return f.unary(e)
	case syntax.BinaryExpr:
		return f.binary(e)
	case syntax.CondExpr:
		if truth(f.eval(e.Args[1])) {
			return f.eval(e.Args[0])
		}
		return f.eval(e.Args[2])
	case syntax.IndexExpr:
		return f.index(e)
	}
	list := f.callExpr(e, nil)
	if len(list) == 0 {
		f.at = e.Pos
		f.fail("%s has no result", e.Text)
	}
	if len(list) > 1 {
		return list
	}
	return list[0]
}

// config returns the value of a key of config.json, or of a key or entry below it; None if there is none.
func (f *frame) config(path string) any {
	key, rest, below := strings.Cut(path, ".")
	v, _ := f.host.Config(f.path, key)
	for below {
		key, rest, below = strings.Cut(rest, ".")
		v = member(v, key)
	}
	return f.plain(v)
}

func (f *frame) number(text string) any {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		f.fail("the number %s is too large", text)
	}
	return x
}

// name returns what a name is bound to.
func (f *frame) name(name string) any {
	v, ok := f.vars.get(name)
	if u, is := v.(unbound); is {
		f.fail("%s is bound only in one branch of the condition in line %d", name, u.pos.Line)
	}
	if ok {
		return v
	}
	if f.words {
		return word(name)
	}
	var known []string
	known = append(known, f.vars.names...)
	slices.Sort(known)
	hint := spelling.DidYouMean(name, known)
	if _, isModule := f.lib.sources[name]; isModule || f.ops[name] != nil {
		hint = "; to call it write " + name + "(…)"
	}
	f.fail("%s is not defined%s", name, hint)
	return nil
}

func (f *frame) comprehension(e *syntax.Expr) any {
	list, ok := f.eval(e.Args[1]).([]any)
	if f.at = e.Args[1].Pos; !ok {
		f.fail("for needs a list, such as range(n)")
	}
	before, was := f.vars.get(e.Text)
	out := []any{}
	for _, x := range list {
		f.vars.set(e.Text, x)
		if len(e.Args) < 3 || truth(f.eval(e.Args[2])) {
			out = append(out, f.eval(e.Args[0]))
		}
	}
	if f.vars.delete(e.Text); was {
		f.vars.set(e.Text, before)
	}
	return out
}
