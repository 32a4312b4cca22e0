package jinja

import (
	"errors"
	"strings"
	"time"
)

// MaxSource is the maximum size of a template in bytes.
const MaxSource = 4 << 20

// A Template is a parsed template. It is immutable and safe for concurrent use.
type Template struct {
	body    []stmt
	filters map[string]filterFunc
}

// Parse parses a template. Bytes that are no UTF-8 count as U+FFFD.
func Parse(source string) (t *Template, err error) {
	if len(source) > MaxSource {
		return nil, errors.New("the template is larger than 4 MiB")
	}
	line := 0
	defer catch(&err, &line)
	p := &parser{sections: lex(strings.ToValidUTF8(source, "\uFFFD"))}
	body, _ := p.parse()
	return &Template{body: body, filters: allFilters()}, nil
}

// Limits bound a render; zero values mean the defaults.
type Limits struct {
	Steps int // evaluated nodes and processed bytes; default 20 million
	Bytes int // size of the output and of any string; default 16 MiB
	Depth int // depth of macro calls and recursive loops; default 200

	Tick func() error // called every thousand steps or so; an error ends the render with Stopped; may be nil
}

// Options are the settings of a render.
type Options struct {
	Limits Limits
	Now    time.Time // for strftime_now; zero: the current time
}

// Render renders the template with variables, which it does not modify.
func (t *Template) Render(vars *Dict, opt Options) (out Str, err error) {
	return t.render(newState(opt), vars)
}

func (t *Template) render(s *state, vars *Dict) (out Str, err error) {
	s.filters = t.filters
	defer func() {
		if e, ok := err.(*Error); ok {
			e.Items = s.items
		}
	}()
	defer catch(&err, &s.line)
	root := &scope{vars: make(map[string]Value, len(vars.keys)+4), parent: &scope{vars: globals}}
	for i, k := range vars.keys {
		if name, ok := k.(Str); ok {
			root.vars[name.s] = vars.vals[i]
		}
	}
	s.scope = &scope{parent: root}
	execAll(s, t.body)
	return s.out.str(), nil
}
