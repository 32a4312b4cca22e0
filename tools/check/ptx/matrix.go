package ptx

import (
	"fmt"
	"slices"
	"strings"
)

// Fragments of mma.sync as in the ISA ("Matrix Fragments for mma.m16n8k16" and
// "mma.m16n8k32"): lane 4·g + t holds rows g and g + 8 of A, and column g of B,
// or columns 2·t and 2·t + 1 of C.

// shape has the differences between the supported shapes.
type shape struct {
	k    int // depth
	each int // numbers per register of A and B
}

var shapes = map[string]shape{"m16n8k16": {16, 2}, "m16n8k8": {8, 2}, "m16n8k32": {32, 4}, "m16n8k16i": {16, 4}}

// mma computes D = A·B + C for a warp.
func (b *body) mma(in *instruction, mods, args []string) error {
	types := slices.DeleteFunc(slices.Clone(mods), func(m string) bool { return width(m) == 0 })
	at := slices.IndexFunc(mods, func(m string) bool { return strings.HasPrefix(m, "m16n8") })
	if len(types) != 4 || at < 0 {
		return fmt.Errorf("shape or types are not known")
	}
	out, at1, bt := types[0], types[1], types[2]
	name := mods[at]
	if width(at1) == 1 && name == "m16n8k16" {
		name += "i"
	}
	s, ok := shapes[name]
	if !ok || width(at1)*s.each != 4 {
		return fmt.Errorf("shape %s is not known", name)
	}
	d, err := b.dests(args[0])
	if err != nil {
		return err
	}
	var parts [3][]source
	for i := range parts {
		if parts[i], err = b.sources(vector(args[i+1])); err != nil {
			return err
		}
	}
	p := product{s, out, at1, bt, d, parts}
	in.meet = &meeting{do: p.of}
	return nil
}

// A product is an mma that is being executed.
type product struct {
	shape
	out, at, bt string
	d           []int
	parts       [3][]source // fragments of A, B and C
}

// element returns the value of an element's bits.
func element(t string, v uint64) float64 {
	switch t {
	case "s8":
		return float64(int8(v))
	case "u8":
		return float64(uint8(v))
	case "s32":
		return float64(int32(v))
	}
	return float(t, v)
}

// of multiplies the fragments of a warp.
func (p *product) of(lanes []*thread) error {
	if len(lanes) != 32 {
		return fmt.Errorf("%d lanes take part, 32 must", len(lanes))
	}
	var a [16][32]float64
	var b [32][8]float64
	bits := 32 / p.each
	for l, t := range lanes {
		g, q := l>>2, (l&3)*p.each
		for r, src := range p.parts[0] {
			v := src(t)
			for i := range p.each {
				a[g+8*(r&1)][q+i+(r>>1)*4*p.each] = element(p.at, v>>(bits*i))
			}
		}
		for r, src := range p.parts[1] {
			v := src(t)
			for i := range p.each {
				b[q+i+r*4*p.each][g] = element(p.bt, v>>(bits*i))
			}
		}
	}
	for l, t := range lanes {
		g, q := l>>2, (l&3)*2
		for r, to := range p.d {
			row, col := g+8*(r>>1), q+r&1
			sum := element(p.out, p.parts[2][r](t))
			for k := range p.k {
				sum += a[row][k] * b[k][col]
			}
			if p.out == "s32" {
				t.set(to, uint64(uint32(int32(int64(sum)))))
			} else {
				t.set(to, fbits(p.out, sum))
			}
		}
	}
	return nil
}

// ldmatrix loads 8×8 matrices of 16-bit elements: lanes 8·i … 8·i + 7 provide
// the addresses of matrix i's rows, and lane 4·g + t receives columns 2·t and
// 2·t + 1 of row g.
func (b *body) ldmatrix(in *instruction, mods, args []string) error {
	to, err := b.dests(args[0])
	if err != nil {
		return err
	}
	at, err := b.address(args[1])
	if err != nil {
		return err
	}
	trans := slices.Contains(mods, "trans")
	if !slices.Contains(mods, "b16") || !slices.Contains(mods, "m8n8") {
		return fmt.Errorf("shape or type is not known")
	}
	in.meet = &meeting{do: func(lanes []*thread) error {
		if len(lanes) != 32 {
			return fmt.Errorf("%d lanes take part, 32 must", len(lanes))
		}
		for i := range to {
			var m [8][8]uint64
			for r := range 8 {
				row := lanes[8*i+r]
				bytes, err := row.bytes("shared", at(row), 16)
				if err != nil {
					return err
				}
				for c := range 8 {
					m[r][c] = load(bytes[2*c:][:2])
				}
			}
			for l, t := range lanes {
				g, q := l>>2, (l&3)*2
				x, y := m[g][q], m[g][q+1]
				if trans {
					x, y = m[q][g], m[q+1][g]
				}
				t.set(to[i], x|y<<16)
			}
		}
		return nil
	}}
	return nil
}
