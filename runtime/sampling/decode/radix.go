package decode

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// radixFrom is the number of candidates from which a radix sort is faster. A flat
// distribution over a vocabulary of 250,000 tokens, which any request can cause by a
// high temperature, is sorted in a tenth of the time.
const radixFrom = 2048

// radixBits is the number of key bits per pass.
const radixBits = 11

// radixScratch holds buffers of the size of the vocabulary, which samplers need only
// briefly.
var radixScratch = sync.Pool{New: func() any { return new([]candidate) }}

// radixSort sorts by order, from the least significant digit of the id to the most
// significant one of the logit. Each pass is stable.
func radixSort(c []candidate) {
	scratch := radixScratch.Get().(*[]candidate)
	defer radixScratch.Put(scratch)
	if cap(*scratch) < len(c) {
		*scratch = make([]candidate, len(c))
	}
	from, to := c, (*scratch)[:len(c)]
	first := 0
	if slices.IsSortedFunc(c, func(a, b candidate) int { return cmp.Compare(a.id, b.id) }) {
		first = 3
	}
	for pass := first; pass < 6; pass++ {
		var at [1 << radixBits]int32
		for i := range from {
			at[from[i].digit(pass)]++
		}
		if int(at[from[0].digit(pass)]) == len(from) {
			continue
		}
		sum := int32(0)
		for i, n := range at {
			at[i] = sum
			sum += n
		}
		for i := range from {
			d := from[i].digit(pass)
			to[at[d]] = from[i]
			at[d]++
		}
		from, to = to, from
	}
	if &from[0] != &c[0] {
		copy(c, from)
	}
}

// digit returns a digit of the sort key: passes 0–2 are of the id, passes 3–5 of the
// logit, in descending order.
func (c *candidate) digit(pass int) uint32 {
	key := uint32(c.id)
	if pass >= 3 {
		pass -= 3
		key = math.Float32bits(c.logit + 0) // + 0 removes a negative zero
		if key>>31 == 0 {
			key = ^key & math.MaxInt32
		}
	}
	return key >> (radixBits * pass) & (1<<radixBits - 1)
}
