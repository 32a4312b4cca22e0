//go:build unix

package comm

import (
	"fmt"
	"net"
	"os"
	"strconv"
)

// A Torchrun is what torchrun and its like tell a rank by its environment.
type Torchrun struct {
	Rank, Ranks int
	Local       int    // number of the rank on its machine: its GPU
	Master      string // host:port at which rank 0 is reached
}

// TorchrunLaunched reads RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and
// MASTER_PORT; false: they are not there.
func TorchrunLaunched() (Torchrun, bool, error) { return torchrun(os.Getenv) }

func torchrun(env func(string) string) (t Torchrun, ok bool, err error) {
	if env("RANK") == "" || env("WORLD_SIZE") == "" {
		return t, false, nil
	}
	var port int
	for _, v := range []struct {
		name  string
		to    *int
		least int
		empty string
	}{
		{"RANK", &t.Rank, 0, ""}, {"WORLD_SIZE", &t.Ranks, 1, ""}, {"LOCAL_RANK", &t.Local, 0, env("RANK")}, {"MASTER_PORT", &port, 1, ""},
	} {
		text := env(v.name)
		if text == "" {
			text = v.empty
		}
		if *v.to, err = strconv.Atoi(text); err != nil || *v.to < v.least {
			return t, false, fmt.Errorf("the environment has RANK and WORLD_SIZE, but %s=%q: expected a number from %d on", v.name, text, v.least)
		}
	}
	host := env("MASTER_ADDR")
	if host == "" || t.Rank >= t.Ranks || port > 1<<16-2 {
		return t, false, fmt.Errorf("RANK=%d WORLD_SIZE=%d MASTER_ADDR=%q MASTER_PORT=%d: expected a rank below the size, an address and a port", t.Rank, t.Ranks, host, port)
	}
	if env("TORCHELASTIC_USE_AGENT_STORE") == "True" {
		port++ // the agent itself listens at MASTER_PORT
	}
	t.Master = net.JoinHostPort(host, strconv.Itoa(port))
	return t, true, nil
}

// WithoutMPI is the error of a process that torchrun or its like started as one
// of several, where no launcher of MPI did: nobody would tell it of steps.
func WithoutMPI() error { return withoutMPI(os.Getenv) }

func withoutMPI(env func(string) string) error {
	t, ok, err := torchrun(env)
	if err != nil || !ok || t.Ranks < 2 {
		return nil
	}
	return fmt.Errorf("by RANK and WORLD_SIZE this is rank %d of %d, but no MPI job, by which ranks hear of a model's steps: start them with mpirun or srun --mpi=pmix "+
		"(RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT then say where NCCL meets), or unset RANK to run all of them in this process", t.Rank, t.Ranks)
}

// Join joins the job by NCCL's own meeting at an address: rank 0 listens there,
// so that no id has to be carried.
func (t Torchrun) Join(n *NCCL) (*Ring, error) {
	if err := os.Setenv("NCCL_COMM_ID", t.Master); err != nil { // the C library's environment too: purego sees to it
		return nil, err
	}
	id, err := n.ID()
	if err != nil {
		return nil, err
	}
	return n.Join(id, t.Ranks, t.Rank)
}

// JoinNCCL joins a group of GPUs in an MPI job: rank 0 tells the others its id.
// It is for the thread of MPI.
func (w *World) JoinNCCL(n *NCCL) (*Ring, error) {
	id, err := w.ncclID(n)
	if err != nil {
		return nil, err
	}
	return n.Join(id, w.Ranks, w.Rank)
}

// ncclID gives all ranks the id that rank 0 makes; for the thread of MPI.
func (w *World) ncclID(n *NCCL) (id NCCLID, err error) {
	if w.Rank == 0 {
		if id, err = n.ID(); err != nil {
			return id, err
		}
	}
	if w.Rank > 0 {
		return id, w.Get(0, NCCLJob, id[:])
	}
	for r := 1; r < w.Ranks && err == nil; r++ {
		err = w.Put(r, NCCLJob, id[:])
	}
	return id, err
}
