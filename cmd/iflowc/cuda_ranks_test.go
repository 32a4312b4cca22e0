package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/demotest"
	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/ir/irtest"
)

// TestEmulatedRanks: layers on the processor and others on a GPU, ranks of a
// tensor group on several GPUs, and keys, values and the table of tokens in the
// host's memory give the CPU target's tokens.
func TestEmulatedRanks(t *testing.T) {
	t.Parallel()
	needEmulation(t)
	story := []string{"generate", "-p", "Once upon a time", "-n", "6", "--temp", "0", "--threads", "2"}
	want := call(t, nil, compiled(t, demotest.Short(t), "--isa", "portable"), story...).succeed(t)
	source, err := os.ReadFile(demotest.Short(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range irtest.Sample(t, 1, []struct{ devices, engine string }{
		{devices: "cpu;0"}, {devices: "0&1"},
		{devices: "0;cpu", engine: "host_kv_cache_percent: 100"},
		{engine: "decoder_cpu_layer_count: 1"},
		{engine: "host_kv_cache_percent: 50, be_host_embeddings: true"},
	}) {
		t.Run(c.devices+" "+c.engine, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(string(source), "model_dir: .\n", fmt.Sprintf("model_dir: .\nengine: {%s}\n", c.engine), 1)
			spec := filepath.Join(filepath.Dir(demotest.Short(t)), toolchain.Key(text)[:16]+".yaml")
			if err := toolchain.WriteFile(spec, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			args := []string{spec, "--isa", "portable", "--target", "cuda-emu"}
			if c.devices != "" {
				args = append(args, "--devices", c.devices)
			}
			bin := compiled(t, args...)
			if got := call(t, nil, bin, story...).succeed(t); got != want {
				t.Errorf("%q, expected %q", got, want)
			}
			// Layers on one GPU run as a graph, those that several share do not.
			failed := call(t, []string{"EMU_FAIL=cuGraphLaunch:719"}, bin, story...)
			if graphs := failed.code != 0; graphs != (c.devices != "0&1") {
				t.Errorf("graphs are launched: %t; exit %d, %s", graphs, failed.code, failed.stderr)
			}
		})
	}
}

// ncclTokens is small because an emulated step takes half a second.
const ncclTokens = 4

// ncclStory is what TestEmulatedNCCL asks for: ncclTokens tokens after a prompt of four.
var ncclStory = []string{"generate", "-p", "Once upon a time", "-n", itoa(ncclTokens), "--temp", "0", "--ignore-eos", "--speculate", "none", "--json"}

// TestEmulatedNCCL: processes whose GPUs reach each other by NCCL give the CPU
// target's tokens, under mpirun and by torchrun's variables alone, and name a rank
// that is lost. A stand-in for NCCL knows the emulation's memory.
func TestEmulatedNCCL(t *testing.T) {
	t.Parallel()
	needEmulation(t)
	var want struct{ Tokens []int }
	decode(t, call(t, nil, compiled(t, demotest.Short(t), "--isa", "portable"), ncclStory...).succeed(t), &want)
	dir := t.TempDir()
	nccl := filepath.Join(dir, "libnccl.so")
	call(t, nil, "g++", "-x", "c", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", nccl, "testdata/nccl/nccl.c").succeed(t)
	bin := compiled(t, demotest.Short(t), "--isa", "portable", "--target", "cuda-emu", "--devices", "0&1")
	env := []string{"IFLOWC_NCCL=" + nccl, "NCCL_PIPES=" + dir, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
		"OMPI_MCA_hwloc_base_binding_policy=none", "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"}
	t.Run("mpirun", func(t *testing.T) {
		t.Parallel()
		mpirun, err := exec.LookPath("mpirun")
		if err != nil {
			t.Skip("no mpirun: install OpenMPI or MPICH (openmpi-bin, mpich)")
		}
		got := call(t, env, mpirun, slices.Concat([]string{"-n", "2", bin}, ncclStory, []string{"--threads", "1", "--rank-timeout", "5m"})...)
		checkStory(t, want.Tokens, got.succeed(t), got.stderr)
	})
	t.Run("torchrun", func(t *testing.T) {
		t.Parallel()
		ranks := byTorchrun(t, env, 2, slices.Concat([]string{bin}, ncclStory, []string{"--rank-timeout", "5m"}))
		err := errors.Join(ranks[0].Wait(), ranks[1].Wait())
		if err != nil {
			t.Fatalf("%v\n%v\n%v", err, ranks[0].said, ranks[1].said)
		}
		checkStory(t, want.Tokens, ranks[0].out.String(), ranks[0].said.String()+ranks[1].said.String())
	})
	t.Run("graph", func(t *testing.T) { // exchanges are in the graph of a step
		t.Parallel()
		ranks := byTorchrun(t, append(env[:len(env):len(env)], "EMU_FAIL=cuGraphLaunch:719"), 2, slices.Concat([]string{bin}, ncclStory))
		ranks[0].Wait()
		ranks[1].Wait()
		// The rank that fails first says why; the other may learn only that it is gone.
		if said := ranks[0].said.String() + ranks[1].said.String(); !strings.Contains(said, "cuGraphLaunch: CUDA_ERROR_LAUNCH_FAILED") {
			t.Errorf("no graph was launched: %s", said)
		}
	})
	for _, stages := range irtest.Sample(t, 1, []bool{false, true}) { // compiles two programs for GPUs more
		if stages {
			t.Run("stages", func(t *testing.T) { t.Parallel(); inStages(t, want.Tokens, env) })
		}
	}
	t.Run("hangs", func(t *testing.T) { t.Parallel(); loseRank(t, bin, env, "3s", false) })
	t.Run("dies", func(t *testing.T) { t.Parallel(); loseRank(t, bin, env, "5m", true) })
	for text, with := range map[string]string{
		"the model is compiled for 2 ranks (0&1), but torchrun started 3": "WORLD_SIZE=3",
		`MASTER_PORT=""`:               "MASTER_PORT=",
		"rank 0 of the model has none": "IFLOWC_DEVICE=cpu",
	} {
		got := call(t, []string{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=9", with}, bin, ncclStory...)
		if got.code != 2 || !strings.Contains(got.stderr, text) {
			t.Errorf("exit %d: %s, expected %q", got.code, got.stderr, text)
		}
	}
}

// inStages holds a pipeline of two tensor-parallel groups, which have communicators of
// their own, against the tokens of the whole model.
func inStages(t *testing.T, want []int, env []string) {
	t.Helper()
	bin := compiled(t, demotest.Short(t), "--isa", "portable", "--target", "cuda-emu", "--devices", "0&1;2&3")
	ranks := byTorchrun(t, env, 4, slices.Concat([]string{bin}, ncclStory, []string{"--rank-timeout", "5m"}))
	for _, r := range ranks {
		if err := r.Wait(); err != nil {
			t.Errorf("%v\n%v", err, r.said)
		}
	}
	var got struct {
		Tokens  []int
		Timings struct{ Ranks []told }
	}
	if decode(t, ranks[0].out.String(), &got); !slices.Equal(got.Tokens, want) {
		t.Errorf("%v, expected %v", got.Tokens, want)
	}
	if said := got.Timings.Ranks[0]; said.Results != ncclTokens*4 || said.Steps != 3*stepBytes(4, ncclTokens, true) {
		t.Errorf("rank 0 has told %v bytes", said)
	}
}

// checkStory holds what rank 0 of two gives against the tokens of the whole model
// and the formula of bytes, and looks for both leaving in order.
func checkStory(t *testing.T, want []int, out, said string) {
	t.Helper()
	var got struct {
		Tokens  []int
		Timings struct{ Ranks []told }
	}
	decode(t, out, &got)
	if !slices.Equal(got.Tokens, want) || strings.Count(said, "leaves the stand-in for NCCL") != 2 {
		t.Errorf("%v, expected %v; %s", got.Tokens, want, said)
	}
	bytes := told{Exchanged: (4+ncclTokens-1)*demotest.Layers*2*128*4 + ncclTokens*1536/2*4, Steps: stepBytes(4, ncclTokens, false)} // as TestRanks has it
	if len(got.Timings.Ranks) != 1 || got.Timings.Ranks[0] != bytes {
		t.Errorf("rank 0 has told %v bytes, expected %v", got.Timings.Ranks, bytes)
	}
}

// loseRank holds what rank 0 says when rank 1 stays in a call of NCCL, and when it
// then dies there.
func loseRank(t *testing.T, bin string, env []string, timeout string, dies bool) {
	ranks := byTorchrun(t, append(env[:len(env):len(env)], "NCCL_HANGS=1"), 2, slices.Concat([]string{bin}, ncclStory, []string{"--rank-timeout", timeout}))
	if dies {
		for until := time.Now().Add(time.Minute); !strings.Contains(ranks[1].said.String(), "hangs") && time.Now().Before(until); {
			time.Sleep(20 * time.Millisecond)
		}
		ranks[1].Process.Kill()
	}
	if err := ranks[0].Wait(); err == nil || !strings.Contains(ranks[0].said.String(), "rank 1 of the model does not respond") {
		t.Errorf("%v\n%v\nexpected to hear of rank 1; it said\n%v", err, ranks[0].said, ranks[1].said)
	}
}

// A torchRank is a process that was started as torchrun starts it.
type torchRank struct {
	*exec.Cmd
	out  *bytes.Buffer
	said *lines // errors, also while it runs
}

// byTorchrun starts a command as all ranks of a job of this machine, whose
// standard output and errors are kept. They are killed at the end of the test.
func byTorchrun(t *testing.T, env []string, ranks int, command []string) (list []torchRank) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	for r := range ranks {
		c := exec.Command(command[0], command[1:]...)
		rank := torchRank{c, &bytes.Buffer{}, &lines{}}
		c.Stdout, c.Stderr = rank.out, rank.said
		c.Env = append(os.Environ(), append(env, fmt.Sprint("RANK=", r), fmt.Sprint("LOCAL_RANK=", r), fmt.Sprint("WORLD_SIZE=", ranks),
			fmt.Sprint("LOCAL_WORLD_SIZE=", ranks), "MASTER_ADDR=127.0.0.1", fmt.Sprint("MASTER_PORT=", port))...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill() })
		list = append(list, rank)
	}
	return list
}

// lines are what a process says while it runs.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
