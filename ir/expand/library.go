package expand

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/participle/v2/lexer"
	"github.com/iflowc/iflowc/ir/syntax"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// A Library is modules by name. A module is parsed when it is first used.
type Library struct {
	files   map[string]string // by name
	sources map[string]source
	parsed  sync.Map // *module by name
}

// A source is the place of a module's text.
type source struct {
	file string
	line int // of its first line, from 1
	text string
}

// NewLibrary returns the library of the modules in files. It finds them by lines that begin
// with the word module, behind which a name stands.
func NewLibrary(files map[string]string) (*Library, error) {
	l := &Library{files: files, sources: map[string]source{}}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		text := files[file]
		if len(text) > maxText {
			return nil, fmt.Errorf("%s: the text has more than %d bytes", file, maxText)
		}
		if err := l.add(file, text); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// add adds the modules of a file.
func (l *Library) add(file, text string) error {
	name, from, fromLine := "", 0, 1 // of the module that is being read; what is in front of the first one must be comments
	end := func(to int) error {
		s := source{file, fromLine, text[from:to]}
		if name == "" {
			_, err := syntax.ParseFrom(file, 1, s.text)
			return l.located(err)
		}
		if other, twice := l.sources[name]; twice {
			return fmt.Errorf("%s:%d: module %s is defined twice, first at %s:%d", file, fromLine, name, other.file, other.line)
		}
		l.sources[name] = s
		return nil
	}
	for at, line := 0, 1; at < len(text); line++ {
		next := len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			next = at + n + 1
		}
		if found := moduleName(text[at:next]); found != "" {
			if err := end(at); err != nil {
				return err
			}
			name, from, fromLine = found, at, line
		}
		at = next
	}
	return end(len(text))
}

// moduleName returns the name of the module that a line begins; "" if it begins none.
func moduleName(line string) string {
	rest, ok := strings.CutPrefix(line, "module")
	if !ok || rest == "" || rest[0] != ' ' && rest[0] != '\t' {
		return ""
	}
	rest = strings.TrimLeft(rest, " \t")
	n := strings.IndexFunc(rest, func(c rune) bool {
		return c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	})
	if n < 0 {
		n = len(rest)
	}
	return rest[:n]
}

// Names returns the names of all modules, sorted.
func (l *Library) Names() []string { return slices.Sorted(maps.Keys(l.sources)) }

// A module is a parsed module, with what its text says for every instance.
type module struct {
	*syntax.Module
	params map[string]*syntax.Param
	partly map[*syntax.If][]string // names that some branches of a condition bind, but not all
}

func newModule(m *syntax.Module) *module {
	out := &module{m, map[string]*syntax.Param{}, map[*syntax.If][]string{}}
	for _, it := range m.Items {
		if it.Param != nil {
			out.params[it.Param.Name] = it.Param
		}
		if it.Stmt != nil {
			out.conditions([]*syntax.Stmt{it.Stmt})
		}
	}
	return out
}

// conditions finds the names of all conditions in statements.
func (m *module) conditions(list []*syntax.Stmt) {
	for _, s := range list {
		if s.For != nil {
			m.conditions(s.For.Body.Stmts)
		}
		if s.If == nil {
			continue
		}
		all, some := bound(s.If)
		m.partly[s.If] = slices.DeleteFunc(some, func(name string) bool { return slices.Contains(all, name) })
		m.conditions(s.If.Then.Stmts)
		for _, e := range s.If.Elif {
			m.conditions(e.Then.Stmts)
		}
		if s.If.Else != nil {
			m.conditions(s.If.Else.Stmts)
		}
	}
}

// module returns a module by its name.
func (l *Library) module(name string) (*module, error) {
	if m, ok := l.parsed.Load(name); ok {
		return m.(*module), nil
	}
	s, ok := l.sources[name]
	if !ok {
		return nil, fmt.Errorf("no module %s%s", name, spelling.DidYouMean(name, l.Names()))
	}
	f, err := syntax.ParseFrom(s.file, s.line, s.text)
	if err != nil {
		return nil, l.located(err)
	}
	m := newModule(f.Modules[0])
	l.parsed.Store(name, m)
	return m, nil
}

// located returns an error of a text with its line.
func (l *Library) located(err error) error {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return err
	}
	return &Error{Pos: e.Pos, Msg: e.Msg, Line: l.line(e.Pos)}
}

// A Module is what the documentation says of a module.
type Module struct {
	Name   string      `json:"name"`
	Doc    string      `json:"doc"` // the comment above it
	File   string      `json:"file"`
	Line   int         `json:"line"`
	Args   []string    `json:"arguments"`
	Params []Parameter `json:"parameters"`
	Text   string      `json:"text"` // with the comment
}

// A Parameter is what the documentation says of a parameter.
type Parameter struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Default string `json:"default,omitempty"` // "": none
	Layered bool   `json:"per_layer,omitempty"`
	Doc     string `json:"doc,omitempty"` // the comment behind it, or above
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
		p := it.Param
		if p == nil {
			continue
		}
		_, text, behind := strings.Cut(lines[p.Pos.Line-1], " #")
		if above := strings.TrimSpace(lines[p.Pos.Line-2]); !behind && strings.HasPrefix(above, "#") {
			text = above[1:]
		}
		doc := Parameter{Name: p.Name, Type: typeText(p.Type), Layered: p.Layered, Doc: strings.TrimSpace(text)}
		if p.Default != nil {
			doc.Default = p.Default.String()
		}
		out.Params = append(out.Params, doc)
	}
	return out, nil
}

// comment returns the text of lines that begin with #.
func comment(lines []string) string {
	var doc []string
	for _, line := range lines {
		doc = append(doc, strings.TrimSpace(strings.TrimPrefix(line, "#")))
	}
	return strings.Join(doc, " ")
}

// line returns the line of a position; "" if the library does not have it.
func (l *Library) line(at lexer.Position) string {
	lines := strings.Split(l.files[at.Filename], "\n")
	if at.Line < 1 || at.Line > len(lines) {
		return ""
	}
	return strings.TrimRight(lines[at.Line-1], "\r")
}
