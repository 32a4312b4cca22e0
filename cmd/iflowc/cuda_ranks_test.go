package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEmulatedRanks: layers on the processor and others on a GPU, members of a
// tensor group on several GPUs, and keys, values and the table of tokens in the
// host's memory give the CPU target's tokens.
func TestEmulatedRanks(t *testing.T) {
	t.Parallel()
	needEmulation(t)
	story := []string{"generate", "-p", "Once upon a time", "-n", "12", "--temp", "0", "--threads", "2"}
	want := call(t, nil, demo(t), story...).succeed(t)
	source, err := os.ReadFile("../../models/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs("../../models/demo")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ engine, devices string }{
		"cpu;0":      {devices: "cpu;0"},
		"0;cpu":      {devices: "0;cpu", engine: "host_kv_cache_percent: 100"},
		"0&1":        {devices: "0&1"},
		"two layers": {engine: "decoder_cpu_layer_count: 2"},
		"host":       {engine: "host_kv_cache_percent: 50, be_host_embeddings: true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(string(source), "model_dir: demo\n", fmt.Sprintf("model_dir: %s\nengine: {%s}\n", folder, c.engine), 1)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "demo.yaml"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			bin := filepath.Join(dir, "demo")
			args := []string{"compile", filepath.Join(dir, "demo.yaml"), "--target", "cuda-emu", "-o", bin}
			if c.devices != "" {
				args = append(args, "--devices", c.devices)
			}
			iflowc(t, args...).succeed(t)
			if got := call(t, nil, bin, story...).succeed(t); got != want {
				t.Errorf("%q, expected %q", got, want)
			}
		})
	}
}

// TestEmulatedNCCL: processes whose GPUs reach each other by NCCL give the CPU
// target's tokens. A stand-in for NCCL knows the emulation's memory. It needs an
// MPI with mpirun.
func TestEmulatedNCCL(t *testing.T) {
	t.Parallel()
	needEmulation(t)
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip("no mpirun: install OpenMPI or MPICH (openmpi-bin, mpich)")
	}
	story := []string{"generate", "-p", "Once upon a time", "-n", "12", "--temp", "0"}
	want := call(t, nil, demo(t), story...).succeed(t)
	dir := t.TempDir()
	bin, nccl := filepath.Join(dir, "demo"), filepath.Join(dir, "libnccl.so")
	call(t, nil, "g++", "-x", "c", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", nccl, "testdata/nccl/nccl.c").succeed(t)
	iflowc(t, "compile", demoSpec, "--target", "cuda-emu", "--devices", "0&1", "-o", bin).succeed(t)
	env := []string{"IFLOWC_NCCL=" + nccl, "NCCL_PIPES=" + dir, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
		"OMPI_MCA_hwloc_base_binding_policy=none", "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"}
	got := call(t, env, mpirun, append([]string{"-n", "2", bin}, append(story, "--threads", "1", "--rank-timeout", "5m")...)...)
	if text := got.succeed(t); text != want || strings.Count(got.stderr, "leaves the stand-in for NCCL") != 2 {
		t.Errorf("%q, expected %q; %s", text, want, got.stderr)
	}
}
