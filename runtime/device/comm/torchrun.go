//go:build unix

package comm

import (
	"fmt"
	"net"
	"os"
	"strconv"
)

// TorchrunLaunched parses the environment variables that torchrun and similar launchers
// set: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and
// the secret of the job, IFLOWC_RANKS_SECRET. It returns false if they are not set or the job has only one rank.
func TorchrunLaunched() (Launch, bool, error) { return torchrun(os.Getenv) }

func torchrun(env func(string) string) (Launch, bool, error) {
	l := Launch{Name: "torchrun"}
	if env("RANK") == "" || env("WORLD_SIZE") == "" || env("WORLD_SIZE") == "1" {
		return l, false, nil
	}
	var port int
	for _, v := range []struct {
		name  string
		to    *int
		least int
	}{{"WORLD_SIZE", &l.Ranks, 1}, {"RANK", &l.Rank, 0}, {"MASTER_PORT", &port, 1}} {
		var err error
		if *v.to, err = strconv.Atoi(env(v.name)); err != nil || *v.to < v.least {
			return l, false, fmt.Errorf("the environment has RANK and WORLD_SIZE, but %s=%.40q: expected a number of at least %d; unset RANK to run the model in this process alone", v.name, env(v.name), v.least)
		}
	}
	host := env("MASTER_ADDR")
	if host == "" || len(host) > 255 || l.Rank >= l.Ranks || l.Ranks > maxRanks || port > 1<<16-2 {
		return l, false, fmt.Errorf("RANK=%d WORLD_SIZE=%d MASTER_ADDR=%.300q MASTER_PORT=%d: expected RANK < WORLD_SIZE ≤ %d, an address and a port; unset RANK to run the model in this process alone", l.Rank, l.Ranks, host, port, maxRanks)
	}
	if env("TORCHELASTIC_USE_AGENT_STORE") == "True" {
		port++ // torchrun's agent itself listens at MASTER_PORT
	}
	l.Local, l.At = placed(env("LOCAL_WORLD_SIZE"), env("LOCAL_RANK"))
	l.Master = net.JoinHostPort(host, strconv.Itoa(port))
	l.Job, l.secret = env("TORCHELASTIC_RUN_ID"), env(secretVariable)
	return l, true, nil
}

// WithoutMPI returns the error for a torchrun-style job with a rank that does not run
// on a GPU.
func WithoutMPI(l Launch, rank int) error {
	return fmt.Errorf("RANK and WORLD_SIZE describe rank %d of %d in a job without MPI, which needs a GPU for every rank to communicate by NCCL, but rank %d of the model has none: "+
		"start them with mpirun or srun --mpi=pmix, or unset RANK to run all of them in this process", l.Rank, l.Ranks, rank)
}
