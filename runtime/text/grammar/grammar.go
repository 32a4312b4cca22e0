package grammar

import (
	"cmp"
	"runtime"
	"sync"
	"sync/atomic"
)

// A Grammar is a network with a cache of positions. It is safe for concurrent use;
// share it between requests with the same grammar.
type Grammar struct {
	states  []state
	rules   []rule
	root    int32
	unique  bool       // some items must be unique; see history
	classes [256]uint8 // bytes that all edges treat alike share a class
	samples []byte     // one byte of each class
	alike   []alike    // the bytes of each class
	size    int64      // approximate size of the network in bytes
	memory  *memory

	warnings []string

	mu        sync.Mutex
	positions map[string]*position
	frames    map[frameKey]*frame
	closed    map[config]*position // with last and lastTo: see after
	last      []config
	lastTo    *position
	moved     []config // buffers of step and close
	buffer    []config
	lastFrame uint32
	start     *position
	visits    int // number of visited places in the network
	enough    int // visits at which the search for a run ends
}

// Limits of the cache of positions and masks, in bytes. A grammar that exceeds its own
// limit drops its cache; positions in use are computed again. If all grammars together
// exceed their limit, each grammar with a noticeable part of the total drops its cache.
// A mask of 151,643 tokens needs 19 KB, the positions visited to compute it up to 20 KB.
const mostOfOne = 16 << 20

// mostOfAll is set by SetMemory.
var mostOfAll atomic.Int64

func most() int64 { return cmp.Or(mostOfAll.Load(), 128<<20) }

// SetMemory sets the limit of all grammars together, in bytes.
func SetMemory(n int64) { mostOfAll.Store(n) }

// ofAll is the memory of the positions of all grammars, in bytes.
var ofAll atomic.Int64

// memory is the memory of a grammar's positions. It outlives the grammar, so that a
// cleanup can subtract it from ofAll.
type memory struct{ bytes atomic.Int64 }

func (m *memory) add(n int) {
	m.bytes.Add(int64(n))
	ofAll.Add(int64(n))
}

func (m *memory) clear() { ofAll.Add(-m.bytes.Swap(0)) }

// full reports whether the grammar should drop its cache.
func (m *memory) full() bool {
	n := m.bytes.Load()
	return n > min(mostOfOne, most()/2) || n > mostOfOne/8 && ofAll.Load() > most()
}

func newGrammar(b *builder, root int32) *Grammar {
	g := &Grammar{states: b.states, rules: b.rules, root: root, unique: b.unique, memory: &memory{}}
	runtime.AddCleanup(g, (*memory).clear, g.memory)
	for i := range g.states {
		s := &g.states[i]
		s.wide = unknownWide
		g.size += 84 + 12*int64(cap(s.edges)) + 4*int64(cap(s.eps)) + 8*int64(cap(s.calls))
	}
	g.classify()
	g.forget()
	return g
}

// Size returns the approximate size of the grammar in bytes, without cached positions.
func (g *Grammar) Size() int64 { return g.size }

// Warnings says which parts of a schema the grammar ignores, each with its location.
func (g *Grammar) Warnings() []string { return g.warnings }

// forget drops the cached positions, and the transitions from positions in use.
func (g *Grammar) forget() {
	for _, p := range g.positions {
		p.next.Store(nil)
		p.majority, p.run = nil, nil
	}
	g.start = nil
	g.positions = map[string]*position{}
	g.frames = map[frameKey]*frame{}
	g.closed = map[config]*position{}
	g.last = nil
	g.memory.clear()
}

// classify computes the classes of bytes: a new class begins at each edge boundary.
func (g *Grammar) classify() {
	var begins [257]bool
	for s := range g.states {
		for _, e := range g.states[s].edges {
			begins[e.lo] = true
			begins[int(e.hi)+1] = true
		}
	}
	for c := range 256 {
		if c == 0 || begins[c] {
			g.samples = append(g.samples, byte(c))
			g.alike = append(g.alike, alike{})
		}
		g.classes[c] = uint8(len(g.samples) - 1)
		g.alike[g.classes[c]].add(byte(c))
	}
}

// alike are the bytes of a class.
type alike struct {
	runes  runeSet // ASCII characters
	size   int     // of runes
	beyond bool    // bytes of other characters
}

func (a *alike) add(c byte) {
	switch {
	case c >= 0x80:
		a.beyond = true
	case memberOf(c) != broken:
		a.runes.add(c)
		a.size++
	}
}
