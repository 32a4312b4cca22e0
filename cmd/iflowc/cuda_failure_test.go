package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/iflowc/iflowc/codegen/demotest"
	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
)

// emulatedDemo is the short demo model as a binary that computes on the emulation.
func emulatedDemo(t *testing.T) string {
	t.Helper()
	needEmulation(t)
	return compiled(t, demotest.Short(t), "--quant", "q8_b32t2", "--isa", "portable", "--target", "cuda-emu")
}

// TestEmulatedFailures: what goes wrong with a GPU ends in one line that says
// what and what to do; without --device, the CPU is used.
func TestEmulatedFailures(t *testing.T) {
	t.Parallel()
	bin := emulatedDemo(t)
	story := []string{"generate", "-p", "Once", "-n", "3", "--temp", "0"}
	for _, c := range []struct {
		env, want string
		code      int
	}{
		{"EMU_FAIL=cuModuleLoadData:222", "cannot load the model's kernels (CUDA_ERROR_UNSUPPORTED_PTX_VERSION): it is older than the nvcc that compiled them; install a newer driver", exitUsage},
		{"EMU_FAIL=cuModuleLoadData:209", "is older than the model's target architecture; compile the model with --arch", exitUsage},
		{"EMU_MEMORY_MB=1", "MB are missing; lower the context", 1},
		{"EMU_FAIL=cuMemAlloc:2:3", "out of GPU memory: cannot allocate ", 1},
		{"EMU_FAIL=cuStreamSynchronize:214:3", "a step of 1 tokens failed: cuStreamSynchronize: CUDA_ERROR_ECC_UNCORRECTABLE", 1},
		{"EMU_FAIL=cuLaunchKernelEx:719:20", "tokens failed: cuLaunchKernelEx: CUDA_ERROR_LAUNCH_FAILED", 1},
	} {
		got := call(t, []string{c.env, "IFLOWC_CUDA_GRAPHS=0"}, bin, append(story, "--device", "cuda")...)
		if got.code == 0 || !strings.Contains(got.stderr, c.want) || strings.Contains(got.stderr, "goroutine") {
			t.Errorf("%s: exit %d, expected %d and %q:\n%s", c.env, got.code, c.code, c.want, got.stderr)
		}
	}
	want := call(t, nil, bin, append(story, "--device", "cpu")...).succeed(t)
	instead := call(t, []string{"EMU_FAIL=cuModuleLoadData:209"}, bin, story...)
	if got := instead.succeed(t); got != want || !strings.Contains(instead.stderr, "using the CPU instead") {
		t.Errorf("%q, expected %q and a note that the CPU is used:\n%s", got, want, instead.stderr)
	}
}

// emulatedService starts the emulated demo's service. stop asks it to end, and
// fails the test unless it ends well.
func emulatedService(t *testing.T, env ...string) (url string, stop func()) {
	t.Helper()
	serve := exec.Command(emulatedDemo(t), "serve", "--port", "0", "--device", "cuda", "--speculate", "none")
	serve.Env = append(os.Environ(), env...)
	out, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for url == "" && lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "http://"); ok {
			url = "http://" + strings.Trim(strings.Fields(at)[0], "/,;")
		}
	}
	go io.Copy(io.Discard, out)
	return url, func() {
		if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := serve.Wait(); err != nil {
			t.Errorf("the service did not end well: %v", err)
		}
	}
}

// answered gives an answer's status and text.
func answered(t *testing.T, answer *http.Response, err error) (int, string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func complete(t *testing.T, url, body string) (int, string) {
	t.Helper()
	answer, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(body))
	return answered(t, answer, err)
}

// TestEmulatedServiceFailure: after a GPU has failed in the middle of an answer,
// a service says so to that client and to the next one, and ends when it is asked
// to.
func TestEmulatedServiceFailure(t *testing.T) {
	t.Parallel()
	url, stop := emulatedService(t, "EMU_FAIL=cuStreamSynchronize:700:4")
	defer stop()
	for _, want := range []string{"CUDA_ERROR_ILLEGAL_ADDRESS", "failed in an earlier step"} {
		if status, text := complete(t, url, `{"prompt": "Once upon a time", "max_tokens": 40}`); status < 500 || !strings.Contains(text, want) {
			t.Errorf("status %d, %s; expected %q", status, text, want)
		}
	}
}

// TestEmulatedGraphCounts: a service counts the graphs that it keeps, and the
// steps that ran as one: those of a shape from its second time on.
func TestEmulatedGraphCounts(t *testing.T) {
	t.Parallel()
	url, stop := emulatedService(t)
	defer stop()
	if status, text := complete(t, url, `{"prompt": "Once", "max_tokens": 3, "temperature": 0, "ignore_eos": true}`); status != http.StatusOK {
		t.Fatalf("status %d, %s", status, text)
	}
	answer, err := http.Get(url + "/metrics")
	_, text := answered(t, answer, err)
	for _, want := range []string{"iflowc_steps_total 3", "iflowc_gpu_graphs 1", "iflowc_gpu_graph_steps_total 2"} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestEmulatedProfile: iflowc profile measures a GPU's products from end to end,
// and a binary chooses by what it wrote, found beside it or named.
func TestEmulatedProfile(t *testing.T) {
	t.Parallel()
	bin := emulatedDemo(t)
	file := filepath.Join(t.TempDir(), "demo.cuda.profile")
	text := iflowc(t, "profile", demotest.Short(t), "--quant", "q8_b32t2", "--target", "cuda-emu", "--rows", "1,2", "--budget", "1ms", "-o", file).succeed(t)
	for _, want := range []string{"whose times mean nothing", "q8_b32t2", "flat_gemm32", "cublaslt", "regret", "attention over 64 rows: ", "written to"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	p, err := dispatch.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if !p.OfGPU() || !p.Machine.GPU.Emulated || p.Machine.GPU.Processors == 0 || p.Machine.GPU.BLAS == "" || len(p.Machine.ReadGBs) != 2 || len(p.Shapes) == 0 || len(p.Splits) == 0 {
		t.Errorf("machine %+v, %+v, %d shapes, %d splits", p.Machine, p.Machine.GPU, len(p.Shapes), len(p.Splits))
	}
	story := []string{"generate", "-p", "Once", "-n", "3", "--temp", "0"}
	want := call(t, nil, bin, append(story, "--device", "cpu")...).succeed(t)
	if got := call(t, nil, bin, append(story, "--device", "cuda", "--profile", file)...).succeed(t); got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	p.Shapes[0].Rules[0].Impl = "avx"
	if err := p.Write(file); err != nil {
		t.Fatal(err)
	}
	wantError(t, call(t, nil, bin, append(story, "--device", "cuda", "--profile", file)...), 1, file, `no implementation "avx"`, "gemv, flat_gemm")
	wantError(t, iflowc(t, "compile", demoSpec, "--profile", file, "-o", filepath.Join(t.TempDir(), "x")), exitUsage, file, "measured on a GPU", ".cuda.profile")
}

// TestEmulatedBench: bench does not compare a GPU with the host's memory. The bandwidth
// of the emulated GPU is unknown.
func TestEmulatedBench(t *testing.T) {
	t.Parallel()
	args := []string{"bench", "--device", "cuda", "--prompt", "2", "--gen", "1", "--reps", "1", "--batch", "1"}
	var rows []struct {
		Share  *float64       `json:"share_of_bandwidth"`
		Limits map[string]any `json:"limits"`
	}
	decode(t, call(t, nil, emulatedDemo(t), append(args, "--json")...).succeed(t), &rows)
	for _, r := range rows {
		if r.Share != nil || len(r.Limits) > 0 {
			t.Errorf("%v of %v", *r.Share, r.Limits)
		}
	}
	if got := call(t, nil, emulatedDemo(t), args...); len(rows) != 2 || strings.Contains(got.stdout+got.stderr, "machine reads") || strings.Contains(got.stderr, "caches") {
		t.Errorf("%d rows; %s%s", len(rows), got.stdout, got.stderr)
	}
}
