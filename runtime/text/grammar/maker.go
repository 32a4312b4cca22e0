package grammar

import (
	"container/list"
	"encoding/json"
	"fmt"
	"sync"
)

// maxKept bounds the grammars that a Maker keeps for the next requests.
const maxKept = 32

// A Maker makes matchers for one vocabulary, and keeps the grammars that were
// used last. It is safe for concurrent use.
type Maker struct {
	vocabulary func() (*Vocabulary, error)

	mu    sync.Mutex
	known map[source]*list.Element
	order *list.List // of *kept, the last used first
}

// source is what a grammar is made of.
type source struct{ kind, text string }

type kept struct {
	source
	grammar *Grammar
}

// NewMaker makes a maker; the arguments are those of NewVocabulary, which is
// called when the first matcher is made.
func NewMaker(size int, text func(id int32) []byte, eos []int32) *Maker {
	return &Maker{
		vocabulary: sync.OnceValues(func() (*Vocabulary, error) { return NewVocabulary(size, text, eos) }),
		known:      map[source]*list.Element{},
		order:      list.New(),
	}
}

// Object starts a text that is any JSON object.
func (m *Maker) Object() (*Matcher, error) {
	return m.start(source{"object", ""}, func() (*Grammar, error) { return AnyObject(), nil })
}

// Schema starts a text that is JSON of a schema.
func (m *Maker) Schema(schema []byte) (*Matcher, error) {
	return m.start(source{"schema", string(schema)}, func() (*Grammar, error) { return ParseSchema(schema) })
}

// Regex starts a text that a pattern matches as a whole.
func (m *Maker) Regex(pattern string) (*Matcher, error) {
	return m.start(source{"regex", pattern}, func() (*Grammar, error) { return ParseRegex(pattern) })
}

// GBNF starts a text of a grammar.
func (m *Maker) GBNF(text string) (*Matcher, error) {
	return m.start(source{"gbnf", text}, func() (*Grammar, error) { return ParseGBNF(text) })
}

// Call starts a text that calls one of the tools.
func (m *Maker) Call(format CallFormat, tools []Tool) (*Matcher, error) {
	key, err := json.Marshal(struct {
		Format CallFormat
		Tools  []Tool
	}{format, tools})
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	return m.start(source{"call", string(key)}, func() (*Grammar, error) { return parseCall(format, tools) })
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
	g, err := parse() // without the lock: others need not wait
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
