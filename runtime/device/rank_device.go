//go:build unix

package device

import "unsafe"

// runViewOn is RunView where a device computes: the step's arrays are read where
// they stand.
func (c *Context) runViewOn(v *View, results bool) error {
	h := &v.step
	n, s := int(h.tokens), int(h.seqs)
	ints := func(p unsafe.Pointer, n int) []int32 {
		if p == nil {
			return nil
		}
		return unsafe.Slice((*int32)(p), n)
	}
	o := &Context{lib: c.lib, on: c.on, pages: c.pages, step: h, Out: c.Out, threads: c.threads}
	o.ID, o.Pos, o.Seq, o.Slot, o.Types = ints(h.id, n), ints(h.pos, n), ints(h.seq, n), ints(h.slot, n), ints(h.types, n)
	o.Want, o.First, o.Past = ints(h.want, int(h.wanted)), ints(h.first, s+1), ints(h.past, s)
	o.PageAt = ints(h.pageAt, s+1)
	o.Page = ints(h.page, int(o.PageAt[s]))
	if h.xpageAt != nil {
		o.XPageAt = ints(h.xpageAt, s+1)
		o.XPage, o.XRows = ints(h.xpage, int(o.XPageAt[s])), ints(h.xrows, s)
	}
	if results {
		o.Out = make([][]float32, len(c.Out))
		for i := range o.Out {
			o.Out[i] = unsafe.Slice((*float32)(h.out[i]), len(c.Out[i]))
		}
	}
	return o.runDevice()
}
