package lora

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// Packed holds the matrices of an adapter in the layout of ifl_lora.
type Packed struct {
	Sites []PackedSite // by site
	Data  []float32
}

// A PackedSite is the place of a site's matrices in Packed.Data, each at a multiple of
// 16 floats.
type PackedSite struct {
	Rank int // 0: the adapter does not change the site
	A    int // offset of A: [Rank][Cols rounded up to 16]
	B    int // offset of B: [Rows/16 rounded up][Rank][16], with the scale
}

// tile is the number of floats to which the layout rounds up.
const tile = 16

func roundUp(n int) int { return (n + tile - 1) / tile * tile }

// A Packer packs an adapter for the sites of one rank: an Adapter, or what another rank has
// packed.
type Packer interface {
	PackRank(sites []manifest.Site, orders [][]manifest.RowRun, all []manifest.Site) (*Packed, error)
}

// PackProgram packs an adapter for a program that has all of a model's sites.
func PackProgram(a Packer, sites []manifest.Site, orders [][]manifest.RowRun) (Packer, error) {
	p, err := a.PackRank(sites, orders, sites)
	if err != nil { // not a nil *Packed
		return nil, err
	}
	return p, nil
}

// PackRank returns the matrices as they are.
func (p *Packed) PackRank(sites []manifest.Site, _ [][]manifest.RowRun, _ []manifest.Site) (*Packed, error) {
	return p, p.check(sites)
}

// check returns an error if the matrices are not those of the sites.
func (p *Packed) check(sites []manifest.Site) error {
	if len(p.Sites) != len(sites) {
		return fmt.Errorf("an adapter for %d sites, the model has %d", len(p.Sites), len(sites))
	}
	for i, s := range p.Sites {
		endA, endB := s.A+s.Rank*roundUp(sites[i].Cols), s.B+s.Rank*roundUp(sites[i].Rows)
		if s.Rank < 0 || s.Rank > MaxRank || s.A < 0 || s.B < 0 || max(endA, endB) > len(p.Data) || (s.A|s.B)%tile != 0 {
			return fmt.Errorf("the adapter's matrices for site %d are outside its %d numbers", i, len(p.Data))
		}
	}
	return nil
}

// A use is a part of a site to which a pair adds.
type use struct {
	site, part int
	rows       []manifest.RowRun
	rank       int // the pair's first rank of the site's
}

// A plan is the places of an adapter's matrices.
type plan struct {
	uses   [][]use // by pair
	sites  []PackedSite
	floats int
}

// Pack returns the adapter's matrices for the sites of a program. It returns an error
// that names a matrix of the adapter that no site has.
func (a *Adapter) Pack(sites []manifest.Site, orders [][]manifest.RowRun) (*Packed, error) {
	return a.PackRank(sites, orders, sites)
}

// PackRank is Pack for one rank of a model whose ranks have all of the sites together.
func (a *Adapter) PackRank(sites []manifest.Site, orders [][]manifest.RowRun, all []manifest.Site) (*Packed, error) {
	pl, err := a.plan(sites, orders, all)
	if err != nil {
		return nil, a.errorf("%w", err)
	}
	p := &Packed{Sites: pl.sites, Data: make([]float32, pl.floats)}
	for i, uses := range pl.uses {
		if len(uses) == 0 {
			continue
		}
		matrixA, matrixB, err := a.Read(i)
		if err != nil {
			return nil, err
		}
		for _, u := range uses {
			if err := p.fill(&a.pairs[i].Matrix, matrixA, matrixB, &sites[u.site], &u); err != nil {
				return nil, a.errorf("%q: %w", a.pairs[i].Name, err)
			}
		}
	}
	return p, nil
}

// Size returns the bytes of the data that Pack returns, without reading the matrices.
func (a *Adapter) Size(sites []manifest.Site, orders [][]manifest.RowRun) (int64, error) {
	return a.SizeRank(sites, orders, sites)
}

// SizeRank is Size for one rank of a model whose ranks have all of the sites together.
func (a *Adapter) SizeRank(sites []manifest.Site, orders [][]manifest.RowRun, all []manifest.Site) (int64, error) {
	pl, err := a.plan(sites, orders, all)
	if err != nil {
		return 0, a.errorf("%w", err)
	}
	return 4 * int64(pl.floats), nil
}

// plan finds the sites of all pairs and checks their shapes.
func (a *Adapter) plan(sites []manifest.Site, orders [][]manifest.RowRun, all []manifest.Site) (*plan, error) {
	var known []string
	for i := range all {
		for _, part := range all[i].Parts {
			for _, n := range part.Names {
				known = append(known, n.Name)
			}
		}
	}
	names := NewNames(known)
	pl := &plan{uses: make([][]use, len(a.pairs)), sites: make([]PackedSite, len(sites))}
	pairs := make(map[string]int, len(a.pairs)) // by the model's name
	for i := range a.pairs {
		name, err := names.Find(a.pairs[i].Name)
		if err != nil && a.Unchanged(i) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if j, twice := pairs[name]; twice {
			return nil, fmt.Errorf("the adapter changes %q twice: as %q and as %q", name, a.pairs[j].Name, a.pairs[i].Name)
		}
		pairs[name] = i
	}
	for s := range sites {
		for part := range sites[s].Parts {
			if err := a.planPart(pl, pairs, sites, orders, s, part); err != nil {
				return nil, err
			}
		}
	}
	for s := range sites {
		at := &pl.sites[s]
		at.A = pl.floats
		at.B = at.A + at.Rank*roundUp(sites[s].Cols)
		pl.floats = at.B + at.Rank*roundUp(sites[s].Rows)
	}
	return pl, nil
}

// planPart finds the pair that adds to a part of a site.
func (a *Adapter) planPart(pl *plan, pairs map[string]int, sites []manifest.Site, orders [][]manifest.RowRun, s, part int) error {
	site, sp, first := &sites[s], &sites[s].Parts[part], -1
	for _, n := range sp.Names {
		i, ok := pairs[n.Name]
		if !ok {
			continue
		}
		p := &a.pairs[i]
		if first >= 0 {
			return fmt.Errorf("%q and %q change the same matrix; the adapter may contain one of them", a.pairs[first].Name, p.Name)
		}
		first = i
		if err := p.Fits(sp.Out, sp.In); err != nil {
			return err
		}
		rank := &pl.sites[s].Rank
		if n.Order < 0 || n.Order >= len(orders) {
			return fmt.Errorf("bug: site %d has row order %d of %d", s, n.Order, len(orders))
		}
		pl.uses[i] = append(pl.uses[i], use{s, part, orders[n.Order], *rank})
		if *rank += p.Rank; *rank > MaxRank {
			return fmt.Errorf("the ranks of the matrices that %s%v consists of add up to %d, with %q; want at most %d: train with a lower rank, or merge the adapter into the model", site.Weight, site.Index, *rank, p.Name, MaxRank)
		}
	}
	return nil
}

// fill writes a pair's matrices to the place of a site.
func (p *Packed) fill(m *Matrix, matrixA, matrixB []float32, site *manifest.Site, u *use) error {
	at, part := &p.Sites[u.site], &site.Parts[u.part]
	if part.FromCol < 0 || part.FromCol+site.Cols > m.In {
		return fmt.Errorf("bug: site %s%v has columns %d to %d of %d", site.Weight, site.Index, part.FromCol, part.FromCol+site.Cols, m.In)
	}
	for r := range m.Rank {
		row := matrixA[r*m.In+part.FromCol:]
		copy(p.Data[at.A+(u.rank+r)*roundUp(site.Cols):], row[:site.Cols])
	}
	scale := m.Scale
	if part.Scale != 0 {
		scale *= part.Scale
	}
	for _, run := range u.rows {
		for k := range run.Count {
			to, from := run.To+k*run.ToStep, run.From+k*run.FromStep
			if to < 0 || to >= site.Rows || from < 0 || from >= m.Out {
				return fmt.Errorf("bug: row %d of %d is row %d of %d of site %s%v", from, m.Out, to, site.Rows, site.Weight, site.Index)
			}
			b := p.Data[at.B+to/tile*tile*at.Rank+u.rank*tile+to%tile:]
			for r := range m.Rank {
				v := float32(float64(matrixB[from*m.Rank+r]) * scale)
				if math.IsInf(float64(v), 0) {
					return fmt.Errorf("row %d of B is not finite with the scale %v; use an earlier checkpoint", from, scale)
				}
				b[r*tile] = v
			}
		}
	}
	return nil
}
