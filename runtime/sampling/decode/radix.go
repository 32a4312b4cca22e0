package decode

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// radixFrom is from how many candidates on a radix sort is faster. A flat
// distribution over a vocabulary of 250,000 tokens, which any client can ask for
// by a high temperature, takes it a tenth of the time.
const radixFrom = 2048

// radixBits are how many bits of a key a pass sorts by.
const radixBits = 11

// radixScratch holds slices as long as the vocabulary, which samplers use for a
// moment only.
var radixScratch = sync.Pool{New: func() any { return new([]candidate) }}

// radixSort sorts by order: from the least significant digit of the id to the
// most significant one of the logit, each pass keeping the order of the last.
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

// digit is a part of the key that order compares: three of the id, then three
// of the logit, the largest of which comes first.
func (c *candidate) digit(pass int) uint32 {
	key := uint32(c.id)
	if pass >= 3 {
		pass -= 3
		key = math.Float32bits(c.logit + 0) // no negative zero
		if key>>31 == 0 {
			key = ^key & math.MaxInt32
		}
	}
	return key >> (radixBits * pass) & (1<<radixBits - 1)
}
