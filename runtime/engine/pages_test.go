//go:build unix

package engine

import (
	"slices"
	"testing"
)

// TestPoolGrows: blocks come into use as memory allows, and more are asked for before the
// last one is in use. Without memory the prefix cache's are evicted, and only then one more
// comes into use at a time.
func TestPoolGrows(t *testing.T) {
	t.Parallel()
	grants := []int{2, 0, 0, 0, 4} // then none
	p := newPool[uint64](8, func() int {
		if len(grants) == 0 {
			return 0
		}
		n := grants[0]
		grants = grants[1:]
		return n
	})
	take := func(granted int, want ...int32) {
		t.Helper()
		got, ok := p.take(nil, len(want))
		if !ok || !slices.Equal(got, want) || p.granted != granted {
			t.Errorf("took %v, %v of %d; expected %v of %d", got, ok, p.granted, want, granted)
		}
	}
	take(2, 0, 1)
	p.cache.add(0, 7)
	p.free([]int32{0})
	take(2, 0) // evicted from the cache: no memory
	take(3, 2) // no memory, and nothing to evict
	p.cache.add(1, 8)
	p.free([]int32{1})
	take(7, 3, 4, 5, 6) // memory again
	take(7, 1)          // no memory: evicted
	take(8, 7)
	if got, ok := p.take(nil, 1); ok {
		t.Errorf("took %v of 8 blocks in use", got)
	}
}
