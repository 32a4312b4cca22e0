//go:build unix

package comm

import (
	"context"
	"os"
	"strconv"
	"time"
)

// A launcher is a program that starts the ranks of a job and identifies each by
// environment variables.
type launcher struct {
	name       string
	size, rank string   // names of variables
	local, at  string   // names of variables: number of ranks on this machine, and index of this rank among them
	libraries  []string // MPI libraries that belong to the launcher, in order of preference
}

// launchers lists the known launchers; those with the most specific variables come
// first.
var launchers = []launcher{
	{"OpenMPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", openMPI},
	{"MPICH", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", mpich},
	{"Slurm", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", "SLURM_STEP_TASKS_PER_NODE", "SLURM_LOCALID", append(openMPI[:len(openMPI):len(openMPI)], mpich...)},
}

var (
	openMPI = []string{"libmpi.so.40", "libmpi.so.80", "libmpi.so", "libmpi.dylib"}
	mpich   = []string{"libmpich.so.12", "libmpi.so.12", "libmpich.so", "libmpi.dylib"}
)

// A Launch describes the job that this process belongs to.
type Launch struct {
	Name      string // name of the launcher
	Rank      int    // number of this rank; in an MPI job the MPI library sets it
	Ranks     int
	Local     int    // ranks on this machine; 0: unknown
	At        int    // index of this rank on its machine; -1: unknown
	Master    string // host:port at which rank 0 listens; "": MPI connects the ranks
	libraries []string
}

// Apart reports whether the job runs on several machines, and returns this rank's index
// on its machine.
func (l *Launch) Apart() (at int, apart bool) { return l.At, l.At >= 0 && l.Local < l.Ranks }

// leadingNumber returns the number at the start of text, as in Slurm's "4(x2)", else 0.
func leadingNumber(text string) (n int) {
	for _, c := range text {
		if c < '0' || c > '9' || n > 1<<20 {
			break
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// Launched reports whether an MPI launcher started this process as one of several
// ranks.
func Launched() (Launch, bool) { return launched(os.Getenv) }

func launched(env func(string) string) (Launch, bool) {
	for _, l := range launchers {
		size, err := strconv.Atoi(env(l.size))
		if err != nil || size < 2 || env(l.rank) == "" {
			continue
		}
		found := Launch{Name: l.name, Ranks: size, libraries: l.libraries}
		found.Local, found.At = placed(env(l.local), env(l.at))
		if file := env("IFLOWC_MPI"); file != "" {
			found.libraries = []string{file}
		}
		return found, true
	}
	return Launch{}, false
}

// placed parses the number of ranks on this machine and this rank's index among them.
func placed(local, at string) (int, int) {
	n := leadingNumber(local)
	if i, err := strconv.Atoi(at); err == nil && i >= 0 && i < n {
		return n, i
	}
	return n, -1
}

// parentEvery is the interval at which a rank checks that its parent process is alive.
const parentEvery = time.Second / 4

// Supervised returns a context that is canceled with ctx, or when this process's parent
// exits: a launcher that was killed, or its proxy process, which the launcher ends when
// another rank is lost.
func Supervised(ctx context.Context) context.Context {
	return supervised(ctx, os.Getppid, parentEvery)
}

func supervised(ctx context.Context, parent func() int, every time.Duration) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	first := parent()
	go func() {
		defer cancel()
		tick := time.NewTicker(every)
		defer tick.Stop()
		for parent() == first {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx
}
