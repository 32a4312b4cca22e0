package expand

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir/syntax"
)

// Tensors returns the standard names of all tensors that a module and those that it calls may
// ask for, as an instance of no path, sorted: with {i} for the number of a layer, and {j} for
// other numbers.
func (l *Library) Tensors(root string) ([]string, error) {
	w := l.walk(root)
	return slices.Sorted(maps.Keys(w.names)), w.err
}

// Reached returns the keys of the top that modules have which may be in an instance of one of the
// given names, or are in a file of a section; sorted.
func (l *Library) Reached(root, section string, names []string) ([]string, error) {
	w, keys := l.walk(root), map[string]bool{}
	for at := range w.seen {
		inside := slices.ContainsFunc(strings.Split(at.path, "."), func(part string) bool { return slices.Contains(names, part) })
		if own := at.module.reader.Sections; !inside && (len(own) != 1 || own[0] != section) {
			continue
		}
		for name, p := range at.module.params {
			if len(p.home.Sections) == 0 && !p.Given {
				keys[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys)), w.err
}

// walk visits a module, as an instance of no path, and those that it calls.
func (l *Library) walk(root string) *nameWalk {
	w := &nameWalk{lib: l, seen: map[visit]bool{}, names: map[string]bool{}}
	w.module(l, root, "")
	return w
}

type nameWalk struct {
	lib   *Library
	seen  map[visit]bool
	names map[string]bool
	in    *module // that is being visited
	err   error
}

// A visit is of a module in an instance.
type visit struct {
	module *module
	path   string
}

// module visits the module that a library has by a name.
func (w *nameWalk) module(lib *Library, name, path string) {
	if w.err != nil {
		return
	}
	m, err := lib.module(name)
	if err != nil {
		w.err = err
		return
	}
	if w.seen[visit{m, path}] {
		return
	}
	w.seen[visit{m, path}] = true
	defer func(outer *module) { w.in = outer }(w.in)
	w.in = m
	for _, it := range m.Items {
		switch {
		case it.Graph != nil:
			w.stmts(it.Graph.Stmts, path)
		case it.Stmt != nil:
			w.stmts([]*syntax.Stmt{it.Stmt}, path)
		}
	}
}

func (w *nameWalk) stmts(list []*syntax.Stmt, path string) {
	for _, s := range list {
		switch {
		case s.Op != nil && s.Op.Right != nil:
			w.expr(s.Op.Right.Expr, path)
		case s.Yield != nil:
			w.exprs(s.Yield.Args, path)
		case s.Check != nil:
			w.expr(s.Check.Cond, path)
		case s.Weight != nil:
			w.exprs(s.Weight.From, path)
			w.exprs(s.Weight.Type.Sizes, path)
		case s.State != nil && s.State.Call != nil:
			w.expr(&s.State.Call.Expr, path)
		case s.For != nil:
			w.loop(s.For, path)
		case s.If != nil:
			w.branches(s.If, path)
		}
	}
}

func (w *nameWalk) loop(s *syntax.For, path string) {
	in, layers := s.Layers()
	w.expr(&in, path)
	if layers != "" {
		path = below(path, layers, "{i}")
	}
	w.stmts(s.Body.Stmts, path)
}

func (w *nameWalk) branches(s *syntax.If, path string) {
	w.expr(s.Cond, path)
	w.stmts(s.Then.Stmts, path)
	for _, e := range s.Elif {
		w.expr(e.Cond, path)
		w.stmts(e.Then.Stmts, path)
	}
	if s.Else != nil {
		w.stmts(s.Else.Stmts, path)
	}
}

func (w *nameWalk) exprs(list []*syntax.Expr, path string) {
	for _, e := range list {
		w.expr(e, path)
	}
}

func (w *nameWalk) expr(e *syntax.Expr, path string) {
	if e == nil {
		return
	}
	w.exprs(e.Args, path)
	for _, a := range e.Named {
		w.expr(a.Val, path)
	}
	switch e.Kind {
	case syntax.StringLit:
		name, err := strconv.Unquote(e.Text)
		if whole := "." + name; err != nil || !strings.HasSuffix(whole, ".weight") && !strings.HasSuffix(whole, ".bias") {
			return // no tensor
		}
		if whole, ok := strings.CutPrefix(name, "/"); ok {
			w.names[whole] = true
		} else {
			w.names[join(path, name)] = true
		}
	case syntax.CallExpr:
		if e.Text == "base" && w.in.below != nil {
			w.module(w.in.below, w.in.Name, path)
			return
		}
		if _, ok := w.lib.sources[e.Text]; !ok {
			return
		}
		name, number := e.Text, ""
		if e.As != nil {
			name = e.As.Name
			if e.As.Index != nil {
				number = "{j}"
			}
		}
		w.module(w.lib, e.Text, below(path, name, number))
	}
}
