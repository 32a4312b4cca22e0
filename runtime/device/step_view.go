//go:build unix

package device

import (
	"errors"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// A View is a step as it stands in a context's arrays, for other contexts to
// compute: the ranks of a partitioned model, which each have a context of their
// own. The arrays must stay as they are until all of them have.
type View struct{ step stepHeader }

// View is the step that stands in the context's arrays.
func (c *Context) View(s DeviceStep) View {
	v := View{*c.step}
	h := &v.step
	h.entry, h.tokens, h.wanted, h.seqs = int32(s.Entry), int32(s.Tokens), int32(s.Wanted), int32(s.Seqs)
	if h.types = nil; s.Types {
		h.types = pointer(c.Types)
	}
	return v
}

// RunView computes another context's step. Its results go to that context's
// outputs when they are wanted, else to this one's own, for nobody.
func (c *Context) RunView(v *View, results bool) error {
	if c.on != nil {
		return c.runViewOn(v, results)
	}
	if c.handle == 0 {
		return errors.New("bug: a closed context computes another's step")
	}
	h := (*stepHeader)(unsafe.Pointer(unsafe.SliceData(c.view)))
	own := c.step.out
	*h = v.step
	if !results {
		h.out = own
	}
	runtime.LockOSThread()
	code, _, _ := purego.SyscallN(c.lib.run, c.handle, uintptr(unsafe.Pointer(h)))
	runtime.UnlockOSThread()
	if c.traced != nil && code == 0 {
		c.report(Step{Entry: int(h.entry), Tokens: int(h.tokens), Wanted: int(h.wanted), Seqs: int(h.seqs)})
	}
	return runError(int32(code), int(h.tokens), int(h.wanted), int(h.seqs))
}

// Counts are the sizes of a view's step.
func (v *View) Counts() (entry, tokens, wanted, seqs int) {
	return int(v.step.entry), int(v.step.tokens), int(v.step.wanted), int(v.step.seqs)
}

// Words are the arrays of a view's step as they travel to another process: a
// step of as many 32-bit words, appended to buf. SetWords reads them there.
func (v *View) Words(buf []int32) []int32 {
	h := &v.step
	n, s := int(h.tokens), int(h.seqs)
	pages := unsafe.Slice((*int32)(h.pageAt), s+1)[s]
	flags, xpages := int32(0), int32(0)
	if h.types != nil {
		flags |= hasTypes
	}
	if sources := h.xpageAt != nil; sources {
		xpages = unsafe.Slice((*int32)(h.xpageAt), s+1)[s]
	}
	words := int32(0)
	if h.mask != nil {
		words = h.maskWords
	}
	buf = append(buf, h.entry, h.tokens, h.wanted, h.seqs, flags, words, pages, xpages)
	add := func(p unsafe.Pointer, n int) { buf = append(buf, unsafe.Slice((*int32)(p), n)...) }
	add(h.id, n)
	add(h.pos, n)
	add(h.seq, n)
	add(h.slot, n)
	if h.types != nil {
		add(h.types, n)
	}
	add(h.want, int(h.wanted))
	add(h.first, s+1)
	add(h.past, s)
	add(h.pageAt, s+1)
	add(h.page, int(pages))
	add(h.xpageAt, s+1)
	add(h.xpage, int(xpages))
	add(h.xrows, s)
	if words > 0 {
		add(h.mask, 2*n*int(words))
	}
	return buf
}

// hasTypes is a flag of Words.
const hasTypes = 1

// wordsHead is how many words stand before the arrays.
const wordsHead = 8

// SetWords writes a step that came from another process into the context's
// arrays and gives its view.
func (c *Context) SetWords(w []int32) (v View, err error) {
	if len(w) < wordsHead {
		return v, errors.New("a step that came from rank 0 is too short")
	}
	entry, n, wanted, s, flags, words, pages, xpages := w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
	for _, q := range []struct {
		n    int32
		most int
	}{{n, len(c.ID)}, {wanted, len(c.Want)}, {s, len(c.Past)}, {words, c.MaskWords}, {pages, len(c.Page)}, {xpages, len(c.XPage)}} {
		if q.n < 0 || int(q.n) > q.most {
			return v, errors.New("a step that came from rank 0 is larger than this rank was started for")
		}
	}
	w = w[wordsHead:]
	take := func(into []int32, n int) {
		if n > len(w) || n > len(into) {
			err = errors.New("a step that came from rank 0 is cut off")
			return
		}
		copy(into, w[:n])
		w = w[n:]
	}
	for _, a := range [][]int32{c.ID, c.Pos, c.Seq, c.Slot} {
		take(a, int(n))
	}
	if flags&hasTypes != 0 {
		take(c.Types, int(n))
	}
	take(c.Want, int(wanted))
	take(c.First, int(s)+1)
	take(c.Past, int(s))
	take(c.PageAt, int(s)+1)
	take(c.Page, int(pages))
	take(c.XPageAt, int(s)+1)
	take(c.XPage, int(xpages))
	take(c.XRows, int(s))
	if words > 0 {
		take(unsafe.Slice((*int32)(pointer(c.Mask)), 2*len(c.Mask)), 2*int(n)*int(words))
	}
	if err == nil && len(w) > 0 {
		err = errors.New("a step that came from rank 0 is too long")
	}
	d := DeviceStep{Entry: int(entry), Tokens: int(n), Wanted: int(wanted), Seqs: int(s), Types: flags&hasTypes != 0}
	v = c.View(d)
	if v.step.mask, v.step.maskWords = nil, 0; words > 0 {
		v.step.mask, v.step.maskWords = pointer(c.Mask), words
	}
	return v, err
}
