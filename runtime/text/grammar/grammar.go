package grammar

import "sync"

// A Grammar is a network together with the positions met so far. It is safe for
// concurrent use, and worth keeping for requests with the same grammar.
type Grammar struct {
	states  []state
	rules   []rule
	root    int32
	classes [256]uint8 // bytes that no edge tells apart have one class
	samples []byte     // a byte of each class

	mu        sync.Mutex
	positions map[string]*position
	frames    map[frameKey]*frame
	lastFrame uint32
	start     *position
}

// maxPositions bounds the memory of positions that are kept: about 100 MB when
// each has a mask of 100,000 tokens. Beyond it all are forgotten; those in use
// are found again.
const maxPositions = 1 << 13

func newGrammar(b *builder, root int32) *Grammar {
	g := &Grammar{states: b.states, rules: b.rules, root: root}
	g.classify()
	g.forget()
	return g
}

func (g *Grammar) forget() {
	g.start = nil // it would keep what it leads to
	g.positions = map[string]*position{}
	g.frames = map[frameKey]*frame{}
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
