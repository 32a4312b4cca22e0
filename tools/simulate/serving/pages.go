package main

import "container/list"

// A pageKey identifies the content of a full KV cache page: page At of the texts that
// share the prefix Text.
type pageKey struct {
	Text int
	At   int
}

// A cachedPage is a full page. If users is 0, only the prefix cache holds it.
type cachedPage struct {
	key   pageKey
	users int
	at    *list.Element // in unused; nil while it has users
}

// A pageCache is the simulated KV cache. Full pages are shared, kept after their last
// use, and evicted in least-recently-used order.
type pageCache struct {
	total   int
	private int // partial pages
	full    map[pageKey]*cachedPage
	unused  *list.List // of *cachedPage, least recently used first
}

func newPageCache(total int) *pageCache {
	return &pageCache{total: total, full: map[pageKey]*cachedPage{}, unused: list.New()}
}

// free returns the number of pages without users.
func (c *pageCache) free() int { return c.total - c.private - len(c.full) + c.unused.Len() }

// take allocates n private pages and evicts cached pages if necessary.
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

// fill converts a private page to a full one.
func (c *pageCache) fill(key pageKey) {
	c.private--
	p := c.full[key]
	if p == nil {
		p = &cachedPage{key: key}
		c.full[key] = p
	}
	c.use(p)
}

// drop removes a user from a full page.
func (c *pageCache) drop(key pageKey) {
	p := c.full[key]
	if p.users--; p.users == 0 {
		p.at = c.unused.PushBack(p)
	}
}
