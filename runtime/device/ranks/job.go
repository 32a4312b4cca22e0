//go:build unix

package ranks

import (
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

// A Job is one in which this process is one rank of a partitioned model, by MPI
// or by torchrun's variables.
type Job struct {
	program  Program
	part     *manifest.Partition
	launch   comm.Launch
	control  control
	endpoint endpoint
	rank     *Rank                          // with the instruction set of this processor
	hurried  atomic.Bool                    // by ShortenTimeout
	nccl     atomic.Pointer[comm.NCCLGroup] // of the ranks' GPUs, for the model that is open; nil: there is none
}

// A control channel is how ranks tell each other what to do. All calls but Do, Lost and
// Leave are made on its thread.
type control interface {
	Do(f func())
	Send(to int, tag comm.Tag, data []byte) error
	Recv(from int, tag comm.Tag, data []byte) error
	Probe(from int, tag comm.Tag) (int, error)
	Await(from int, tag comm.Tag, patience time.Duration) ([]byte, error)
	Flush() error
	Fail(rank int)
	Lost() <-chan struct{} // closed when a rank is gone; nil: only calls tell
	Leave()
}

// An endpoint is a rank's end of a transport.
type endpoint interface {
	Table() unsafe.Pointer
	Counts() comm.Counts
	Failed() int
	SetTimeout(d time.Duration)
	ShortenTimeout()
}

// Join joins the job that a launcher has started this process in.
func Join(ctx context.Context, p Program, l comm.Launch) (*Job, error) {
	part := p.Manifest().Partition
	if l.Ranks != len(part.Ranks) {
		return nil, fmt.Errorf("the model is made for %d ranks (%s), and %s has started %d: start as many, or one process for all of them", len(part.Ranks), part.Devices, l.Name, l.Ranks)
	}
	j := &Job{program: p, part: part, launch: l}
	if l.Master != "" {
		link, err := comm.Rendezvous(ctx, l, p.Hash(), comm.RendezvousTimeout)
		if err != nil {
			return nil, err
		}
		j.control, j.endpoint = link, link
		return j, j.load()
	}
	mpi, err := comm.JoinMPI(l)
	if err != nil {
		return nil, err
	}
	j.control, j.launch = mpi, mpi.Launch
	if err := j.load(); err != nil {
		return nil, err
	}
	j.endpoint, err = mpi.Open(j.rank.Library, places(part)[j.launch.Rank], l.Local > online(), comm.DefaultTimeout)
	return j, err
}

// load reads the rank's code.
func (j *Job) load() (err error) {
	if j.rank, err = j.program.Rank(j.launch.Rank, &Settings{}); err != nil {
		return fmt.Errorf("rank %d: %w", j.launch.Rank, err)
	}
	return nil
}

// Leads says that this is rank 0, which does what the command line says.
func (j *Job) Leads() bool { return j.launch.Rank == 0 }

// Rank is this process's number.
func (j *Job) Rank() int { return j.launch.Rank }

// ShortenTimeout is for a process that is told to end: whoever is silent now is not
// waited for as long.
func (j *Job) ShortenTimeout() {
	j.endpoint.ShortenTimeout()
	j.hurried.Store(j.control.Lost() == nil) // else the loss of a rank is known at once
}

// open is Program.Rank with settings; the device and the library that the
// transport came from serve again where they are the same.
func (j *Job) open(s *Settings) (*Rank, error) {
	k, err := j.program.Rank(j.launch.Rank, s)
	if err == nil && k.Device.Info().Name == j.rank.Device.Info().Name {
		k.Device, k.Library = j.rank.Device, j.rank.Library
	}
	return k, err
}

// threads is how many a rank of the job has when nobody says: the cores that it
// is bound to, else its share of the machine's.
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

// cores is the set that this rank keeps to: its share of the machine's, unless
// the launcher has bound it already.
func (j *Job) cores() []int {
	if runtime.NumCPU() < online() || j.launch.At < 0 {
		return nil
	}
	return cpu.CoreSet(j.launch.At, j.launch.Local)
}

// online is the number of processors of the machine, whatever this process is
// bound to.
func online() int {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if n, ok := cpuList(string(text)); err == nil && ok {
		return n
	}
	return runtime.NumCPU()
}

// cpuList counts a list such as "0-3,8".
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

// broadcast sends words to the ranks; the thread of the control channel alone.
func (j *Job) broadcast(w []int32) error {
	for r := 1; r < len(j.part.Ranks); r++ {
		if err := j.control.Send(r, comm.Control, bytesOf(w)); err != nil {
			return err
		}
	}
	return nil
}

// leaveLimit is how long a rank may take to let go.
const leaveLimit = time.Minute

// releaseWorkers lets the others go when none of them sends any more.
func (j *Job) releaseWorkers() error {
	if err := j.broadcast(words(msgLeave)); err != nil {
		return err
	}
	for r := 1; r < len(j.part.Ranks); r++ {
		data, err := j.control.Await(r, comm.Reply, leaveLimit)
		if err == nil && data == nil {
			err = &comm.RankError{Rank: r}
		}
		if err != nil {
			return err
		}
	}
	return j.broadcast(words(msgGo))
}

// Leave ends the job: rank 0 lets the others go, and all leave in order. With an
// error there is no order left: the process just ends.
func (j *Job) Leave(failed error) {
	var unreached *comm.RankError
	if errors.As(failed, &unreached) || j.endpoint.Failed() >= 0 {
		return
	}
	err := error(nil)
	j.control.Do(func() {
		if j.Leads() {
			err = j.releaseWorkers()
		}
		if err == nil {
			err = j.control.Flush()
		}
	})
	if err == nil {
		j.control.Leave()
	}
}
