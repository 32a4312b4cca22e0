package expand

import (
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
	below      *Library          // whose modules it has too, unless it replaces them; nil: none
	files      map[string]string // by name
	sources    map[string]source
	sections   []Section
	about      map[string]string   // sections by instances of other names
	words      map[string][]string // lists of words by name
	homes      map[string]string   // modules that declare parameters, by key
	redeclared map[string]bool     // keys of modules that replace others, which declare them too
	texts      sync.Map            // *syntax.Module by name
	parsed     sync.Map            // *module by name
	keys       sync.Map            // *Parameter by key
}

// A Section is one of the settings of a model: keys that are about some modules only.
type Section struct {
	Name  string   // such as linear_attention.norm
	At    []string // names of the instances that it is about; nil: its own
	Whole bool     // it replaces that of the settings below it
	Doc   string
	file  string
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
	l := &Library{files: files, sources: map[string]source{}, about: map[string]string{}, words: map[string][]string{}, homes: map[string]string{}}
	return l, l.addAll(files)
}

func (l *Library) addAll(files map[string]string) error {
	for _, file := range slices.Sorted(maps.Keys(files)) {
		text := files[file]
		if len(text) > maxText {
			return fmt.Errorf("%s: the text has more than %d bytes", file, maxText)
		}
		if err := l.add(file, text); err != nil {
			return err
		}
	}
	return nil
}

// With returns a library with the modules of more files. They replace those of the same names.
func (l *Library) With(files map[string]string) (*Library, error) {
	out := &Library{below: l, files: maps.Clone(l.files), sources: maps.Clone(l.sources), sections: slices.Clone(l.sections), about: maps.Clone(l.about), words: maps.Clone(l.words), homes: maps.Clone(l.homes), redeclared: map[string]bool{}}
	maps.Copy(out.files, files)
	return out, out.addAll(files)
}

// owns reports whether a module is of the library itself, not of the one below.
func (l *Library) owns(name string) bool {
	return l.below == nil || l.sources[name] != l.below.sources[name]
}

// add adds the modules of a file, and the keys of their parameters.
func (l *Library) add(file, text string) error {
	name, from, fromLine := "", 0, 1 // of the module that is being read; in front of the first one is what they have in common
	end := func(to int) error {
		s := source{file, fromLine, text[from:to]}
		if name == "" {
			return l.addHead(s)
		}
		if other, twice := l.sources[name]; twice && l.owns(name) {
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
		if found := nameBehind("module", text[at:next]); found != "" {
			if err := end(at); err != nil {
				return err
			}
			name, from, fromLine = found, at, line
		} else if param := nameBehind("param", strings.TrimLeft(text[at:next], " \t")); param != "" {
			if err := l.addKeys(file, line, name, param); err != nil {
				return err
			}
		}
		at = next
	}
	return end(len(text))
}

// addHead adds the sections and lists of words in front of the modules of a file.
func (l *Library) addHead(s source) error {
	f, err := syntax.ParseFrom(s.file, s.line, s.text)
	if err != nil {
		return l.located(err)
	}
	for _, h := range f.Heads {
		if w := h.Words; w != nil {
			l.words[w.Name] = w.List
			continue
		}
		for _, instance := range h.Section.At {
			l.about[instance] = h.Section.Name
		}
		l.sections = append(l.sections, Section{h.Section.Name, h.Section.At, h.Section.Whole, l.docAt(h.Section.Pos), s.file})
	}
	return nil
}

// addKeys adds the keys of a parameter: one in each section of its file, or one at the top.
func (l *Library) addKeys(file string, line int, module, param string) error {
	sections := l.sectionsOf(file)
	if sections == nil {
		sections = []string{""}
	}
	for _, section := range sections {
		key := join(section, param)
		other, twice := l.homes[key]
		if again := l.below != nil && l.below.homes[key] == module && !l.redeclared[key]; again { // by a module that replaces another
			l.redeclared[key], twice = true, false
		}
		if twice {
			at := lexer.Position{Filename: file, Line: line, Column: 1 + strings.Index(l.line(lexer.Position{Filename: file, Line: line}), "param")}
			if other == module {
				return l.errorAt(at, "parameter %s is declared twice", param)
			}
			return l.errorAt(at, "parameter %s of module %s is declared in module %s: write use %s from %s", key, module, other, param, other)
		}
		l.homes[key] = module
	}
	return nil
}

// sectionsOf returns the sections whose keys are the parameters of a file.
func (l *Library) sectionsOf(file string) (names []string) {
	for _, s := range l.sections {
		if s.file == file {
			names = append(names, s.Name)
		}
	}
	return names
}

// nameBehind returns the name behind a word that begins a line; "" if it does not.
func nameBehind(word, line string) string {
	rest, ok := strings.CutPrefix(line, word)
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
	reader Reader
	below  *Library                // that has the module which this one replaces
	params map[string]*param       // that it declares or uses
	partly map[*syntax.If][]string // names that some branches of a condition bind, but not all
}

// A Declared is a parameter where it is declared.
type Declared struct {
	Module, Name string
	Given        bool     // it follows from the model's files
	Sections     []string // whose key it is; nil: one at the top
}

// A Reader is a module that has a parameter.
type Reader struct {
	Module   string
	Sections []string // of its file
}

// A param is a parameter of the module that declares it.
type param struct {
	*syntax.Param
	home  Declared
	kind  string   // int, float, bool or word
	words []string // that it may be; nil: any
}

// newModule finds the parameters and conditions of a module.
func (l *Library) newModule(m *syntax.Module) (*module, error) {
	out := &module{m, Reader{m.Name, l.sectionsOf(m.Pos.Filename)}, l.replaced(m.Name), map[string]*param{}, map[*syntax.If][]string{}}
	for _, it := range m.Items {
		switch {
		case it.Param != nil:
			p, err := l.newParam(m.Name, it.Param)
			if err != nil {
				return nil, err
			}
			out.params[p.Name] = p
		case it.Use != nil:
			if err := l.use(out, it.Use); err != nil {
				return nil, err
			}
		case it.Stmt != nil:
			out.conditions([]*syntax.Stmt{it.Stmt})
		}
	}
	return out, nil
}

func (l *Library) newParam(home string, p *syntax.Param) (*param, error) {
	names := p.Type.Names
	out := &param{Param: p, home: Declared{Module: home, Name: p.Name, Given: p.Given, Sections: l.sectionsOf(p.Pos.Filename)}, kind: "word", words: names}
	if len(names) == 1 && l.words[names[0]] == nil {
		out.kind, out.words = names[0], nil
	}
	if i := slices.IndexFunc(names, func(name string) bool { return l.words[name] != nil }); i >= 0 { // a list of words
		out.words = slices.Concat(names[:i], l.words[names[i]], names[i+1:])
	}
	if !slices.Contains([]string{"int", "float", "bool", "word"}, out.kind) {
		return nil, l.errorAt(p.Type.Pos, "unknown type %s, want int, float, bool, word, a list of words, or words with | between them", out.kind)
	}
	return out, nil
}

// use adds the parameters of another module.
func (l *Library) use(m *module, u *syntax.Use) error {
	for _, name := range u.Names {
		var known []string
		for lib := l; lib != nil && m.params[name] == nil; lib = lib.replaced(u.From) { // what a module replaces may declare it
			home, err := lib.text(u.From)
			if err != nil {
				return l.errorAt(u.Pos, "%v", err)
			}
			for _, it := range home.Items {
				if it.Param == nil {
					continue
				}
				if known = append(known, it.Param.Name); it.Param.Name == name {
					if m.params[name], err = l.newParam(home.Name, it.Param); err != nil {
						return err
					}
				}
			}
		}
		if m.params[name] == nil {
			return l.errorAt(u.Pos, "module %s declares no parameter %s%s", u.From, name, spelling.DidYouMean(name, known))
		}
	}
	return nil
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
	text, err := l.text(name)
	if err != nil {
		return nil, err
	}
	m, err := l.newModule(text)
	if err == nil {
		l.parsed.Store(name, m)
	}
	return m, err
}

// text returns the parsed text of a module.
func (l *Library) text(name string) (*syntax.Module, error) {
	if m, ok := l.texts.Load(name); ok {
		return m.(*syntax.Module), nil
	}
	if l.below != nil && !l.owns(name) {
		return l.below.text(name)
	}
	s, ok := l.sources[name]
	if !ok {
		return nil, fmt.Errorf("no module %s%s", name, spelling.DidYouMean(name, l.Names()))
	}
	f, err := syntax.ParseFrom(s.file, s.line, s.text)
	if err != nil {
		return nil, l.located(err)
	}
	l.texts.Store(name, f.Modules[0])
	return f.Modules[0], nil
}

// replaced returns the library whose module of a name the library replaces; nil if there is none.
func (l *Library) replaced(name string) *Library {
	switch {
	case l.below == nil:
		return nil
	case !l.owns(name):
		return l.below.replaced(name)
	case l.below.sources[name].text == "":
		return nil
	}
	return l.below
}

// errorAt returns an error at a place of the text.
func (l *Library) errorAt(at lexer.Position, format string, args ...any) error {
	return &Error{Pos: at, Msg: fmt.Sprintf(format, args...), Line: l.line(at)}
}

// located returns an error of a text with its line.
func (l *Library) located(err error) error {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return err
	}
	return &Error{Pos: e.Pos, Msg: e.Msg, Line: l.line(e.Pos)}
}

// line returns the line of a position; "" if the library does not have it.
func (l *Library) line(at lexer.Position) string {
	lines := strings.Split(l.files[at.Filename], "\n")
	if at.Line < 1 || at.Line > len(lines) {
		return ""
	}
	return strings.TrimRight(lines[at.Line-1], "\r")
}
