//go:build unix

package engine

import "github.com/iflowc/iflowc/runtime/load"

// A populator takes real memory for state pages before sequences use them. The
// system clears memory when it is first touched, by huge pages, of which all
// arrays of the state begin one at about the same time: a step that came to
// them stood still for a hundred milliseconds and more.
type populator struct {
	ctx   *load.Context
	pages int32
	batch int32 // pages that the system takes at once
	asked int32
	want  chan int32
	done  chan struct{}
}

// startPopulator begins with the first batch.
func startPopulator(ctx *load.Context, pages int) *populator {
	p := &populator{ctx: ctx, pages: int32(pages), batch: ctx.PopulatedAtOnce(), want: make(chan int32, 1), done: make(chan struct{})}
	go p.run()
	p.reach(0)
	return p
}

// reach asks for the batch of the last page in use, and from its middle on for
// the next one. It never waits.
func (p *populator) reach(last int32) {
	if p == nil {
		return
	}
	to := min((last+p.batch/2)/p.batch*p.batch+p.batch, p.pages)
	if to <= p.asked {
		return
	}
	p.asked = to
	select {
	case <-p.want: // not begun: the new wish holds it
	default:
	}
	p.want <- to
}

// run does what is asked for until the channel is closed.
func (p *populator) run() {
	defer close(p.done)
	load.Background()
	have := int32(0)
	for to := range p.want {
		for ; have < to; have = min(have+p.batch, to) {
			p.ctx.Populate(have, min(have+p.batch, to))
		}
	}
}

// stop waits for the end of what runs; the memory may go then.
func (p *populator) stop() {
	if p != nil {
		close(p.want)
		<-p.done
	}
}
