package grammar

import (
	"fmt"
	"slices"
	"strings"
)

// An alphabet divides the code points into classes that a list of sets treats alike.
type alphabet struct {
	starts  []rune // of each interval, in order; the first is 0
	class   []int32
	classes [][]runeRange
	keys    []string // for each class and set, '1' if the set contains the class
	index   map[string]int
	known   map[listID]int // numbers of sets by their lists
	inside  [][]bool       // by set and class; see contains
}

// A listID identifies a list of ranges by its memory. Lists do not change, and many
// parts of a pattern share one.
type listID struct {
	first *runeRange
	n     int
}

func idOf(ranges []runeRange) listID {
	if len(ranges) == 0 {
		return listID{}
	}
	return listID{&ranges[0], len(ranges)}
}

const (
	maxSets    = 512     // distinct sets of an alphabet
	maxClasses = 1 << 16 // classes of an alphabet; automata write them in two bytes
)

func rangesKey(ranges []runeRange) string {
	var b strings.Builder
	for _, r := range ranges {
		b.WriteRune(r.lo)
		b.WriteRune(r.hi)
	}
	return b.String()
}

// newAlphabet returns the alphabet of sets of characters. spend counts steps and returns
// false when there were too many.
func newAlphabet(sets [][]runeRange, spend func(int) bool) (*alphabet, error) {
	a := &alphabet{index: map[string]int{}, known: map[listID]int{}}
	type change struct {
		at  rune
		set int
	}
	changes := []change{{0, -1}}
	for _, set := range sets {
		id := idOf(set)
		if _, known := a.known[id]; known {
			continue
		}
		if !spend(2 + 4*len(set)) {
			return nil, fmt.Errorf("%w: the patterns have too many characters and classes; use smaller ones", ErrTooLarge)
		}
		set = merged(clip(set))
		key := rangesKey(set)
		n, known := a.index[key]
		if a.known[id] = n; known {
			continue
		}
		n = len(a.index)
		if n == maxSets {
			return nil, fmt.Errorf("%w: more than %d different characters and classes in patterns that apply together", ErrTooLarge, maxSets)
		}
		a.index[key], a.known[id] = n, n
		for _, r := range set {
			changes = append(changes, change{r.lo, n}, change{r.hi + 1, n})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	inside := slices.Repeat([]byte{'0'}, len(a.index))
	known := map[string]int32{}
	for i, c := range changes {
		if c.set >= 0 {
			inside[c.set] ^= 1 // '0' and '1'
		}
		if c.at > maxRune || i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		end := rune(maxRune)
		if i+1 < len(changes) {
			end = changes[i+1].at - 1
		}
		class, ok := known[string(inside)]
		if !ok {
			if class = int32(len(a.classes)); class == maxClasses {
				return nil, fmt.Errorf("%w: patterns that apply together divide the characters into more than %d classes", ErrTooLarge, maxClasses)
			}
			known[string(inside)] = class
			a.keys = append(a.keys, string(inside))
			a.classes = append(a.classes, nil)
		}
		a.classes[class] = append(a.classes[class], runeRange{c.at, end})
		a.starts = append(a.starts, c.at)
		a.class = append(a.class, class)
	}
	return a, nil
}

// number returns the number of a set that the alphabet was built of.
func (a *alphabet) number(set []runeRange) int {
	if n, known := a.known[idOf(set)]; known {
		return n
	}
	return a.index[rangesKey(merged(clip(set)))]
}

// contains reports for each class whether a set, by its number, contains it.
func (a *alphabet) contains(n int) []bool {
	if a.inside == nil {
		a.inside = make([][]bool, len(a.index))
	}
	if a.inside[n] == nil {
		a.inside[n] = make([]bool, len(a.classes))
		for i, key := range a.keys {
			a.inside[n][i] = key[n] == '1'
		}
	}
	return a.inside[n]
}

// of returns the class of a character.
func (a *alphabet) of(c rune) int {
	i, found := slices.BinarySearch(a.starts, c)
	if !found {
		i--
	}
	return int(a.class[i])
}
