//go:build unix

package comm

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/device"
)

// TestTorchrun checks the parsing of torchrun's variables.
func TestTorchrun(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Launch{
		"RANK=3 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500":    {Rank: 3, Ranks: 8, Local: 2, At: 1, Master: "10.0.0.1:29500"},
		"RANK=0 WORLD_SIZE=2 MASTER_ADDR=fe80::1 MASTER_PORT=29500":                                     {Ranks: 2, At: -1, Master: "[fe80::1]:29500"},
		"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=29500 TORCHELASTIC_USE_AGENT_STORE=True OTHER=1": {Ranks: 2, At: -1, Master: "a:29501"},
	} {
		want.Name = "torchrun"
		got, ok, err := torchrun(environment(text))
		if !ok || err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, %v; expected %+v", text, got, ok, err, want)
		}
	}
	for _, text := range []string{"MASTER_ADDR=a", "RANK=0 WORLD_SIZE=1 MASTER_ADDR=a MASTER_PORT=1"} {
		if _, ok, err := torchrun(environment(text)); ok || err != nil {
			t.Errorf("%s: %v, %v, expected no job", text, ok, err)
		}
	}
	for _, text := range []string{
		"RANK=x WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1", "RANK=2 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1", "RANK=0 WORLD_SIZE=2 MASTER_PORT=1",
		"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a", "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=99999", "RANK=-1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1",
	} {
		if _, ok, err := torchrun(environment(text)); ok || err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

// environment returns a lookup of variables in a text such as "A=1 B=2".
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

// TestNCCL makes every call that needs no GPU, and joins a job of one rank: this
// succeeds with a GPU and otherwise must return CUDA's error. It needs
// libnccl.so.2, for example of PyPI's nvidia-nccl-cu12.
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
	ring := n.Group(0, 1, 0, 1)
	a, err := ring.ID()
	if err != nil {
		t.Fatal(err)
	}
	b, err := ring.ID()
	if err != nil || a == b || a == (NCCLID{}) {
		t.Errorf("two jobs share an id, or have none: %v", err)
	}
	if err := ring.Failed(); !errors.Is(err, device.ErrComm) {
		t.Errorf("a call before joining: %v", err)
	}
	err = ring.Join(a)
	if err != nil && !strings.Contains(strings.ToLower(err.Error()), "cuda") {
		t.Errorf("joining without a GPU: %v", err)
	}
	ring.Close()
	t.Logf("NCCL %d: %v", n.Version, err)
}

func TestNCCLMissing(t *testing.T) {
	t.Parallel()
	if _, err := OpenNCCL("/nonexistent/libnccl.so"); err == nil || !strings.Contains(err.Error(), "pip install") {
		t.Errorf("missing library: %v", err)
	}
}
