package passes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/ir"
)

// An element is one element of a state, such as %kv[3].
type element struct {
	state string
	index int // -1: the state is not an array
}

func (e element) String() string {
	if e.index < 0 {
		return "%" + e.state
	}
	return fmt.Sprintf("%%%s[%d]", e.state, e.index)
}

func (e element) compare(o element) int {
	return cmp.Or(strings.Compare(e.state, o.state), e.index-o.index)
}

// touches records the elements of a state that an op reads or writes in the
// layers that the rank runs. a is the argument on this rank.
func (s *stage) touches(op *ir.Op, a ir.Arg, sc scope) error {
	lo, hi := 0, 1 // outside a repeat
	if sc.repeat != nil {
		lo, hi = sc.lo, sc.hi
	}
	for n := lo; n < hi; n++ {
		e, err := elementAt(a, n)
		if err != nil {
			return err
		}
		if op.Def.Is(ir.Writes) {
			s.writes[e] = true
		} else if _, ok := s.reads[e]; !ok {
			s.reads[e] = n
		}
	}
	return nil
}

// elementAt returns the element of a state that an argument means in a layer.
func elementAt(a ir.Arg, layer int) (element, error) {
	e := element{a.Name, -1}
	at, err := a.At([]int{layer}, len(a.Count))
	if err == nil && len(at) > 0 {
		e.index = at[0]
	}
	return e, err
}

// together checks that a group of layers reads only states that it writes
// itself: the KV cache of a layer is on one group.
func (p *projector) together() error {
	for _, reader := range p.stages {
		for _, e := range slices.SortedFunc(maps.Keys(reader.reads), element.compare) {
			if reader.writes[e] {
				continue
			}
			for _, writer := range p.stages {
				if writer.writes[e] {
					return fmt.Errorf("layer %d, on %s, reads %s, which %s writes; layers that share a KV cache must be on one device group; choose other shares, or tensor parallelism (0&1)",
						reader.reads[e], reader.group, e, writer.group)
				}
			}
		}
	}
	return nil
}
