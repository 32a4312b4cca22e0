//go:build unix

package engine

import (
	"sync/atomic"

	"github.com/iflowc/iflowc/runtime/device"
)

// A populator takes real memory for state pages before sequences use them. The
// system clears memory when it is first touched, by huge pages, of which all
// arrays of the state begin one at about the same time: a step that came to
// them stood still for a hundred milliseconds and more, and clearing beside the
// steps of 16 sequences took a tenth of their speed. So a service does most of
// it before the first request.
type populator struct {
	ctx     *device.Context
	pages   int32
	batch   int32 // pages that the system takes at once
	asked   int32
	want    chan int32
	stopped atomic.Bool
	done    chan struct{}
}

// populatedAtStart is how many bytes are taken without being asked for: all
// the state of a small model.
const populatedAtStart = 1 << 30

// startPopulator begins with the first pages.
func startPopulator(ctx *device.Context, pages int) *populator {
	p := &populator{ctx: ctx, pages: int32(pages), batch: ctx.PopulatedAtOnce(), want: make(chan int32, 1), done: make(chan struct{})}
	go p.run()
	p.ask(max(p.batch, int32(min(populatedAtStart/ctx.BytesOfPage(), int64(pages)))))
	return p
}

// reach asks for as many pages again as soon as the last one in use lies in the
// second half of those asked for. It never waits.
func (p *populator) reach(last int32) {
	if p != nil && last >= p.asked/2 && p.asked < p.pages {
		p.ask(2 * p.asked)
	}
}

func (p *populator) ask(to int32) {
	p.asked = min(to, p.pages)
	select {
	case <-p.want: // not begun: the new wish holds it
	default:
	}
	p.want <- p.asked
}

// run does what is asked for until the channel is closed.
func (p *populator) run() {
	defer close(p.done)
	device.Background()
	have := int32(0)
	for to := range p.want {
		for ; have < to && !p.stopped.Load(); have = min(have+p.batch, to) {
			p.ctx.Populate(have, min(have+p.batch, to))
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
