package tune

import "slices"

// repair replaces the time of disturbed long runs by the CPU time of the busiest
// thread, which excludes the time in which other programs used the core. busy is
// [threads][runs], in seconds, 0 for short runs.
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

// Interleave returns the order of runs: one warm-up run, then blocks that run the
// candidates forwards and backwards.
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

// ByCandidate undoes Interleave, without the warm-up run: it returns each candidate's
// mean time of the two runs in each block. It omits blocks in which a thread was
// preempted, unless all were disturbed; clean reports whether any block was
// undisturbed.
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
