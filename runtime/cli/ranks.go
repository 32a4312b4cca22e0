//go:build unix

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device/comm"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/device/ranks"
	"github.com/iflowc/iflowc/runtime/kit/interrupt"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// farewell is how long a rank that gives up stays. A launcher kills all ranks
// when one ends, and the others should print their errors first.
const farewell = time.Second

// underLauncher returns a context that also ends when the launcher of the
// process's job is gone. The launcher's end closes its pipes too; a write to
// one is then an error, and must not end a service that still has to respond.
func underLauncher(ctx context.Context) context.Context {
	if !launched() {
		return ctx
	}
	signal.Ignore(syscall.SIGPIPE)
	return comm.Supervised(ctx)
}

// launched reports whether the parent is a launcher: of MPI, or torchrun itself
// rather than a shell with its variables.
func launched() bool {
	_, mpi, err := comm.Launched()
	return mpi || err != nil || os.Getenv("TORCHELASTIC_RUN_ID") != ""
}

// join makes the process a rank of the job in which a launcher started it, if
// any. Rank 0 leads: it runs its command line. All others work for it until the
// end.
func (m *model) join(ctx context.Context) (leads bool, err error) {
	m.job, err = m.bin.Join(ctx, m.say)
	if err != nil || m.job == nil {
		return err == nil, err
	}
	context.AfterFunc(ctx, func() {
		// A launcher that has lost a rank sends SIGTERM, and SIGKILL two seconds later.
		// deploy/launch sends SIGINT: rank 0 then finishes its requests with all ranks.
		var asked interrupt.Stopped
		if !errors.As(context.Cause(ctx), &asked) || asked.Signal != os.Interrupt {
			m.job.ShortenTimeout()
		}
	})
	if m.job.Leads() {
		return true, nil
	}
	if err = m.job.Work(); err != nil {
		err = fmt.Errorf("rank %d stops: %w", m.job.Rank(), err)
	}
	m.bin.Close()
	return false, m.leave(err)
}

// leave leaves the job, if any, and returns err or the error of leaving.
func (m *model) leave(err error) error {
	if m.job == nil {
		return err
	}
	return cmp.Or(err, m.job.Leave(err))
}

// pidFile is the environment variable that names the file for the process id of
// rank 0. deploy/launch sets it.
const pidFile = "IFLOWC_PID_FILE"

// writePID writes the process id to the file that the environment names, if any.
func writePID() error {
	name := os.Getenv(pidFile)
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o600) // a pipe that nobody reads is an error
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
		err = cmp.Or(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("%s: %w; rank 0 must run on the machine of the program that set it", pidFile, err)
	}
	return nil
}

// refusing is how long a service that has lost a rank still responds with
// status 503 before it ends.
const refusing = time.Second

// untilBroken runs a service until ctx ends or soon after the model has lost a
// rank; the error then names the rank.
func (m *model) untilBroken(ctx context.Context, service func(context.Context) error) error {
	status := m.bin.Ranks()
	until, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-status.Broken():
			time.Sleep(refusing)
			cancel()
		case <-until.Done():
		}
	}()
	err := service(until)
	if lost := status.Why(); lost != nil {
		return lost
	}
	return err
}

// said is the communication volume of a rank: its part of the exchanges in its
// TP group, and the data sent to the next PP stage. Rank 0 of several processes
// also counts the steps that it sent to the others and the results that it
// received.
type said struct {
	Exchanges int64   `json:"exchanges"`
	Exchanged int64   `json:"exchanged_bytes"`
	Sends     int64   `json:"sends"`
	Sent      int64   `json:"sent_bytes"`
	WaitedS   float64 `json:"waited_s"` // for earlier stages
	Commanded int64   `json:"step_bytes"`
	Received  int64   `json:"result_bytes"`
}

// said returns the communication volume of the ranks of this process.
func (m *model) said() (list []said) {
	for _, c := range m.bin.Ranks().Counts() {
		list = append(list, said{c.Exchanges, c.Exchanged, c.Sends, c.Sent, c.Waited().Seconds(), c.Commanded, c.Received})
	}
	return list
}

// measureRanks registers metrics of the communication of this process's ranks.
func (m *model) measureRanks(r *metrics.Registry) {
	if !m.bin.Partitioned() {
		return
	}
	total := func(of func(ranks.Counts) int64) func() float64 {
		return func() (n float64) {
			for _, c := range m.bin.Ranks().Counts() {
				n += float64(of(c))
			}
			return n
		}
	}
	r.Func("counter", "iflowc_exchanged_bytes_total", "Bytes that the ranks of this process gave to exchanges in their tensor groups.", total(func(c ranks.Counts) int64 { return c.Exchanged }))
	r.Func("counter", "iflowc_sent_bytes_total", "Bytes that the ranks of this process sent to the next stage.", total(func(c ranks.Counts) int64 { return c.Sent }))
	r.Func("counter", "iflowc_step_bytes_total", "Bytes of steps that this process sent to the other ranks.", total(func(c ranks.Counts) int64 { return c.Commanded }))
	r.Func("counter", "iflowc_result_bytes_total", "Bytes of results that this process received from the last stage.", total(func(c ranks.Counts) int64 { return c.Received }))
}

// rankInfo is a rank in the output of info.
type rankInfo struct {
	manifest.Rank
	Bytes int64 `json:"weight_bytes"`
}

// ranks adds the ranks of a partitioned model; the weights are the sum of
// theirs.
func (i *information) ranks(m *model) error {
	if !m.bin.Partitioned() {
		return nil
	}
	own, err := m.bin.Shares()
	if err != nil {
		return err
	}
	for r, k := range i.Partition.Ranks {
		n := weightBytes(own[r])
		i.Ranks = append(i.Ranks, rankInfo{k, n})
		i.Bytes += n
	}
	if at, err := cpu.ChooseISA(own[0].Libs, ""); err == nil {
		i.ISA = own[0].Libs[at].ISA
	}
	return nil
}

// abandon ends the job of a process that could not leave it in order. Some
// launchers wait for the other ranks after one has failed. A process that could
// not join waits too, because some launchers end the others at once.
func (p *Process) abandon(err error, code int) {
	var refused *comm.RankError
	switch {
	case p.job != nil && !p.job.Left():
		time.Sleep(farewell)
		p.job.Abort(code)
	case p.job == nil && launched() && errors.As(err, &refused):
		time.Sleep(farewell)
	}
}
