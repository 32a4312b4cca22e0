//go:build unix

package ranks

import (
	"runtime"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// A stepLoop is the state of rank 0's loop: the steps that wait for results from
// another rank, and the time of each rank's last message.
type stepLoop struct {
	*remoteModel
	unfinished []*order
	watch      comm.Stopwatch // measures the wait for the oldest step of unfinished
	lastSeen   []time.Time
}

// loop executes orders on the control channel's thread until the model is closed.
func (m *remoteModel) loop() {
	p := &stepLoop{remoteModel: m, lastSeen: make([]time.Time, len(m.part.Ranks))}
	p.markAlive()
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		var o *order
		open := true
		if len(p.unfinished) > 0 {
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
	for len(p.unfinished) > 0 {
		p.receive()
	}
	if m.Why() == nil {
		if err := m.broadcast(words(msgClose)); err != nil {
			m.fail(err)
		}
	}
}

// run sends an order to the other ranks and executes rank 0's part of it.
func (p *stepLoop) run(o *order) {
	for o.alone && len(p.unfinished) > 0 {
		p.receive()
	}
	err := p.Why()
	if err == nil && o.words == nil {
		err := p.failed(o.own())
		p.markAlive()
		if o.step != nil {
			o.step.ended(err)
		}
		return
	}
	if err == nil {
		p.commanded.Add(int64(len(p.part.Ranks)-1) * int64(len(bytesOf(o.words))))
		err = p.broadcast(o.words)
	}
	if err == nil {
		if err = o.own(); p.lostUnnamed(err) {
			err = p.findLost(err)
		}
	}
	p.markAlive()
	if o.step == nil {
		if err != nil {
			p.failed(err)
		}
		return
	}
	if err == nil && p.part.Output() != 0 {
		if len(p.unfinished) == 0 {
			p.watch = comm.Stopwatch{}
		}
		p.unfinished = append(p.unfinished, o)
		return
	}
	o.step.ended(p.failed(err))
}

// receive polls for the results of the oldest step.
func (p *stepLoop) receive() {
	o, from := p.unfinished[0], p.part.Output()
	n, err := p.control.Probe(from, comm.Result)
	if err == nil && n < 0 {
		waited, limit := p.watch.Elapsed(), p.settings.timeout()
		if p.exiting.Load() {
			limit = min(limit, exitingStep)
		}
		if waited > limit+time.Second/2 { // ranks that wait for each other time out first and report it
			if p.nccl.Load() != nil {
				err = p.findLost(&comm.RankError{Rank: from})
			} else {
				p.control.Fail(from)
				err = &comm.RankError{Rank: p.endpoint.Failed()}
			}
		} else {
			pause(waited)
			return
		}
	}
	if err == nil {
		err = p.takeResults(from, &o.step.step)
	}
	p.unfinished, p.watch = p.unfinished[1:], comm.Stopwatch{}
	p.markAlive()
	o.step.ended(p.failed(err))
}

// takeResults receives the results of a step.
func (p *stepLoop) takeResults(from int, s *device.Step) error {
	m := p.program.Manifest()
	take := func(b []byte) error {
		p.received.Add(int64(len(b)))
		return p.control.Recv(from, comm.Result, b)
	}
	if err := take(bytesOf(tokens(s))); err != nil {
		return err
	}
	if err := checkTokens(s, m.Vocab); err != nil {
		return err
	}
	for _, out := range results(m, s) {
		if err := take(bytesOf(out)); err != nil {
			return err
		}
	}
	return nil
}

// pause spins, yields or sleeps, depending on how long the wait has lasted.
func pause(waited time.Duration) {
	switch {
	case waited < 200*time.Microsecond:
	case waited < 20*time.Millisecond:
		runtime.Gosched()
	default:
		time.Sleep(100 * time.Microsecond)
	}
}

// markAlive sets the time of every rank's last message to now.
func (p *stepLoop) markAlive() {
	now := time.Now()
	for r := range p.lastSeen {
		p.lastSeen[r] = now
	}
}

// ping asks the other ranks for a sign of life and gives up a rank that has not
// answered within the timeout.
func (p *stepLoop) ping() {
	if p.Why() != nil {
		return
	}
	for r := 1; r < len(p.lastSeen); r++ {
		some, err := p.takePongs(r)
		if err != nil {
			p.fail(err)
			return
		}
		if some {
			p.lastSeen[r] = time.Now()
		}
		if time.Since(p.lastSeen[r]) > p.settings.timeout() {
			p.control.Fail(r)
			p.fail(&comm.RankError{Rank: r})
			return
		}
	}
	if err := p.broadcast(words(msgPing)); err != nil {
		p.fail(err)
	}
}
