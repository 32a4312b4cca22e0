//go:build unix

package cpu

import (
	"sync/atomic"

	"github.com/iflowc/iflowc/runtime/device"
)

// A populator allocates physical memory for KV cache pages before sequences use them.
// The system zeroes memory when it is first touched, one huge page at a time, and all
// arrays of the cache reach a new huge page at about the same time: without a
// populator, such a step stalled for 100 ms or more. Zeroing beside the steps of 16
// sequences cost a tenth of their speed, so a server populates most of the cache before
// the first request. Cells need none: there are few, and the one freed last is used
// first.
type populator struct {
	m       *model
	batch   int32 // pages per call of populate
	asked   int32
	want    chan int32
	stopped atomic.Bool
	done    chan struct{}
}

// startPopulator starts a populator, which populates the first pages.
func startPopulator(m *model, first int) *populator {
	p := &populator{m: m, batch: m.populatedAtOnce(), want: make(chan int32, 1), done: make(chan struct{})}
	go p.run()
	p.reach(int32(first))
	return p
}

// reach requests that the first pages are populated, as many as may be in use. It does
// not block.
func (p *populator) reach(pages int32) {
	if p == nil || pages <= p.asked {
		return
	}
	p.asked = int32(min(int64(pages), p.m.pages))
	select {
	case <-p.want: // not started: the new request replaces it
	default:
	}
	p.want <- p.asked
}

// run serves requests until the channel is closed.
func (p *populator) run() {
	defer close(p.done)
	background()
	have := int32(0)
	for to := range p.want {
		for ; have < to && !p.stopped.Load(); have = min(have+p.batch, to) {
			p.m.populate(have, min(have+p.batch, to))
		}
	}
}

// stop waits until run has returned. The memory may be unmapped afterwards.
func (p *populator) stop() {
	if p != nil {
		p.stopped.Store(true)
		close(p.want)
		<-p.done
	}
}

// populate allocates physical memory for pages [from, to) without changing their
// contents. It does nothing on systems without such a call.
func (m *model) populate(from, to int32) {
	base := int64(0) // offset of the element, which stores all its pages contiguously
	for _, n := range m.pageBytes {
		populate(m.kv.Bytes[base+int64(from)*n : base+int64(to)*n])
		base += n * m.pages
	}
}

// populatedAtOnce returns the number of KV cache pages that fill one huge page in the
// array with the smallest pages.
func (m *model) populatedAtOnce() int32 {
	least := int64(device.HugePage)
	for _, n := range m.pageBytes {
		least = min(least, max(n, 1))
	}
	return int32(min(device.HugePage/least, m.pages))
}
