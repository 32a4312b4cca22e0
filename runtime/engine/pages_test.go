//go:build unix

package engine

import (
	"slices"
	"testing"
)

// TestPoolGrows: blocks that were never in use come into use as memory allows. Without
// memory the prefix cache's are evicted, and only then one more comes into use at a time.
func TestPoolGrows(t *testing.T) {
	t.Parallel()
	grants := []int{2, 0, 0, 3} // then none
	p := newPool[uint64](8, func() int {
		if len(grants) == 0 {
			return 0
		}
		n := grants[0]
		grants = grants[1:]
		return n
	})
	take := func(want ...int32) {
		t.Helper()
		got, ok := p.take(nil, len(want))
		if !ok || !slices.Equal(got, want) {
			t.Errorf("took %v, %v; expected %v", got, ok, want)
		}
	}
	take(0, 1)
	p.cache.add(0, 7)
	p.free([]int32{0})
	take(0) // evicted from the cache: no memory
	take(2) // no memory, and nothing to evict
	p.cache.add(1, 8)
	p.free([]int32{1})
	take(3, 4, 5) // memory again
	take(1)       // no memory: evicted
	take(6, 7)
	if got, ok := p.take(nil, 1); ok {
		t.Errorf("took %v of 8 blocks in use", got)
	}
	if p.fresh != 0 {
		t.Errorf("%d blocks were never in use", p.fresh)
	}
}
