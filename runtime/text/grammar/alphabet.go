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

// newAlphabet returns the alphabet of sets of characters.
func newAlphabet(sets [][]runeRange) (*alphabet, error) {
	a := &alphabet{index: map[string]int{}}
	type change struct {
		at  rune
		set int
	}
	changes := []change{{0, -1}}
	for _, set := range sets {
		set = merged(clip(set))
		key := rangesKey(set)
		if _, known := a.index[key]; known {
			continue
		}
		n := len(a.index)
		if n == maxSets {
			return nil, fmt.Errorf("%w: more than %d different characters and classes in patterns that apply together", ErrTooLarge, maxSets)
		}
		a.index[key] = n
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

// contains reports for each class whether a set that the alphabet was built of contains
// it.
func (a *alphabet) contains(set []runeRange) []bool {
	n := a.index[rangesKey(merged(clip(set)))]
	out := make([]bool, len(a.classes))
	for i, key := range a.keys {
		out[i] = key[n] == '1'
	}
	return out
}

// of returns the class of a character.
func (a *alphabet) of(c rune) int {
	i, found := slices.BinarySearch(a.starts, c)
	if !found {
		i--
	}
	return int(a.class[i])
}
