package tokenizer

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
)

// wordCache caches the ids of recent words. It is a direct-mapped table of immutable
// entries, so its size is bounded, it needs no lock, and it never changes a result.
type wordCache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[cachedWord]
}

type cachedWord struct {
	word string
	ids  []int32
}

const (
	cacheSlots   = 1 << 14
	cacheMaxWord = 64 // bytes; longer pieces rarely repeat
)

func (c *wordCache) init() {
	c.seed = maphash.MakeSeed()
	c.slots = make([]atomic.Pointer[cachedWord], cacheSlots)
}

func (c *wordCache) slot(word string) *atomic.Pointer[cachedWord] {
	return &c.slots[maphash.String(c.seed, word)%cacheSlots]
}

func (c *wordCache) get(word string) ([]int32, bool) {
	if len(word) > cacheMaxWord {
		return nil, false
	}
	if e := c.slot(word).Load(); e != nil && e.word == word {
		return e.ids, true
	}
	return nil, false
}

func (c *wordCache) put(word string, ids []int32) {
	if len(word) > cacheMaxWord {
		return
	}
	c.slot(word).Store(&cachedWord{strings.Clone(word), slices.Clone(ids)})
}
