//go:build unix

package partition

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/comm"
	"github.com/iflowc/iflowc/runtime/load"
	"github.com/iflowc/iflowc/runtime/manifest"
)

// A Job is an MPI job in which this process is one rank of a partitioned model.
type Job struct {
	program Program
	part    *manifest.Partition
	world   *comm.World
	end     *comm.End
	rank    *Rank // with the instruction set of this processor
}

// Join joins the job that a launcher has started this process in.
func Join(p Program, l comm.Launch) (*Job, error) {
	part := p.Manifest().Partition
	if l.Ranks != len(part.Ranks) {
		return nil, fmt.Errorf("the model is made for %d ranks (%s), and %s has started %d: start as many, or one process for all of them", len(part.Ranks), part.Devices, l.Name, l.Ranks)
	}
	world, err := comm.JoinMPI(l)
	if err != nil {
		return nil, err
	}
	j := &Job{program: p, part: part, world: world}
	if j.rank, err = p.Rank(world.Rank, &Settings{}); err != nil {
		return nil, fmt.Errorf("rank %d: %w", world.Rank, err)
	}
	j.end, err = world.Open(j.rank.transports(), places(part)[world.Rank], l.Local > online(), comm.DefaultTimeout)
	return j, err
}

// Reach joins the GPUs of all ranks by NCCL. They meet where torchrun's variables
// say, if those are there, else MPI tells them where. It is for the thread that
// opens the rank's model, which is that of MPI.
func (j *Job) Reach(file string) (*comm.Ring, error) {
	n, err := comm.OpenNCCL(file)
	if err != nil {
		return nil, err
	}
	meeting, ok, err := comm.TorchrunLaunched()
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return j.world.JoinNCCL(n)
	case meeting.Rank != j.world.Rank || meeting.Ranks != j.world.Ranks:
		return nil, fmt.Errorf("the environment says RANK=%d WORLD_SIZE=%d, but this is rank %d of %d of %s: unset them, or set them alike",
			meeting.Rank, meeting.Ranks, j.world.Rank, j.world.Ranks, j.world.Name)
	}
	return meeting.Join(n)
}

// Leads says that this is rank 0, which does what the command line says.
func (j *Job) Leads() bool { return j.world.Rank == 0 }

// Rank is this process's number.
func (j *Job) Rank() int { return j.world.Rank }

// Hurry is for a process that is told to end: whoever is silent now is not
// waited for as long.
func (j *Job) Hurry() { j.end.Hurry() }

// open is Program.Rank with settings; the library that the transport came from
// serves again where it is the same.
func (j *Job) open(s *Settings) (*Rank, error) {
	k, err := j.program.Rank(j.world.Rank, s)
	if err == nil && k.Library.ISA == j.rank.Library.ISA {
		k.Library = j.rank.Library
	}
	return k, err
}

// threads is how many a rank of the job has when nobody says: the cores that it
// is bound to, else its share of the machine's.
func (j *Job) threads(s *Settings) int {
	n := load.DefaultThreads()
	switch {
	case s.Threads > 0:
		n = s.Threads
	case runtime.NumCPU() >= online() && j.world.Local > 1:
		n /= j.world.Local
	}
	return max(1, n)
}

// cores is the set that this rank keeps to: its share of the machine's, unless
// the launcher has bound it already.
func (j *Job) cores() []int {
	if runtime.NumCPU() < online() || j.world.At < 0 {
		return nil
	}
	return load.CoreSet(j.world.At, j.world.Local)
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

// tell sends words to the ranks; the thread of MPI alone.
func (j *Job) tell(w []int32) error {
	for r := 1; r < len(j.part.Ranks); r++ {
		if err := j.world.Put(r, comm.Control, bytesOf(w)); err != nil {
			return err
		}
	}
	return nil
}

// leaveLimit is how long a rank may take to let go.
const leaveLimit = time.Minute

// dismiss lets the others go when none of them sends any more.
func (j *Job) dismiss() error {
	if err := j.tell(words(doLeave)); err != nil {
		return err
	}
	for r := 1; r < len(j.part.Ranks); r++ {
		data, err := j.world.Receive(r, comm.Reply, leaveLimit)
		if err == nil && data == nil {
			err = &comm.RankError{Rank: r}
		}
		if err != nil {
			return err
		}
	}
	return j.tell(words(doGo))
}

// Leave ends the job: rank 0 lets the others go, and all leave in order. With an
// error there is no order left: the process just ends.
func (j *Job) Leave(failed error) {
	var unreached *comm.RankError
	if errors.As(failed, &unreached) || j.end.Failed() >= 0 {
		return
	}
	err := error(nil)
	j.world.Do(func() {
		if j.Leads() {
			err = j.dismiss()
		}
		if err == nil {
			err = j.world.Flush()
		}
	})
	if err == nil {
		j.world.Leave()
	}
}
