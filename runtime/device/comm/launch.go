//go:build unix

package comm

import (
	"context"
	"os"
	"strconv"
	"time"
)

// A launcher is a program that starts the ranks of a job and tells each by its
// environment which one it is.
type launcher struct {
	name       string
	size, rank string   // variables
	local, at  string   // how many ranks are on this machine, and which of them this is
	libraries  []string // of the MPI that it belongs to, best first
}

// launchers are those that are known, the most telling variables first.
var launchers = []launcher{
	{"OpenMPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", openMPI},
	{"MPICH", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", mpich},
	{"Slurm", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", "SLURM_STEP_TASKS_PER_NODE", "SLURM_LOCALID", append(openMPI[:len(openMPI):len(openMPI)], mpich...)},
}

var (
	openMPI = []string{"libmpi.so.40", "libmpi.so.80", "libmpi.so", "libmpi.dylib"}
	mpich   = []string{"libmpich.so.12", "libmpi.so.12", "libmpich.so", "libmpi.dylib"}
)

// A Launch is the job that this process is a rank of.
type Launch struct {
	Name      string // of the launcher
	Rank      int    // this process's; in an MPI job its library says it
	Ranks     int
	Local     int    // ranks on this machine, as far as known; 0: not known
	At        int    // which of them this is; -1: not known
	Master    string // host:port where rank 0 waits for the others; "": MPI brings them together
	libraries []string
}

// Apart says that the job is on several machines, and which of its machine's
// ranks this process is.
func (l *Launch) Apart() (at int, apart bool) { return l.At, l.At >= 0 && l.Local < l.Ranks }

// leadingNumber is the number that a text begins with, as in Slurm's "4(x2)"; else 0.
func leadingNumber(text string) (n int) {
	for _, c := range text {
		if c < '0' || c > '9' || n > 1<<20 {
			break
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// Launched says whether a launcher started this process as one of several.
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

// placed reads how many ranks are on this machine, and which of them this is.
func placed(local, at string) (int, int) {
	n := leadingNumber(local)
	if i, err := strconv.Atoi(at); err == nil && i >= 0 && i < n {
		return n, i
	}
	return n, -1
}

// parentEvery is how often a rank looks whether its parent is still there.
const parentEvery = time.Second / 4

// Supervised is a context that ends with ctx, and when the process that started
// this one is gone: a launcher that was killed, or what it put between itself
// and the rank, which it ends when another rank is lost.
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
