package tune

import "slices"

// repair gives disturbed runs that were long the processor time of the worker
// that was busy longest: the time for which others had its processor is not in
// it. busy is [threads][runs], 0 for short runs.
func repair(seconds []float64, disturbed []int32, busy []float64) {
	for i := range seconds {
		if disturbed[i] == 0 {
			continue
		}
		longest := 0.0
		for at := i; at < len(busy); at += len(seconds) {
			longest = max(longest, busy[at])
		}
		if longest > 0 {
			seconds[i], disturbed[i] = longest, 0
		}
	}
}

// Interleave is the order of runs: one that is not counted, then blocks of
// which forwards and backwards.
func Interleave(which []int, blocks int) []int32 {
	order := []int32{int32(which[0])}
	for range blocks {
		for _, c := range which {
			order = append(order, int32(c))
		}
		for _, c := range slices.Backward(which) {
			order = append(order, int32(c))
		}
	}
	return order
}

// ByCandidate undoes Interleave, whose first entry is left out: the mean of a candidate's two runs in each
// block of so many runs. Blocks in which a thread lost its processor are left
// out, unless all are such.
func ByCandidate(n, block int, order []int32, seconds []float64, disturbed []int32) (times [][]float64, clean bool) {
	out := make([][]float64, n)
	clean = slices.ContainsFunc(slices.Collect(slices.Chunk(disturbed, block)), undisturbed)
	for i := 0; i < len(order); i += block {
		if clean && !undisturbed(disturbed[i:i+block]) {
			continue
		}
		for j := range block / 2 { // forwards and backwards: a palindrome
			c := order[i+j]
			out[c] = append(out[c], (seconds[i+j]+seconds[i+block-1-j])/2)
		}
	}
	return out, clean
}

func undisturbed(block []int32) bool { return !slices.Contains(block, 1) }
