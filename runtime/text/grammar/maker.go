package grammar

import (
	"container/list"
	"encoding/json"
	"fmt"
	"sync"
)

// maxKept is the number of grammars that a Maker caches.
const maxKept = 32

// A Maker creates matchers for one vocabulary and caches the most recently used
// grammars. It is safe for concurrent use.
type Maker struct {
	vocabulary func() (*Vocabulary, error)
	scope      string
	*cache
}

type cache struct {
	mu    sync.Mutex
	known map[source]*list.Element
	order *list.List // of *kept, most recently used first
}

// source is who a grammar was compiled for, and the kind and the text that it is compiled
// from.
type source struct{ scope, kind, text string }

type kept struct {
	source
	grammar *Grammar
}

// NewMaker returns a Maker. It calls NewVocabulary with the arguments when the first
// matcher is created.
func NewMaker(size int, text func(id int32) []byte, eos []int32) *Maker {
	return &Maker{
		vocabulary: sync.OnceValues(func() (*Vocabulary, error) { return NewVocabulary(size, text, eos) }),
		cache:      &cache{known: map[source]*list.Element{}, order: list.New()},
	}
}

// In returns a Maker with the same vocabulary and cache that finds no grammar of another
// scope, so that the time for a grammar does not tell who has used it.
func (m *Maker) In(scope string) *Maker {
	return &Maker{vocabulary: m.vocabulary, scope: scope, cache: m.cache}
}

// Object returns a Matcher for any JSON object.
func (m *Maker) Object() (*Matcher, error) {
	return m.start(source{kind: "object"}, func() (*Grammar, error) { return AnyObject(), nil })
}

// Schema returns a Matcher for the JSON values of a schema.
func (m *Maker) Schema(schema []byte) (*Matcher, error) {
	return m.start(source{m.scope, "schema", string(schema)}, func() (*Grammar, error) { return ParseSchema(schema) })
}

// Regex returns a Matcher for texts that match the whole pattern.
func (m *Maker) Regex(pattern string) (*Matcher, error) {
	return m.start(source{m.scope, "regex", pattern}, func() (*Grammar, error) { return ParseRegex(pattern) })
}

// GBNF returns a Matcher for the texts of a GBNF grammar.
func (m *Maker) GBNF(text string) (*Matcher, error) {
	return m.start(source{m.scope, "gbnf", text}, func() (*Grammar, error) { return ParseGBNF(text) })
}

// Call returns a Matcher for a call of one of the tools. If answer is not nil, it is the
// JSON Schema of an answer that may come instead of a call.
func (m *Maker) Call(format CallFormat, tools []Tool, answer []byte) (*Matcher, error) {
	key, err := json.Marshal(struct {
		Format CallFormat
		Tools  []Tool
		Answer string
	}{format, tools, string(answer)})
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	return m.start(source{m.scope, "call", string(key)}, func() (*Grammar, error) { return parseCall(format, tools, answer) })
}

func (m *Maker) start(s source, parse func() (*Grammar, error)) (*Matcher, error) {
	v, err := m.vocabulary()
	if err != nil {
		return nil, err
	}
	g, err := m.grammar(s, parse)
	if err != nil {
		return nil, err
	}
	return NewMatcher(g, v)
}

func (m *Maker) grammar(s source, parse func() (*Grammar, error)) (*Grammar, error) {
	m.mu.Lock()
	if e := m.known[s]; e != nil {
		m.order.MoveToFront(e)
		m.mu.Unlock()
		return e.Value.(*kept).grammar, nil
	}
	m.mu.Unlock()
	g, err := parse() // without the lock, so that others need not wait
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.known[s]; e != nil {
		return e.Value.(*kept).grammar, nil
	}
	m.known[s] = m.order.PushFront(&kept{s, g})
	if m.order.Len() > maxKept {
		last := m.order.Remove(m.order.Back()).(*kept)
		delete(m.known, last.source)
	}
	return g, nil
}
