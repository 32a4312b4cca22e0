package passes

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
)

// placeLayers annotates each repeat with the groups of its layers. Consecutive
// repeats form one run of layers.
func placeLayers(groups [][]Device, m *ir.Module) error {
	for _, g := range m.Graphs {
		if g.Name == ir.DraftGraph { // runs on one rank
			continue
		}
		var run []*ir.Op
		most := 0
		place := func() error {
			if len(run) == 0 {
				return nil
			}
			lo, hi := run[0].Int("lo"), run[len(run)-1].Int("hi")
			most = max(most, hi-lo)
			ties, err := sharedStates(run)
			if err != nil {
				return err
			}
			firsts := keepTogether(borders(groups, lo, hi), ties)
			for _, rep := range run {
				rep.Annotations.Set(placement(groups, firsts, rep.Int("lo"), rep.Int("hi")))
			}
			run = nil
			return nil
		}
		for _, op := range g.Body.Ops {
			if op.Def != ir.Repeat {
				continue
			}
			if len(run) > 0 && op.Int("lo") != run[len(run)-1].Int("hi") {
				if err := place(); err != nil {
					return err
				}
			}
			run = append(run, op)
		}
		if err := place(); err != nil {
			return err
		}
		if most > 0 && most < len(groups) {
			return fmt.Errorf("graph %s: %d device groups for %d layers; name at most %d groups", g.Name, len(groups), most, most)
		}
	}
	return nil
}

// borders returns the first layer of each group, in proportion to the shares;
// without shares by ceiling division, as in Inferflow. With fewer layers than
// groups, the last groups have none.
func borders(groups [][]Device, lo, hi int) []int {
	n := min(len(groups), hi-lo)
	total, even := 0, true
	for _, g := range groups[:n] {
		s := max(g[0].Share, 1)
		even = even && s == max(groups[0][0].Share, 1)
		total += s
	}
	each := (hi - lo + n - 1) / n
	firsts, share := []int{lo}, 0
	for i, g := range groups[:n-1] {
		share += max(g[0].Share, 1)
		at := lo + (hi-lo)*share/total
		if even {
			at = lo + (i+1)*each
		}
		firsts = append(firsts, max(firsts[i]+1, min(at, hi-(n-1-i))))
	}
	return firsts
}

// sharedStates returns, for each state element that layers after its writer read, the
// layer that writes it and the last one that reads it.
func sharedStates(run []*ir.Op) ([]ir.Range, error) {
	writers := map[element]int{}
	var out []ir.Range
	for _, rep := range run {
		for n := rep.Int("lo"); n < rep.Int("hi"); n++ {
			for _, op := range rep.Body.Ops {
				for _, a := range op.Args {
					if a.Kind != ir.State {
						continue
					}
					e, err := elementAt(a, n)
					if err != nil {
						return nil, err
					}
					if op.Def.Is(ir.Writes) {
						writers[e] = n
					} else if w, ok := writers[e]; ok && w < n {
						out = append(out, ir.Range{Lo: w, Hi: n})
					}
				}
			}
		}
	}
	return out, nil
}

// keepTogether moves the first layers of groups down so that a group has both layers of
// each range, the one that writes a state and the one that reads it. It returns them
// unchanged if a group would have no layers left.
func keepTogether(firsts []int, ties []ir.Range) []int {
	out := slices.Clone(firsts)
	for moved := true; moved; {
		moved = false
		for i, first := range out[1:] {
			for _, tie := range ties {
				if tie.Lo < first && first <= tie.Hi {
					if out[i+1], moved = tie.Lo, true; tie.Lo <= out[i] {
						return firsts
					}
					break
				}
			}
		}
	}
	return out
}

// placement returns the annotation for layers lo up to hi of a run whose groups
// start at the given layers.
func placement(groups [][]Device, firsts []int, lo, hi int) ir.Annotation {
	annotation := ir.Annotation{Name: "on"}
	for i, first := range firsts {
		next := hi
		if i+1 < len(firsts) {
			next = firsts[i+1]
		}
		if next <= lo || first >= hi {
			continue
		}
		a := ir.AnnotationArg{Val: groupName(groups[i])}
		if len(annotation.Args) > 0 {
			a.Of, a.From = "layer", first
		}
		annotation.Args = append(annotation.Args, a)
	}
	return annotation
}
