//go:build unix

package comm

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
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
	{mpichName, "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", mpich},
	{"Slurm", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", "SLURM_STEP_TASKS_PER_NODE", "SLURM_LOCALID", append(openMPI[:len(openMPI):len(openMPI)], mpich...)},
}

const mpichName = "MPICH"

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
	Job       string // name that differs between jobs; "": unknown
	secret    string // that the ranks of a job without MPI prove to know; "": none
	libraries []string
}

// maxRanks is the largest number of ranks that a launcher may start.
const maxRanks = 1 << 16

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
// ranks. It returns an error if the launcher's variables make no sense.
func Launched() (Launch, bool, error) { return launched(os.Getenv) }

func launched(env func(string) string) (Launch, bool, error) {
	for _, l := range launchers {
		if env(l.size) == "" || env(l.rank) == "" {
			continue
		}
		size, err := strconv.Atoi(env(l.size))
		rank, rankErr := strconv.Atoi(env(l.rank))
		if err != nil || rankErr != nil || size < 1 || size > maxRanks || rank < 0 || rank >= size {
			return Launch{}, false, fmt.Errorf("the environment names the launcher %s, but has %s=%.40q and %s=%.40q: expected at most %d ranks, and a rank below their number; unset %s to run the model in this process alone",
				l.name, l.size, env(l.size), l.rank, env(l.rank), maxRanks, l.rank)
		}
		if size == 1 {
			continue
		}
		if fd := env("PMI_FD"); l.name == mpichName && fd != "" && !isOpen(fd) {
			return Launch{}, false, fmt.Errorf("PMI_FD=%.40q is no open file descriptor, by which %s would reach its launcher; start the ranks with mpirun, or unset %s to run the model in this process alone", fd, l.name, l.rank)
		}
		found := Launch{Name: l.name, Ranks: size, libraries: l.libraries}
		found.Local, found.At = placed(env(l.local), env(l.at))
		if file := env("IFLOWC_MPI"); file != "" {
			found.libraries = []string{file}
		}
		return found, true, nil
	}
	return Launch{}, false, nil
}

// isOpen reports whether a text is the number of an open file.
func isOpen(descriptor string) bool {
	fd, err := strconv.Atoi(descriptor)
	if err != nil || fd < 0 {
		return false
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
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
