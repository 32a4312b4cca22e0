//go:build unix

package ranks

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// A Leader is the device of a partitioned model in rank 0 of a job. It runs rank 0
// itself and sends commands to the other processes.
type Leader struct {
	*Job
	breakage
	settings Settings
	own      *Rank
	opened   atomic.Bool // a model is open

	commanded, received atomic.Int64 // see Counts
}

var _ Group = (*Leader)(nil)

// Leader loads the code of rank 0.
func (j *Job) Leader(s Settings) (*Leader, error) {
	k, err := j.open(&s)
	if err != nil {
		return nil, fmt.Errorf("rank 0: %w", err)
	}
	return &Leader{Job: j, breakage: newBreakage(), settings: s, own: k}, nil
}

// Info returns the info of rank 0's device; as many steps may be in flight as there are
// pipeline stages. The bandwidth of all ranks together is unknown.
func (l *Leader) Info() device.Info {
	info := l.own.Device.Info()
	info.InFlight, info.WeightBytes, info.ReadGBs = l.part.Stages(), l.own.weightBytes(), 0
	return info
}

// ScratchBytes returns the scratch memory of rank 0.
func (l *Leader) ScratchBytes(cfg *device.Config) int64 {
	own := *cfg
	own.Threads = l.threads(&l.settings)
	return l.own.Device.ScratchBytes(&own)
}

// Peak returns 0: it is unknown.
func (l *Leader) Peak(device.Arithmetic, int, time.Duration) float64 { return 0 }

// Counts returns the communication volume of this rank so far.
func (l *Leader) Counts() []Counts {
	c := Counts{Counts: l.endpoint.Counts(), Commanded: l.commanded.Load(), Received: l.received.Load()}
	if r := l.nccl.Load(); r != nil {
		c.Counts = r.Counts()
	}
	return []Counts{c}
}

// Start starts the model on all ranks and checks that they run the same program with
// weights from the same files.
func (l *Leader) Start(cfg *device.Config) (device.Context, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if l.opened.Swap(true) {
		return nil, errors.New("a job can run only one model at a time; to run several, start the program without a launcher")
	}
	m, err := l.start(cfg)
	if err != nil {
		l.opened.Store(false)
		return nil, err
	}
	return m, nil
}

// start opens the model on all ranks.
func (l *Leader) start(cfg *device.Config) (*remoteModel, error) {
	o := openingOf(cfg)
	o.Settings, o.Hash = l.settings, l.program.Hash()
	l.endpoint.SetTimeout(l.settings.timeout())
	w, err := appendJSON(words(msgOpen), &o)
	if err != nil {
		return nil, err
	}
	l.control.Do(func() { err = l.broadcast(w) })
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
		own.CPUs = cpu.Pins(own.Threads)
	}
	me := &runner{endpoint: l.endpoint}
	l.nccl.Store(nil)
	if err = l.do(func() error { return me.start(l.own, own, data, l.cores()) }); err != nil {
		return nil, fmt.Errorf("rank 0: %w", err)
	}
	l.control.Do(func() { err = l.replies(&o, source) })
	if err == nil && l.nccl.Load() != nil {
		err = l.do(func() error { return l.join(&o, source) })
	}
	if err != nil {
		if l.endpoint.Failed() < 0 {
			me.close()
		}
		return nil, err
	}
	m := &remoteModel{Leader: l, me: me, orders: make(chan *order, 64), ended: make(chan struct{}), stuck: make(chan struct{})}
	go m.release()
	go func() {
		defer close(m.ended)
		l.control.Do(m.loop)
	}()
	return m, nil
}

// startLimit is how long a rank may take to load its weights.
const startLimit = 15 * time.Minute

// replies waits until every rank has reported that it started.
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
	data, err := l.control.Await(r, comm.Reply, startLimit)
	if err != nil {
		return err
	}
	if data == nil {
		l.control.Fail(r)
		return &comm.RankError{Rank: r, Err: fmt.Errorf("not started after %v", startLimit)}
	}
	answer, err := readReply(r, data)
	if err != nil {
		return err
	}
	switch {
	case answer.Hash != o.Hash:
		err = fmt.Errorf("it runs a different program (%.12s, rank 0 runs %.12s); start the same program on all ranks", answer.Hash, o.Hash)
	case answer.Error != "":
		err = errors.New(answer.Error)
	case answer.Source != source:
		err = errOtherWeights
	default:
		return nil
	}
	return &comm.RankError{Rank: r, Err: err}
}

// An order is a step or another operation that all ranks execute in the same sequence.
type order struct {
	words []int32      // message to the other ranks; none: only rank 0 executes it
	own   func() error // rank 0's part
	step  *pending     // nil: not a step
	alone bool         // no step may be in flight
}

// A remoteModel is an open model as seen by rank 0.
type remoteModel struct {
	device.Uninstrumented
	*Leader
	me     *runner
	orders chan *order
	ended  chan struct{}
	stuck  chan struct{} // closed when a step waits for a lost rank and cannot be aborted
	closed atomic.Bool
	steps  progress
}

// Submit queues a step.
func (m *remoteModel) Submit(s *device.Step) func() error {
	if err := m.Why(); err != nil {
		return device.Ended(err)
	}
	p := newPending(s, 1)
	o := &order{step: p}
	alone := m.program.Manifest().Graphs[s.Graph].Follows()
	o.own = func() error {
		return m.withWatchdog(m.settings.timeout(), func() error { return m.me.step(&p.step, alone || m.part.Output() == 0) })
	}
	if !alone {
		o.words = appendStep(words(msgStep), s, m.part.Output() != 0)
	}
	m.steps.begin()
	m.orders <- o
	return func() error {
		defer m.steps.end()
		return p.wait(m.stuck, m.Why)
	}
}

// CopyPage copies a page on every rank, after the steps submitted before.
func (m *remoteModel) CopyPage(to, from int32) { m.copy(msgCopy, to, from) }

// MoveRow copies a row on every rank, after the steps submitted before.
func (m *remoteModel) MoveRow(to, from device.Row) {
	m.copy(msgMove, to.Page, to.Row, from.Page, from.Row)
}

// CopyCell copies a cell on every rank, after the steps submitted before.
func (m *remoteModel) CopyCell(to, from int32) { m.copy(msgCopyCell, to, from) }

// MoveInCells copies a row on every rank, after the steps submitted before.
func (m *remoteModel) MoveInCells(to, from device.CellRow) {
	m.copy(msgMoveInCells, to.Cell, to.Row, from.Cell, from.Row)
}

// copy makes every rank execute a copy, rank 0 as the others do.
func (m *remoteModel) copy(what int, w ...int32) {
	m.orders <- &order{words: words(int32(what), w...), own: func() error {
		if !m.me.copy(what, w) {
			return fmt.Errorf("bug: copy %d of %v is out of range", what, w)
		}
		return nil
	}}
}

// Counters returns no counts: those of the other processes are unknown.
func (m *remoteModel) Counters() device.Counters { return device.Counters{} }

// Close closes the model on every rank.
func (m *remoteModel) Close() {
	if m.closed.Swap(true) {
		return
	}
	close(m.orders)
	select {
	case <-m.ended:
		m.me.close()
		m.opened.Store(false)
	case <-m.stuck:
	}
}
