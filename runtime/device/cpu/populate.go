//go:build unix

package cpu

import (
	"sync/atomic"

	"github.com/iflowc/iflowc/runtime/device"
)

// A populator takes real memory for pages of the KV cache before sequences use
// them. The system clears memory when it is first touched, by huge pages, of
// which all arrays of the cache begin one at about the same time: a step that
// came to them stood still for a hundred milliseconds and more, and clearing
// beside the steps of 16 sequences took a tenth of their speed. So a service
// does most of it before the first request.
type populator struct {
	m       *model
	batch   int32 // pages that the system takes at once
	asked   int32
	want    chan int32
	stopped atomic.Bool
	done    chan struct{}
}

// populatedAtStart is how many bytes are taken without being asked for: the
// whole KV cache of a small model.
const populatedAtStart = 1 << 30

// startPopulator begins with the first pages.
func startPopulator(m *model) *populator {
	p := &populator{m: m, batch: m.populatedAtOnce(), want: make(chan int32, 1), done: make(chan struct{})}
	go p.run()
	p.ask(max(p.batch, int32(min(populatedAtStart/max(sum(m.pageBytes), 1), m.pages))))
	return p
}

// reach asks for as many pages again as soon as the last one in use lies in the
// second half of those asked for. It never waits.
func (p *populator) reach(last int32) {
	if p != nil && last >= p.asked/2 && int64(p.asked) < p.m.pages {
		p.ask(2 * p.asked)
	}
}

func (p *populator) ask(to int32) {
	p.asked = int32(min(int64(to), p.m.pages))
	select {
	case <-p.want: // not begun: the new wish holds it
	default:
	}
	p.want <- p.asked
}

// run does what is asked for until the channel is closed.
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

// stop waits for the end of what runs; the memory may go then.
func (p *populator) stop() {
	if p != nil {
		p.stopped.Store(true)
		close(p.want)
		<-p.done
	}
}

// populate gives pages from one to before another real memory, without changing
// what they hold. It does nothing where the system knows no such call.
func (m *model) populate(from, to int32) {
	base := int64(0) // of the element: all its pages lie together
	for _, n := range m.pageBytes {
		populate(m.kv.Bytes[base+int64(from)*n : base+int64(to)*n])
		base += n * m.pages
	}
}

// populatedAtOnce is how many pages' worth the system takes at once: those of
// a huge page in the array with the smallest ones.
func (m *model) populatedAtOnce() int32 {
	least := int64(device.HugePage)
	for _, n := range m.pageBytes {
		least = min(least, max(n, 1))
	}
	return int32(min(device.HugePage/least, m.pages))
}
