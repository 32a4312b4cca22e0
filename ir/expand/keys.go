package expand

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/participle/v2/lexer"
	"github.com/iflowc/iflowc/ir/syntax"
)

// A Module is what the documentation says of a module.
type Module struct {
	Name   string       `json:"name"`
	Doc    string       `json:"doc"` // the comment above it
	File   string       `json:"file"`
	Line   int          `json:"line"`
	Args   []string     `json:"arguments"`
	Params []*Parameter `json:"parameters"` // that it declares or uses
	Text   string       `json:"text"`       // with the comment
}

// A Parameter is what is known of a parameter without a model.
type Parameter struct {
	Name    string   `json:"name"`
	Module  string   `json:"module"` // that declares it
	Kind    string   `json:"type"`   // int, float, bool or word
	Words   []string `json:"words,omitempty"`
	List    bool     `json:"list,omitempty"`
	Layered bool     `json:"per_layer,omitempty"` // a value, or a list by layer that is repeated
	Given   bool     `json:"given,omitempty"`     // it follows from the model's files, and is no key
	Default any      `json:"default,omitempty"`   // nil: none
	Doc     string   `json:"doc,omitempty"`       // the comment behind it, or above

	lib   *Library
	param *param
}

// Accepts returns an error if the condition of the parameter is false for a value.
func (p *Parameter) Accepts(v any) error {
	if p.param.Where == nil {
		return nil
	}
	_, err := p.lib.evaluate(p.param, func(f *frame) any {
		v = f.plain(v)
		list, layered := v.([]any)
		if !layered {
			list = []any{v}
		}
		for _, x := range list {
			f.vars.set(p.Name, x)
			if !truth(f.eval(p.param.Where)) {
				f.fail("have %s, want %s", show(x), p.param.wanted())
			}
		}
		return nil
	})
	var e *Error
	if errors.As(err, &e) {
		return errors.New(e.Msg)
	}
	return err
}

// wanted returns what a value must be for the condition of a parameter.
func (p *param) wanted() string {
	if text, err := strconv.Unquote(p.Want); err == nil {
		return text
	}
	return p.Where.String()
}

// evaluate evaluates an expression of a parameter, outside of any model.
func (l *Library) evaluate(p *param, expr func(f *frame) any) (v any, err error) {
	x := New(l, nil, nil)
	f := &frame{Expander: x, lib: l, module: &module{Module: &syntax.Module{Name: p.home.Module}}, at: p.Pos, vars: x.scope()}
	defer catch(&err)
	return expr(f), nil
}

// Modules returns all modules, by their places.
func (l *Library) Modules() ([]*Module, error) {
	var out []*Module
	for _, name := range l.Names() {
		m, err := l.Module(name)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *Module) int { return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line) })
	return out, nil
}

// Module returns a module by its name.
func (l *Library) Module(name string) (*Module, error) {
	parsed, err := l.module(name)
	if err != nil {
		return nil, err
	}
	s := l.sources[name]
	lines := strings.Split(l.files[s.file], "\n")
	from := s.line - 1
	for from > 0 && strings.HasPrefix(lines[from-1], "#") {
		from--
	}
	text := s.text[:strings.LastIndex(s.text, "\n}")+2]
	out := &Module{Name: name, Doc: comment(lines[from : s.line-1]), File: s.file, Line: s.line, Text: strings.Join(append(lines[from:s.line-1:s.line-1], text), "\n")}
	for _, a := range parsed.Args {
		out.Args = append(out.Args, a.Name)
	}
	for _, it := range parsed.Items {
		names := []string{}
		switch {
		case it.Param != nil:
			names = []string{it.Param.Name}
		case it.Use != nil:
			names = it.Use.Names
		}
		for _, p := range names {
			out.Params = append(out.Params, l.parameter(parsed.params[p]))
		}
	}
	return out, nil
}

func (l *Library) parameter(p *param) *Parameter {
	out := &Parameter{Name: p.Name, Module: p.home.Module, Kind: p.kind, Words: p.words, List: p.Type.List, Layered: p.Layered, Given: p.Given, Doc: l.docAt(p.Pos), lib: l, param: p}
	if p.Default != nil {
		if v, err := l.evaluate(p, func(f *frame) any { return f.eval(p.Default) }); err == nil {
			out.Default = v
		}
	}
	return out
}

// Sections returns the sections of a model's settings.
func (l *Library) Sections() []Section { return l.sections }

// SectionAt returns the section that is about the instances of a name; that of the name itself if
// none says so.
func (l *Library) SectionAt(instance string) string {
	if name, ok := l.about[instance]; ok {
		return name
	}
	return instance
}

// Keys returns the keys of all parameters, sorted. Those of a section have its name in front.
func (l *Library) Keys() []string { return slices.Sorted(maps.Keys(l.homes)) }

// Declares reports whether a parameter has a key.
func (l *Library) Declares(key string) bool { return l.homes[key] != "" }

// Key returns the parameter of a key; nil if there is none.
func (l *Library) Key(key string) (*Parameter, error) {
	if p, ok := l.keys.Load(key); ok {
		return p.(*Parameter), nil
	}
	home, ok := l.homes[key]
	if !ok {
		return nil, nil
	}
	m, err := l.module(home)
	if err != nil {
		return nil, err
	}
	declared := m.params[key[strings.LastIndexByte(key, '.')+1:]]
	if declared == nil { // by what the module replaces
		return m.below.Key(key)
	}
	p := l.parameter(declared)
	l.keys.Store(key, p)
	return p, nil
}

// docAt returns the comment behind a line, or above it.
func (l *Library) docAt(at lexer.Position) string {
	lines := strings.Split(l.files[at.Filename], "\n")
	if _, text, ok := strings.Cut(lines[at.Line-1], " #"); ok {
		return strings.TrimSpace(text)
	}
	from := at.Line - 1
	for from > 0 && strings.HasPrefix(strings.TrimSpace(lines[from-1]), "#") {
		from--
	}
	return comment(lines[from : at.Line-1])
}

// comment returns the text of lines that begin with #.
func comment(lines []string) string {
	var doc []string
	for _, line := range lines {
		doc = append(doc, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")))
	}
	return strings.Join(doc, " ")
}
