//go:build unix

package ranks

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// A Leader is the device of a partitioned model in rank 0 of a job: it runs
// rank 0 itself and tells the other processes what to do.
type Leader struct {
	*Job
	breakage
	settings Settings
	own      *Rank
	opened   atomic.Bool // a model is open
}

// Lead opens the code of rank 0.
func (j *Job) Lead(s Settings) (*Leader, error) {
	k, err := j.open(&s)
	if err != nil {
		return nil, fmt.Errorf("rank 0: %w", err)
	}
	return &Leader{Job: j, breakage: newBreakage(), settings: s, own: k}, nil
}

// Name is the instruction set.
func (l *Leader) Name() string { return l.own.Library.ISA }

// Memory is what rank 0 takes.
func (l *Leader) Memory() (weights, page int64) { return l.own.memory() }

// StateBytes is the size of this rank's state.
func (l *Leader) StateBytes(pages int) int64 { return l.own.Library.StateBytes(pages) }

// ArenaBytes is the size of this rank's scratch memory.
func (l *Leader) ArenaBytes(maxTokens, maxWanted, maxSeqs int) int64 {
	return l.own.Library.ArenaBytes(l.threads(&l.settings), maxTokens, maxWanted, maxSeqs)
}

// Counts are what this rank has said so far.
func (l *Leader) Counts() []comm.Counts {
	if r := l.ring.Load(); r != nil {
		return []comm.Counts{r.Counts()}
	}
	return []comm.Counts{l.end.Counts()}
}

// Open starts the model on all ranks and checks that they run the same program
// with weights of the same files.
func (l *Leader) Open(cfg *device.Config) (device.DeviceModel, error) {
	if l.opened.Swap(true) {
		return nil, errors.New("the ranks of a job run one model at a time; start the program without a launcher")
	}
	m, err := l.start(cfg)
	if err != nil {
		l.opened.Store(false)
		return nil, err
	}
	return m, nil
}

// start opens the model on all ranks.
func (l *Leader) start(cfg *device.Config) (*led, error) {
	o := spread(cfg)
	o.Settings, o.Hash = l.settings, l.program.Hash()
	l.end.Patience(l.settings.timeout())
	w, err := text(words(doOpen), &o)
	if err != nil {
		return nil, err
	}
	l.world.Do(func() { err = l.tell(w) })
	if err != nil {
		return nil, l.fail(err)
	}
	data, source, err := l.program.Weights(0, &l.settings)
	if err != nil {
		return nil, fmt.Errorf("rank 0: %w", err)
	}
	own := *cfg
	own.Threads, own.CPUs = l.threads(&l.settings), nil
	if o.Settings.Pin {
		own.CPUs = device.Pins(own.Threads)
	}
	me := &member{end: l.end}
	l.ring.Store(nil)
	if err = l.do(func() error { return me.start(l.own, own, data, l.cores()) }); err != nil {
		return nil, fmt.Errorf("rank 0: %w", err)
	}
	l.world.Do(func() { err = l.replies(&o, source) })
	if err == nil && l.ring.Load() != nil {
		err = l.do(func() error { return l.join(&o, source) })
	}
	if err != nil {
		if l.end.Failed() < 0 {
			me.ctx.Close()
		}
		return nil, err
	}
	m := &led{Leader: l, me: me, jobs: make(chan *order, 64), ended: make(chan struct{}), stuck: make(chan struct{})}
	go m.release()
	go func() {
		defer close(m.ended)
		l.world.Do(m.loop)
	}()
	return m, nil
}

// startLimit is how long a rank may take to read its weights.
const startLimit = 15 * time.Minute

// replies waits for every rank's word that it has started.
func (l *Leader) replies(o *opening, source string) error {
	var first error
	for r := 1; r < len(l.part.Ranks); r++ {
		err := l.reply(r, o, source)
		var gone *comm.RankError
		if errors.As(err, &gone) && gone.Err == nil {
			return l.fail(err)
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func (l *Leader) reply(r int, o *opening, source string) error {
	data, err := l.world.Receive(r, comm.Reply, startLimit)
	if err != nil {
		return err
	}
	if data == nil {
		l.world.Fail(r)
		return &comm.RankError{Rank: r, Err: fmt.Errorf("it has not started after %v", startLimit)}
	}
	var said reply
	if err := json.Unmarshal(data, &said); err != nil {
		return &comm.RankError{Rank: r, Err: fmt.Errorf("bug: it answers %q", data)}
	}
	switch {
	case said.Hash != o.Hash:
		err = fmt.Errorf("it runs another program (%.12s, rank 0 %.12s); start the same one everywhere", said.Hash, o.Hash)
	case said.Error != "":
		err = errors.New(said.Error)
	case said.Source != source:
		err = errOtherWeights
	default:
		return nil
	}
	return &comm.RankError{Rank: r, Err: err}
}

// An order is a step or something else that all ranks do in turn.
type order struct {
	words  []int32      // what the others are told; none: it is for rank 0 alone
	own    func() error // what rank 0 does of it
	flight *flight      // of a step
	ctx    *device.Context
}

// led is the model while it is open.
type led struct {
	*Leader
	me     *member
	jobs   chan *order
	ended  chan struct{}
	stuck  chan struct{} // closed when a step waits for a lost rank and cannot be ended
	closed atomic.Bool
}

// Begin queues a step.
func (m *led) Begin(c *device.Context, s device.DeviceStep) (func() error, error) {
	if err := m.Why(); err != nil {
		return nil, err
	}
	f := newFlight(c, s, 1)
	o := &order{flight: f, ctx: c}
	alone := m.program.Manifest().Graphs[s.Entry].Follows()
	o.own = func() error {
		return m.watched(m.settings.timeout(), func() error { return m.me.step(&f.view, alone || m.part.Output() == 0) })
	}
	if !alone {
		o.words = f.view.Words(words(doStep))
	}
	m.jobs <- o
	return func() error { return f.wait(m.stuck, m.Why) }, nil
}

// Run computes a step.
func (m *led) Run(c *device.Context, s device.DeviceStep) error {
	wait, err := m.Begin(c, s)
	if err != nil {
		return err
	}
	return wait()
}

// CopyPage copies a page on every rank, behind the steps that have begun.
func (m *led) CopyPage(to, from int32) error {
	m.jobs <- &order{words: words(doCopy, int(to), int(from)), own: func() error { m.me.ctx.CopyPage(to, from); return nil }}
	return m.Why()
}

// MoveRow moves a row on every rank, behind the steps that have begun.
func (m *led) MoveRow(toPage, toRow, fromPage, fromRow int) error {
	m.jobs <- &order{words: words(doMove, toPage, toRow, fromPage, fromRow), own: func() error { m.me.move(toPage, toRow, fromPage, fromRow); return nil }}
	return m.Why()
}

// Stages is the number of groups of layers.
func (m *led) Stages() int { return m.part.Stages() }

// Busy is not known of the other processes.
func (m *led) Busy() []time.Duration { return nil }

// Close ends the model on every rank.
func (m *led) Close() {
	if m.closed.Swap(true) {
		return
	}
	close(m.jobs)
	select {
	case <-m.ended:
		m.me.ctx.Close()
		m.opened.Store(false)
	case <-m.stuck:
	}
}

// A pilot is what the loop knows: the steps whose results are still at another
// rank, and when each rank was heard last.
type pilot struct {
	*led
	away  []*order
	watch comm.Watch // over the oldest of away
	heard []time.Time
}

// loop runs on the world's thread until the model is closed.
func (m *led) loop() {
	p := &pilot{led: m, heard: make([]time.Time, len(m.part.Ranks))}
	p.hear()
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		var o *order
		open := true
		if len(p.away) > 0 {
			select {
			case o, open = <-m.jobs:
			default:
				p.land()
				continue
			}
		} else {
			select {
			case o, open = <-m.jobs:
			case <-tick.C:
				p.ping()
				continue
			}
		}
		if !open {
			break
		}
		p.do(o)
	}
	for len(p.away) > 0 {
		p.land()
	}
	if m.Why() == nil {
		if err := m.tell(words(doClose)); err != nil {
			m.fail(err)
		}
	}
}

// do tells the others an order and does rank 0's part of it.
func (p *pilot) do(o *order) {
	err := p.Why()
	if err == nil && o.words == nil {
		o.flight.land(p.failed(o.own()))
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
	if o.flight == nil {
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
	o.flight.land(p.failed(err))
}

// land looks for the results of the oldest step.
func (p *pilot) land() {
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
		for _, out := range results(o.ctx.Out, p.program.Manifest(), &o.flight.view) {
			if err = p.world.Get(from, comm.Result, bytesOf(out)); err != nil {
				break
			}
		}
	}
	p.away, p.watch = p.away[1:], comm.Watch{}
	p.hear()
	o.flight.land(p.failed(err))
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
func (p *pilot) hear() {
	now := time.Now()
	for r := range p.heard {
		p.heard[r] = now
	}
}

// ping asks the others whether they are there, and sees who has not answered
// for too long.
func (p *pilot) ping() {
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
