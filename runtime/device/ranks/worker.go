//go:build unix

package ranks

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// pingEvery is the interval at which rank 0 of an idle job pings the others. Rank 0 and
// a worker give each other up after a silence longer than the timeout.
const pingEvery = time.Second

// Work executes rank 0's commands until it ends the job. It returns nil then, or the
// error that stopped this rank.
func (j *Job) Work() error {
	return j.do(func() error {
		f := &worker{Job: j}
		err := f.loop()
		var unreached *comm.RankError
		if err != nil && !errors.As(err, &unreached) {
			f.control.Fail(f.launch.Rank) // makes the others report this rank as the cause
		}
		f.close()
		return err
	})
}

// A worker is a rank other than 0. All its methods run on the control channel's thread.
type worker struct {
	*Job
	me      *runner       // nil: no model is open
	status  reply         // result of opening the model
	limit   time.Duration // maximum silence of rank 0 while a model is open
	coming  *coming       // adapter that rank 0 is sending; nil: none
	pickers pickers       // of the open model
}

// loop reads messages and executes them.
func (f *worker) loop() error {
	for {
		patience := 24 * time.Hour // rank 0 may wait long for a command line; the launcher ends a job that has lost a rank
		if f.me != nil {
			patience = f.limit
		}
		data, err := f.control.Await(0, comm.Control, patience)
		if err != nil {
			return err
		}
		if data == nil {
			if f.me == nil {
				continue
			}
			f.control.Fail(0)
			return &comm.RankError{Rank: 0}
		}
		w, err := wordsOf(data)
		if err != nil {
			return err
		}
		if leave, err := f.handle(int(w[0]), w[1:]); leave || err != nil {
			return err
		}
	}
}

// handle executes one message.
func (f *worker) handle(what int, w []int32) (leave bool, err error) {
	if f.me == nil && slices.Contains([]int{msgStep, msgCopy, msgMove, msgCopyCell, msgMoveInCells, msgAdapter, msgAdapterData}, what) {
		return false, fmt.Errorf("bug: rank 0 sent work before it opened the model")
	}
	switch what {
	case msgOpen:
		return false, f.openModel(w)
	case msgStep:
		return false, f.step(w)
	case msgCopy, msgMove, msgCopyCell, msgMoveInCells:
		if f.me.copy(what, w) {
			return false, nil
		}
	case msgAdapter, msgAdapterData:
		return false, f.adapter(what, w)
	case msgJoin:
		return false, f.join(w)
	case msgPing:
		return false, f.control.Send(0, comm.Pong, []byte{1})
	case msgClose:
		f.close()
		return false, nil
	case msgLeave:
		return false, f.control.Send(0, comm.Reply, []byte{1})
	case msgGo:
		return true, nil
	}
	return false, fmt.Errorf("bug: invalid message %d of %d words from rank 0", what, len(w))
}

// copy executes a copy of a page, a cell or a row of either. It returns false if the
// words are invalid.
func (m *runner) copy(what int, w []int32) bool {
	count, rows := m.pages, int32(device.PageRows)
	if what == msgCopyCell || what == msgMoveInCells {
		count, rows = m.cells, device.CellRows
	}
	if what == msgCopy || what == msgCopyCell {
		if len(w) != 2 || min(w[0], w[1]) < 0 || max(w[0], w[1]) >= count {
			return false
		}
		if what == msgCopy {
			m.ctx.CopyPage(w[0], w[1])
		} else {
			m.ctx.CopyCell(w[0], w[1])
		}
		return true
	}
	if len(w) != 4 || slices.Min(w) < 0 || max(w[0], w[2]) >= count || max(w[1], w[3]) >= rows {
		return false
	}
	if what == msgMove {
		m.ctx.MoveRow(device.Row{Page: w[0], Row: w[1]}, device.Row{Page: w[2], Row: w[3]})
	} else {
		m.ctx.MoveInCells(device.CellRow{Cell: w[0], Row: w[1]}, device.CellRow{Cell: w[2], Row: w[3]})
	}
	return true
}

// openModel starts the model with rank 0's configuration and reports the result.
func (f *worker) openModel(w []int32) error {
	var o opening
	if err := json.Unmarshal(bytesOf(w), &o); err != nil {
		return fmt.Errorf("bug: rank 0 sent an invalid configuration: %w", err)
	}
	f.close()
	f.status = reply{Hash: f.program.Hash()}
	if f.status.Hash == o.Hash { // a different program may encode the message differently
		source, err := f.start(&o)
		f.status.Source = source
		if err != nil {
			f.status.Error = err.Error()
		}
	}
	return f.answer(&f.status)
}

// answer sends a reply to rank 0.
func (f *worker) answer(r *reply) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return f.control.Send(0, comm.Reply, data)
}

// start opens the rank's weights and starts its threads.
func (f *worker) start(o *opening) (source string, err error) {
	cfg, err := o.config(f.threads(&o.Settings))
	if err != nil {
		return "", err
	}
	f.limit = o.Settings.timeout()
	f.endpoint.SetTimeout(f.limit)
	k, err := f.open(&o.Settings)
	if err != nil {
		return "", err
	}
	data, source, err := f.program.Weights(f.launch.Rank, &o.Settings)
	if err != nil {
		return source, err
	}
	me := &runner{rank: f.launch.Rank, endpoint: f.endpoint}
	if err := me.start(k, cfg, data, f.cores()); err != nil {
		return source, err
	}
	f.me, f.pickers = me, make(pickers, max(1, cfg.Threads))
	return source, nil
}

// step runs one step and sends its results to rank 0 if this rank returns them.
func (f *worker) step(w []int32) error {
	s := f.me.own
	err := readStep(s, w)
	if err == nil {
		err = fits(f.program.Manifest(), s)
	}
	if err != nil {
		return err
	}
	gives := f.launch.Rank == f.part.Output()
	err = f.withWatchdog(f.limit, func() error { return f.me.step(s, gives) })
	if f.lostUnnamed(err) {
		f.limit = verdictLimit // rank 0 is looking for the lost rank
		return nil
	}
	if err != nil {
		return err
	}
	if !gives {
		return nil
	}
	f.pickers.choose(f.program.Manifest(), s)
	if err := f.control.Send(0, comm.Result, bytesOf(tokens(s))); err != nil {
		return err
	}
	for _, o := range results(f.program.Manifest(), s) {
		if err := f.control.Send(0, comm.Result, bytesOf(o)); err != nil {
			return err
		}
	}
	return nil
}

// close closes the model.
func (f *worker) close() {
	if f.me != nil {
		f.me.close()
		f.me = nil
		f.nccl.Store(nil)
	}
}
