package ir

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
)

// The part transforms give each rank of a TP group its part of a weight. part_rows
// and part_cols select it by the weight's last index. expert_rows, expert_cols and
// part_experts select it by the index before the last, because the last one is the
// expert. One number n means n equal parts. Otherwise the numbers are lo and hi of
// each rank in order, and parts smaller than the largest one are padded with zeros.

// PartBounds returns the rows, columns or experts lo ≤ i < hi of one rank. size is
// the size of the largest part.
func PartBounds(r *tensor.Transform, size, tpRank int) (lo, hi int) {
	if len(r.Nums) == 1 {
		return tpRank * size, (tpRank + 1) * size
	}
	return int(r.Nums[2*tpRank]), int(r.Nums[2*tpRank+1])
}

// PartOf is PartBounds with the rank taken from an index.
func PartOf(r *tensor.Transform, size int, index []int) (lo, hi int, err error) {
	at := len(index) - 1
	if isExpertPart(r) {
		at--
	}
	if at < 0 || index[at] >= partRanks(r) {
		return 0, 0, fmt.Errorf("transform %s: no part for index %v", r, index)
	}
	lo, hi = PartBounds(r, size, index[at])
	return lo, hi, nil
}

// PartIndex returns the index for a transform's operands. zero reports that the rank
// has fewer experts than the expert's number, so that the part is zero.
func PartIndex(r *tensor.Transform, index []int) (inner []int, zero bool, err error) {
	if !isExpertPart(r) {
		return index, false, nil
	}
	at := len(index) - 2
	if at < 0 || index[at] >= partRanks(r) {
		return nil, false, fmt.Errorf("transform %s: no part for index %v", r, index)
	}
	inner = append(slices.Clone(index[:at]), index[at+1])
	if r.Op == "part_experts" {
		lo, hi := PartBounds(r, 0, index[at])
		if inner[at] += lo; inner[at] >= hi {
			inner[at], zero = lo, true
		}
	}
	return inner, zero, nil
}

func isExpertPart(r *tensor.Transform) bool {
	return r.Op == "part_experts" || r.Op == "expert_rows" || r.Op == "expert_cols"
}

func partRanks(r *tensor.Transform) int {
	if len(r.Nums) == 1 {
		return int(r.Nums[0])
	}
	return len(r.Nums) / 2
}

// partShape returns the shape of the largest part.
func partShape(r *tensor.Transform, whole []int) ([]int, error) {
	out := slices.Clone(whole)
	cols := r.Op == "part_cols" || r.Op == "expert_cols"
	axis := 0
	if cols {
		axis = len(out) - 1
	}
	misfit := fmt.Errorf("transform %s does not fit shape %s", r, intList(whole))
	if cols && len(out) != 2 || len(r.Nums) > 1 && len(r.Nums)%2 != 0 {
		return nil, misfit
	}
	if len(r.Nums) == 1 {
		n := int(r.Nums[0])
		if n < 1 || out[axis]%n != 0 {
			return nil, misfit
		}
		out[axis] /= n
		return out, nil
	}
	most := 0
	for i := 0; i < len(r.Nums); i += 2 {
		lo, hi := int(r.Nums[i]), int(r.Nums[i+1])
		if lo >= hi || hi > whole[axis] {
			return nil, misfit
		}
		most = max(most, hi-lo)
	}
	out[axis] = most
	return out, nil
}

// expertPart checks the part of an array of experts. Its operand is that array, with
// one index less.
func (v *verifier) expertPart(w *Value, r *tensor.Transform) {
	if r != w.Transform || len(r.Args) != 1 || r.Args[0].Op != "weight" {
		v.errs.addf(w.Pos, "%s: transform %s must have exactly one operand, a weight", w, r.Op)
		return
	}
	ref := v.mod.Weight(r.Args[0].Name)
	n := len(w.Count)
	switch {
	case ref == nil:
		v.errs.addf(w.Pos, "%s: transform refers to unknown weight @%s", w, r.Args[0].Name)
	case n < 2 || len(ref.Count) != n-1:
		v.errs.addf(w.Pos, "%s has %d indices, expected one more than the %d of %s", w, n, len(ref.Count), ref)
	case r.Op == "part_experts" && len(r.Nums)%2 != 0:
		v.errs.addf(w.Pos, "%s: transform %s needs lo and hi of each rank", w, r)
	case r.Op == "part_experts" && int(slices.Max(r.Nums)) > ref.Count[n-2].Hi:
		v.errs.addf(w.Pos, "%s: transform %s selects more experts than the %d of %s", w, r, ref.Count[n-2].Hi, ref)
	case w.Count[n-2] != Range{0, partRanks(r)}:
		v.errs.addf(w.Pos, "%s: transform %s has parts for %d ranks", w, r, partRanks(r))
	case n > 2 && (w.Count[0].Lo < ref.Count[0].Lo || w.Count[0].Hi > ref.Count[0].Hi):
		v.errs.addf(w.Pos, "%s: its indices are outside those of %s", w, ref)
	}
}
