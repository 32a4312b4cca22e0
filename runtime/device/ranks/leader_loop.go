//go:build unix

package ranks

import (
	"runtime"
	"time"

	"github.com/iflowc/iflowc/runtime/device/comm"
)

// A stepLoop is what the loop knows: the steps whose results are still at another
// rank, and when each rank was heard last.
type stepLoop struct {
	*remoteModel
	away  []*order
	watch comm.Watch // over the oldest of away
	heard []time.Time
}

// loop runs on the world's thread until the model is closed.
func (m *remoteModel) loop() {
	p := &stepLoop{remoteModel: m, heard: make([]time.Time, len(m.part.Ranks))}
	p.hear()
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		var o *order
		open := true
		if len(p.away) > 0 {
			select {
			case o, open = <-m.orders:
			default:
				p.receive()
				continue
			}
		} else {
			select {
			case o, open = <-m.orders:
			case <-tick.C:
				p.ping()
				continue
			}
		}
		if !open {
			break
		}
		p.run(o)
	}
	for len(p.away) > 0 {
		p.receive()
	}
	if m.Why() == nil {
		if err := m.tell(words(doClose)); err != nil {
			m.fail(err)
		}
	}
}

// run tells the others an order and does rank 0's part of it.
func (p *stepLoop) run(o *order) {
	err := p.Why()
	if err == nil && o.words == nil {
		o.step.ended(p.failed(o.own()))
		return
	}
	if err == nil {
		err = p.tell(o.words)
	}
	if err == nil {
		if err = o.own(); p.givenUp(err) {
			err = p.blame(err)
		}
	}
	p.hear()
	if o.step == nil {
		if err != nil {
			p.failed(err)
		}
		return
	}
	if err == nil && p.part.Output() != 0 {
		if len(p.away) == 0 {
			p.watch = comm.Watch{}
		}
		p.away = append(p.away, o)
		return
	}
	o.step.ended(p.failed(err))
}

// receive looks for the results of the oldest step.
func (p *stepLoop) receive() {
	o, from := p.away[0], p.part.Output()
	n, err := p.world.Look(from, comm.Result)
	if err == nil && n < 0 {
		waited := p.watch.Look()
		if waited > p.settings.timeout()+time.Second/2 { // ranks that wait for each other say so before
			if p.ring.Load() != nil {
				err = p.blame(&comm.RankError{Rank: from})
			} else {
				p.world.Fail(from)
				err = &comm.RankError{Rank: p.end.Failed()}
			}
		} else {
			pause(waited)
			return
		}
	}
	if err == nil {
		for _, out := range results(p.program.Manifest(), &o.step.step) {
			if err = p.world.Get(from, comm.Result, bytesOf(out)); err != nil {
				break
			}
		}
	}
	p.away, p.watch = p.away[1:], comm.Watch{}
	p.hear()
	o.step.ended(p.failed(err))
}

// pause waits a little, the longer the less is expected.
func pause(waited time.Duration) {
	switch {
	case waited < 200*time.Microsecond:
	case waited < 20*time.Millisecond:
		runtime.Gosched()
	default:
		time.Sleep(100 * time.Microsecond)
	}
}

// hear notes that everybody was there just now.
func (p *stepLoop) hear() {
	now := time.Now()
	for r := range p.heard {
		p.heard[r] = now
	}
}

// ping asks the others whether they are there, and sees who has not answered
// for too long.
func (p *stepLoop) ping() {
	if p.Why() != nil {
		return
	}
	for r := 1; r < len(p.heard); r++ {
		some, err := p.pongs(r)
		if err != nil {
			p.fail(err)
			return
		}
		if some {
			p.heard[r] = time.Now()
		}
		if time.Since(p.heard[r]) > p.settings.timeout() {
			p.world.Fail(r)
			p.fail(&comm.RankError{Rank: r})
			return
		}
	}
	if err := p.tell(words(doPing)); err != nil {
		p.fail(err)
	}
}
