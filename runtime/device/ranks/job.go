//go:build unix

package ranks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device/comm"
	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// A Job is a set of processes of which this one is a rank, started by an MPI launcher
// or described by torchrun's environment variables.
type Job struct {
	program  Program
	part     *manifest.Partition
	launch   comm.Launch
	control  control
	endpoint endpoint
	rank     *Rank                          // code for this CPU's instruction set
	exiting  atomic.Bool                    // set by ShortenTimeout
	left     bool                           // in order
	nccl     atomic.Pointer[comm.NCCLGroup] // the open model's group of GPUs; nil: there is none
}

// A control channel carries commands and replies between ranks. All methods except Do,
// Lost and Leave must be called on its thread.
type control interface {
	Do(f func())
	Send(to int, tag comm.Tag, data []byte) error
	Recv(from int, tag comm.Tag, data []byte) error
	Probe(from int, tag comm.Tag) (int, error)
	Await(from int, tag comm.Tag, patience time.Duration) ([]byte, error)
	Flush() error
	Fail(rank int)
	Lost() <-chan struct{} // closed when a rank is lost; nil: losses are only reported by calls
	Leave()
	Abort(status int) // ends all ranks; it may return
}

// An endpoint is one rank's end of a transport.
type endpoint interface {
	Table() unsafe.Pointer
	Counts() comm.Counts
	Failed() int
	SetTimeout(d time.Duration)
	ShortenTimeout()
}

// Join joins the job in which a launcher has started this process. say prints what it
// waits for. With an error, the job is nil if this process has not joined, else it can
// only be aborted.
func Join(ctx context.Context, p Program, l comm.Launch, say func(format string, args ...any)) (*Job, error) {
	part := p.Manifest().Partition
	var unfit error
	if l.Ranks != len(part.Ranks) {
		unfit = fmt.Errorf("the model is compiled for %d ranks (%s), but %s started %d: start that many, or one process for all ranks", len(part.Ranks), part.Devices, l.Name, l.Ranks)
	}
	j := &Job{program: p, part: part, launch: l}
	if l.Master != "" {
		link, err := comm.Rendezvous(ctx, comm.Member{Launch: l, Program: p.Hash(), Unfit: unfit, Limit: comm.RendezvousTimeout, Say: say})
		if err != nil {
			return nil, err
		}
		j.control, j.endpoint = link, link
		return j, j.load()
	}
	mpi, err := comm.JoinMPI(ctx, l, say)
	if err != nil {
		return nil, cmp.Or(unfit, err)
	}
	j.control, j.launch = mpi, mpi.Launch
	if unfit != nil { // the other ranks may run another program and wait for this one
		return j, unfit
	}
	if err := j.load(); err != nil {
		return j, err
	}
	end, err := mpi.Open(j.rank.Library, places(part)[j.launch.Rank], l.Local > online(), comm.DefaultTimeout)
	if err == nil {
		j.endpoint = end
	}
	return j, err
}

// load loads the rank's code.
func (j *Job) load() (err error) {
	if j.rank, err = j.program.Rank(j.launch.Rank, &Settings{}); err != nil {
		return fmt.Errorf("rank %d: %w", j.launch.Rank, err)
	}
	return nil
}

// Leads reports whether this process is rank 0, which executes the command line.
func (j *Job) Leads() bool { return j.launch.Rank == 0 }

// Rank returns the number of this process's rank.
func (j *Job) Rank() int { return j.launch.Rank }

// ShortenTimeout shortens the timeout for silent ranks. Call it when the process was
// asked to exit, perhaps because a rank is gone.
func (j *Job) ShortenTimeout() {
	j.endpoint.ShortenTimeout()
	j.exiting.Store(j.control.Lost() == nil) // otherwise the loss of a rank is reported at once
}

// open calls Program.Rank with settings. It reuses the device, and the library that the
// transport uses, if they are unchanged.
func (j *Job) open(s *Settings) (*Rank, error) {
	k, err := j.program.Rank(j.launch.Rank, s)
	if err == nil && k.Device.Info().Name == j.rank.Device.Info().Name {
		k.Device, k.Library = j.rank.Device, j.rank.Library
	}
	return k, err
}

// threads returns the number of threads of a rank: the configured number, else the
// number of cores that the process is bound to, else its share of the machine's cores.
func (j *Job) threads(s *Settings) int {
	n := cpu.DefaultThreads()
	switch {
	case s.Threads > 0:
		n = s.Threads
	case runtime.NumCPU() >= online() && j.launch.Local > 1:
		n /= j.launch.Local
	}
	return max(1, n)
}

// cores returns the set of cores that this rank uses: its share of the machine's cores,
// or nil if the launcher has already bound the process.
func (j *Job) cores() []int {
	if runtime.NumCPU() < online() || j.launch.At < 0 {
		return nil
	}
	return cpu.CoreSet(j.launch.At, j.launch.Local)
}

// online returns the number of logical CPUs of the machine, ignoring this process's
// affinity.
func online() int {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if n, ok := cpuList(string(text)); err == nil && ok {
		return n
	}
	return runtime.NumCPU()
}

// cpuList returns the number of CPUs in a list such as "0-3,8".
func cpuList(text string) (n int, ok bool) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		low, high, span := strings.Cut(part, "-")
		if !span {
			high = low
		}
		a, errA := strconv.Atoi(low)
		b, errB := strconv.Atoi(high)
		if errA != nil || errB != nil || b < a {
			return 0, false
		}
		n += b - a + 1
	}
	return n, true
}

// broadcast sends words to all other ranks. It must run on the control channel's
// thread.
func (j *Job) broadcast(w []int32) error {
	for r := 1; r < len(j.part.Ranks); r++ {
		if err := j.control.Send(r, comm.Control, bytesOf(w)); err != nil {
			return err
		}
	}
	return nil
}

// How long a rank may take to acknowledge the end of the job: it may compute a step. A
// job that failed does not wait for a rank that loads its weights.
const (
	leaveLimit  = time.Minute
	failedLimit = 8 * time.Second
)

// releaseWorkers tells the workers to leave, once none of them sends any more messages.
func (j *Job) releaseWorkers(limit time.Duration) error {
	if err := j.broadcast(words(msgLeave)); err != nil {
		return err
	}
	for r := 1; r < len(j.part.Ranks); r++ {
		data, err := j.control.Await(r, comm.Reply, limit)
		if err == nil && data == nil {
			err = &comm.RankError{Rank: r}
		}
		if err != nil {
			return err
		}
	}
	return j.broadcast(words(msgGo))
}

// Leave ends the job: rank 0 releases the workers and all ranks leave in order. It
// returns an error if they cannot. After the loss of a rank it does nothing.
func (j *Job) Leave(failed error) error {
	var unreached *comm.RankError
	if errors.As(failed, &unreached) || j.endpoint.Failed() >= 0 {
		return nil
	}
	limit := leaveLimit
	switch {
	case j.exiting.Load(): // perhaps because a rank is gone
		limit = exitingStep + time.Second/2
	case failed != nil:
		limit = failedLimit
	}
	err := error(nil)
	j.control.Do(func() {
		if j.Leads() {
			err = j.releaseWorkers(limit)
		}
		if err == nil {
			err = j.control.Flush()
		}
	})
	if err == nil {
		j.control.Leave()
		j.left = true
	}
	return err
}

// Left reports whether Leave has ended the job in order.
func (j *Job) Left() bool { return j.left }

// Abort ends the processes of all ranks, this one with status. It returns if the launcher
// cannot do so.
func (j *Job) Abort(status int) { j.control.Abort(status) }
