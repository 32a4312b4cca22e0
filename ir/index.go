package ir

import (
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
)

// An Index selects an element of an array weight or state. Its variables i, j, … are
// the indices of the enclosing repeat and par regions, outermost first.
type Index = tensor.Index

// ConstIndex returns the constant n.
func ConstIndex(n int) Index { return tensor.ConstIndex(n) }

// RegionIndex returns the index of the nth enclosing repeat or par region, counted
// from 0 for the outermost one.
func RegionIndex(n int) Index { return tensor.VarIndex(n) }

// isCurrent reports whether a written index is i, j, … in order, which equals an
// absent index.
func isCurrent(index []Index) bool {
	for k, x := range index {
		if x != RegionIndex(k) {
			return false
		}
	}
	return true
}

// maxIndexPlaces is the maximum number of iterations over which an index is checked.
const maxIndexPlaces = 4096

// eachIndex calls f with the value of an index for all values of its variables in
// the given ranges. It stops at the first error of f.
func eachIndex(x Index, ranges []Range, f func(at []int, n int) error) error {
	at := make([]int, len(ranges))
	places := 1
	for k, r := range ranges {
		at[k] = r.Lo
		if x == tensor.VarIndex(k) {
			if err := f(at, r.Lo); err != nil {
				return err
			}
			at[k] = r.Hi - 1
			return f(at, r.Hi-1)
		}
		if x.Reads(k) {
			if places *= max(r.Len(), 1); places > maxIndexPlaces {
				return fmt.Errorf("index %s: more than %d iterations in the enclosing regions", x, maxIndexPlaces)
			}
		}
	}
	for {
		n, err := x.At(at)
		if err == nil {
			err = f(at, n)
		}
		if err != nil {
			return err
		}
		k := len(ranges) - 1
		for ; k >= 0; k-- {
			if !x.Reads(k) {
				continue
			}
			if at[k]++; at[k] < ranges[k].Hi {
				break
			}
			at[k] = ranges[k].Lo
		}
		if k < 0 {
			return nil
		}
	}
}

// IndexRange returns the range of an index over all values of its variables in the
// given ranges.
func IndexRange(x Index, ranges []Range) (Range, error) {
	out := Range{math.MaxInt, math.MinInt}
	err := eachIndex(x, ranges, func(_ []int, n int) error {
		out = Range{min(out.Lo, n), max(out.Hi, n+1)}
		return nil
	})
	return out, err
}

// At returns the element that the argument selects if the enclosing regions have the
// given indices. The result has count numbers. If no index is written, they are the
// indices of the regions.
func (a Arg) At(regions []int, count int) ([]int, error) {
	if a.Index == nil {
		if count > len(regions) {
			return nil, fmt.Errorf("%s has %d indices but is in %d repeat and par regions", a, count, len(regions))
		}
		return slices.Clone(regions[:count]), nil
	}
	out := make([]int, len(a.Index))
	for k, x := range a.Index {
		n, err := x.At(regions)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a, err)
		}
		out[k] = n
	}
	return out, nil
}
