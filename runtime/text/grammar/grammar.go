package grammar

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A Grammar is a network together with the positions met so far. It is safe for
// concurrent use, and worth keeping for requests with the same grammar.
type Grammar struct {
	states  []state
	rules   []rule
	root    int32
	classes [256]uint8 // bytes that no edge tells apart have one class
	samples []byte     // a byte of each class
	size    int64      // of the network in bytes, about
	memory  *memory

	mu        sync.Mutex
	positions map[string]*position
	frames    map[frameKey]*frame
	lastFrame uint32
	start     *position
	visits    int // places in the network that were looked at
}

// Memory of positions and masks, in bytes. A grammar that takes more than its own
// most forgets what it met; those in use are found again. So does one that takes a
// noticeable part of what all grammars take together, when that is too much. A mask
// of 49,152 tokens takes 6 KB, and the positions that it was found by 20.
const (
	mostOfOne = 16 << 20
	mostOfAll = 128 << 20
)

// ofAll is what the positions of all grammars take.
var ofAll atomic.Int64

// memory is what a grammar's positions take. It outlives the grammar, to be taken
// off ofAll.
type memory struct{ bytes atomic.Int64 }

func (m *memory) add(n int) {
	m.bytes.Add(int64(n))
	ofAll.Add(int64(n))
}

func (m *memory) clear() { ofAll.Add(-m.bytes.Swap(0)) }

// full says that the grammar is to forget.
func (m *memory) full() bool {
	n := m.bytes.Load()
	return n > mostOfOne || n > mostOfOne/8 && ofAll.Load() > mostOfAll
}

func newGrammar(b *builder, root int32) *Grammar {
	g := &Grammar{states: b.states, rules: b.rules, root: root, memory: &memory{}}
	runtime.AddCleanup(g, (*memory).clear, g.memory)
	for i := range g.states {
		s := &g.states[i]
		g.size += 80 + 12*int64(cap(s.edges)) + 4*int64(cap(s.eps)) + 8*int64(cap(s.calls))
	}
	g.classify()
	g.forget()
	return g
}

// Size is about how many bytes the grammar takes, without the positions met.
func (g *Grammar) Size() int64 { return g.size }

// forget drops the positions met, and what leads from those in use to others.
func (g *Grammar) forget() {
	for _, p := range g.positions {
		p.next.Store(nil)
	}
	g.start = nil
	g.positions = map[string]*position{}
	g.frames = map[frameKey]*frame{}
	g.memory.clear()
}

// classify finds the classes of bytes: a new one begins wherever an edge does.
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
		}
		g.classes[c] = uint8(len(g.samples) - 1)
	}
}
