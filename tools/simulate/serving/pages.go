package main

import "container/list"

// A pageKey names what a full KV-cache page holds: page At of a text that
// begins as others do that name the same Text.
type pageKey struct {
	Text int
	At   int
}

// A cachedPage is a full page; users 0: only the prefix cache holds it.
type cachedPage struct {
	key   pageKey
	users int
	at    *list.Element // in unused; nil while it has users
}

// A pageCache is the simulated KV cache: full pages are shared and kept after
// their last use, and evicted the longest unused first.
type pageCache struct {
	total   int
	private int // pages that are not full
	full    map[pageKey]*cachedPage
	unused  *list.List // of *cachedPage, the longest unused first
}

func newPageCache(total int) *pageCache {
	return &pageCache{total: total, full: map[pageKey]*cachedPage{}, unused: list.New()}
}

// free is how many pages nobody uses.
func (c *pageCache) free() int { return c.total - c.private - len(c.full) + c.unused.Len() }

// take makes n private pages, and evicts for them.
func (c *pageCache) take(n int) {
	c.private += n
	for c.private+len(c.full) > c.total {
		p := c.unused.Remove(c.unused.Front()).(*cachedPage)
		delete(c.full, p.key)
	}
}

// use adds a user to a full page.
func (c *pageCache) use(p *cachedPage) {
	if p.users++; p.at != nil {
		c.unused.Remove(p.at)
		p.at = nil
	}
}

// fill turns a private page into a full one.
func (c *pageCache) fill(key pageKey) {
	c.private--
	p := c.full[key]
	if p == nil {
		p = &cachedPage{key: key}
		c.full[key] = p
	}
	c.use(p)
}

// drop takes a user from a full page.
func (c *pageCache) drop(key pageKey) {
	p := c.full[key]
	if p.users--; p.users == 0 {
		p.at = c.unused.PushBack(p)
	}
}
