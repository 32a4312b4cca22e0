//go:build unix

package device

// Populate gives state pages from one to before another real memory, without
// changing what they hold: beside steps, so that none of them stands still
// while the system clears memory (of a small model a hundred megabytes at once:
// each array of the state takes a huge page). It is done when populated memory
// is there or the system knows no such call. State that a device keeps is its own
// affair.
func (c *Context) Populate(from, to int32) {
	if c.on != nil {
		return
	}
	base := int64(0) // of the element: all its pages lie together
	for _, n := range c.pageBytes {
		populate(c.state.Bytes[base+int64(from)*n : base+int64(to)*n])
		base += n * c.pages
	}
}

// PopulatedAtOnce is how many pages' worth the system takes at once: those of
// a huge page in the array with the smallest ones.
func (c *Context) PopulatedAtOnce() int32 {
	least := int64(hugePage)
	for _, n := range c.pageBytes {
		least = min(least, max(n, 1))
	}
	return int32(min(hugePage/least, c.pages))
}

// BytesOfPage is what one state page takes in all arrays together.
func (c *Context) BytesOfPage() int64 { return max(sum(c.pageBytes), 1) }
