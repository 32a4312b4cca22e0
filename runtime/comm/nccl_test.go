//go:build unix

package comm

import (
	"os"
	"strings"
	"testing"
)

// TestTorchrun reads what torchrun says.
func TestTorchrun(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Torchrun{
		"RANK=3 WORLD_SIZE=8 LOCAL_RANK=1 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500":                                    {3, 8, 1, "10.0.0.1:29500"},
		"RANK=0 WORLD_SIZE=1 MASTER_ADDR=fe80::1 MASTER_PORT=29500":                                                  {0, 1, 0, "[fe80::1]:29500"},
		"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=a MASTER_PORT=29500 TORCHELASTIC_USE_AGENT_STORE=True OTHER=1": {0, 2, 0, "a:29501"},
	} {
		got, ok, err := torchrun(environment(text))
		if !ok || err != nil || got != want {
			t.Errorf("%s: %+v, %v, %v; expected %+v", text, got, ok, err, want)
		}
	}
	if _, ok, err := torchrun(environment("MASTER_ADDR=a")); ok || err != nil {
		t.Errorf("no ranks: %v, %v", ok, err)
	}
	for _, text := range []string{
		"RANK=x WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1", "RANK=2 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1", "RANK=0 WORLD_SIZE=2 MASTER_PORT=1",
		"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a", "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=99999", "RANK=-1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1",
	} {
		if _, ok, err := torchrun(environment(text)); ok || err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

// TestWithoutMPI: torchrun alone starts no ranks of a model.
func TestWithoutMPI(t *testing.T) {
	t.Parallel()
	err := withoutMPI(environment("RANK=1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1"))
	if err == nil || !strings.Contains(err.Error(), "rank 1 of 2") || !strings.Contains(err.Error(), "mpirun") {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"", "RANK=0 WORLD_SIZE=1 MASTER_ADDR=a MASTER_PORT=1", "RANK=x WORLD_SIZE=2"} {
		if err := withoutMPI(environment(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// environment looks variables up in "A=1 B=2".
func environment(text string) func(string) string {
	return func(name string) string {
		for f := range strings.FieldsSeq(text) {
			if v, ok := strings.CutPrefix(f, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

// TestNCCL makes every call that needs no GPU, and joins a job of one rank up to
// what the machine has: with a GPU it succeeds, else CUDA's error is told. It
// needs libnccl.so.2, for example from PyPI's nvidia-nccl-cu12, on
// LD_LIBRARY_PATH.
func TestNCCL(t *testing.T) {
	n, err := OpenNCCL("")
	if err != nil {
		if !strings.Contains(err.Error(), "nvidia-nccl") {
			t.Fatalf("the error does not say how to get NCCL: %v", err)
		}
		t.Skip("no libnccl.so.2 on this machine")
	}
	if n.Version < leastNCCL {
		t.Fatalf("version %d", n.Version)
	}
	a, err := n.ID()
	if err != nil {
		t.Fatal(err)
	}
	b, err := n.ID()
	if err != nil || a == b || a == (NCCLID{}) {
		t.Errorf("two jobs have one id, or none: %v", err)
	}
	ring, err := n.Join(a, 1, 0)
	if err == nil {
		ring.Close()
	} else if !strings.Contains(err.Error(), "cuda") && !strings.Contains(err.Error(), "CUDA") {
		t.Errorf("joining without a GPU: %v", err)
	}
	t.Logf("NCCL %d: %v", n.Version, err)
	master := Torchrun{Rank: 0, Ranks: 1, Master: "127.0.0.1:29599"}
	t.Setenv("NCCL_COMM_ID", "")
	if ring, err := master.Join(n); err == nil {
		ring.Close()
	} else {
		t.Logf("by an address: %v", err)
	}
	if os.Getenv("NCCL_COMM_ID") != master.Master {
		t.Error("the meeting's address is not in the environment")
	}
	first, err := n.ID()
	second, _ := n.ID()
	if err != nil || first != second {
		t.Errorf("with an address all ranks have one id: %v", err)
	}
}

func TestNCCLMissing(t *testing.T) {
	t.Parallel()
	if _, err := OpenNCCL("/nonexistent/libnccl.so"); err == nil || !strings.Contains(err.Error(), "pip install") {
		t.Errorf("a library that is not there: %v", err)
	}
}
