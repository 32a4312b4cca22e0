package spec

import (
	"fmt"
	"strings"
)

// The rotary tables that a layer may use.
const (
	ropeNone   = "none"
	ropeGlobal = "cs"
	ropeLocal  = "cs_local" // layers with a sliding window: another base and scaling (Gemma 3)
)

// ropeKind returns the rotary table of a layer.
func (l *lowerer) ropeKind(layer int) string {
	n := l.Net
	if n.PositionEmbedding != "rope" || !n.caches(layer) && !(n.Linear.Rope && n.mixes(layer, "linear")) {
		return ropeNone
	}
	if p := n.RopePattern; len(p) > 0 {
		if word := p[layer%len(p)]; word == "none" || word == "full" {
			return ropeNone
		}
	}
	kind := ropeGlobal
	if n.RopeLocalTheta > 0 && l.windows[layer] > 0 && !n.compresses(layer) {
		kind = ropeLocal
	}
	if dim := l.sizesAt(l.s, layer).RopeDim; dim != l.s.hyper.RopeDim {
		kind += fmt.Sprintf("_%d", dim)
	}
	return kind
}

// ropeTables writes the rotary tables that at least one layer uses.
func (l *lowerer) ropeTables() {
	l.cs = map[string]string{}
	for i := range l.Hyper.Layers {
		kind := l.ropeKind(i)
		if kind == ropeNone {
			continue
		}
		l.ropeTable(kind, i, turn{})
		if l.Net.SharedKV {
			l.ropeTable(kind, i, turn{back: true})
		}
		if l.Net.compresses(i) {
			l.ropeTable(kind, i, turn{shift: 1 - l.Net.windowRows(i)})
		}
	}
}

// A turn is a variant of a rotary table.
type turn struct {
	back  bool // the opposite rotation
	shift int  // of the positions
}

// name returns the name of the variant of a table.
func (t turn) name(kind string) string {
	switch {
	case t.back:
		return kind + "_back"
	case t.shift != 0:
		return fmt.Sprintf("%s_from_%d", kind, -t.shift)
	}
	return kind
}

// ropeTable writes a rotary table of a layer, unless it is written already.
func (l *lowerer) ropeTable(kind string, layer int, t turn) {
	name := t.name(kind)
	if _, done := l.cs[name]; done {
		return
	}
	m := rotary{l.Model, l.sizesAt(l.s, layer).RopeDim, l.Net.RopeTheta, l.Net.RopeScaling, false}
	if strings.HasPrefix(kind, ropeLocal) {
		m.theta, m.scaling, m.local = l.Net.RopeLocalTheta, l.Net.RopeLocalScaling, true
	}
	r, err := m.frequencies()
	if err == nil && t.back {
		err = r.turnBack(m)
	}
	if err != nil {
		l.err = err
		return
	}
	a := r.attrs(attrs{}.int("dim", m.dim), m.theta)
	if t.shift != 0 {
		a = a.int("shift", t.shift)
	}
	l.cs[name] = l.t.op(name, "rope_table", []string{"%pos"}, a)
}

// turnBack makes a table's rotations the opposite ones.
func (r *ropeTable) turnBack(m rotary) error {
	if r.dynamicFrom > 0 {
		return m.ropeError("type: dynamic is not available with shared_key_value, whose outputs are rotated back")
	}
	if r.freqs == nil {
		r.freqs = baseFrequencies(m.dim, m.theta)
	}
	for _, list := range [][]float32{r.freqs, r.longFreqs} {
		for i := range list {
			list[i] = -list[i]
		}
	}
	return nil
}

// learnedPositions adds the rows of a position table, starting at its offset.
func (l *lowerer) learnedPositions(x string) string {
	std := l.s.std + ".pos_embeddings.weight"
	if !l.has(std) {
		return l.sinusoid(x)
	}
	var c *cut
	if off := l.Net.PosEmbeddingOffset; off > 0 {
		rows := l.tensors[std].Shape[0]
		if off >= rows {
			l.fail("pos_embedding_offset: have %d, but the position table has %d rows", off, rows)
			return x
		}
		c = rowsCut(off, rows)
	}
	p := l.t.op("p", "embed", []string{"%pos", l.weight("pos_embed", std, c)}, nil)
	return l.t.op("x0", "add", []string{x, p}, nil)
}

// sinusoid adds sines and cosines of positions. sinusoidal is the layout of
// fairseq, sinusoidal2 that of Vaswani et al. 2017, §3.5, in halves.
func (l *lowerer) sinusoid(x string) string {
	a := attrs{}.int("dim", l.Hyper.Hidden)
	switch l.Net.PositionEmbedding {
	case "sinusoidal":
	case "sinusoidal2":
		a = a.word("exponent", "dim")
	default:
		return x
	}
	if off := l.Net.PosEmbeddingOffset; off > 0 {
		a = a.int("offset", off)
	}
	p := l.t.op("p", "sinusoid", []string{"%pos"}, a)
	return l.t.op("x0", "add", []string{x, p}, nil)
}
