//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	check   = flag.Bool("check", false, "run the checks on two hosts; as root, minutes")
	runs    = flag.Int("runs", 3, "runs of TestCleanExit for each MPI and partition")
	outputs = flag.Bool("outputs", false, "log the outputs of all jobs, not only of failed ones")
)

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == hostCommand {
		fail(firstProcess(os.Args[2], os.Args[3], os.Args[4]))
		return
	}
	flag.Parse()
	code := m.Run()
	built.remove()
	os.Exit(code)
}

// built are the programs that the hosts run, compiled once.
var built programs

type programs struct {
	once sync.Once
	dir  string
	err  error
}

// compile compiles the demo model: whole, pipeline and tensor parallel, and both with
// other weights. It returns the folder of their folders.
func (p *programs) compile() (string, error) {
	p.once.Do(func() {
		if p.dir, p.err = os.MkdirTemp("", "hosts"); p.err != nil {
			return
		}
		iflowc := filepath.Join(p.dir, "iflowc")
		commands := [][]string{{"go", "build", "-o", iflowc, "../../cmd/iflowc"}}
		for name, flags := range map[string]string{
			"whole": "", "layer": "--devices 0;1", "tensor": "--devices 0&1",
			"other-layer": "--devices 0;1 --quant q8", "other-tensor": "--devices 0&1 --quant q8",
		} {
			commands = append(commands, append([]string{iflowc, "compile", "demo", "-o", filepath.Join(p.dir, name, "model")}, strings.Fields(flags)...))
			if p.err = os.Mkdir(filepath.Join(p.dir, name), 0o755); p.err != nil {
				return
			}
		}
		for _, args := range commands {
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				p.err = fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
				return
			}
		}
	})
	return p.dir, p.err
}

func (p *programs) remove() {
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}

// kinds are the partitions, by the folders of compile.
var kinds = []string{"layer", "tensor"}

// prepared returns the folder of the compiled programs. Without -check it skips the
// test. With it, what is missing is an error, so that no check is left out unnoticed.
func prepared(t *testing.T) string {
	t.Helper()
	if !*check {
		t.Skip("two hosts are built only with -args -check, as root (.ci/run hosts)")
	}
	if err := Missing(); err != nil {
		t.Fatal(err)
	}
	for mpi, launcher := range launchers {
		if _, err := exec.LookPath(strings.Fields(launcher)[0]); err != nil {
			t.Fatalf("%v (Debian: openmpi-bin, mpich): nothing can be checked under %s", err, mpi)
		}
	}
	dir, err := built.compile()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// each runs a test for each MPI and partition on hosts of its own, some at the same
// time (go test -parallel).
func each(t *testing.T, f func(t *testing.T, j *job)) {
	t.Parallel()
	dir := prepared(t)
	for mpi := range launchers {
		for _, kind := range kinds {
			t.Run(mpi+"/"+kind, func(t *testing.T) {
				t.Parallel()
				f(t, newJob(t, dir, mpi, kind))
			})
		}
	}
}

// A job is the ranks of the demo model on two hosts.
type job struct {
	*Hosts
	t         *testing.T
	mpi, kind string
	launcher  []string
	dir       string // of compile
	folder    string // of the model in both homes
}

// newJob builds two hosts, each with the program and the shard of its rank.
func newJob(t *testing.T, dir, mpi, kind string) *job {
	hosts, err := Build([2]int{-1, -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hosts.Close)
	j := &job{Hosts: hosts, t: t, mpi: mpi, kind: kind, launcher: strings.Fields(launchers[mpi]), dir: dir, folder: "model"}
	j.put(j.A, kind+"/model", kind+"/model.weights.0of2")
	j.put(j.A, "../launch")
	j.put(j.B, kind+"/model", kind+"/model.weights.1of2")
	return j
}

// put copies files of compile into the model's folder on a host.
func (j *job) put(h *Host, files ...string) {
	j.t.Helper()
	var paths []string
	for _, f := range files {
		if f == "../launch" {
			paths = append(paths, "../../deploy/launch")
			continue
		}
		paths = append(paths, filepath.Join(j.dir, f))
	}
	if err := h.Put(j.folder, paths...); err != nil {
		j.t.Fatal(err)
	}
}

// generation are the arguments of a run whose output is compared.
var generation = []string{"generate", "-p", "Once upon a time", "-n", "24", "--temp", "0"}

// An ending is how a job ended.
type ending struct {
	code     int // exit status; -1: it had to be killed
	out, err string
	took     time.Duration
}

// run runs the model under the launcher to its end.
func (j *job) run(args ...string) ending {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := j.A.Command(ctx, append(append(j.launcher, "model/model"), args...)...)
	var out, err strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &err
	start := time.Now()
	cmd.Run()
	return ending{code: cmd.ProcessState.ExitCode(), out: out.String(), err: err.String(), took: time.Since(start)}
}

// limit is the longest time that a job may take to end. Beside other programs, one took 20 s.
const limit = time.Minute

// nobody checks that no rank is left on either host soon after the job's end.
func (j *job) nobody() {
	j.t.Helper()
	for until := time.Now().Add(12 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		left := len(j.A.Ranks()) + len(j.B.Ranks())
		if left == 0 {
			return
		}
		if time.Now().After(until) {
			j.t.Errorf("ranks are left: %v on host-a, %v on host-b", j.A.Ranks(), j.B.Ranks())
			j.end()
			return
		}
	}
}

// TestCleanExit: every run generates what one process does, and ends with status 0.
func TestCleanExit(t *testing.T) {
	each(t, func(t *testing.T, j *job) {
		want, err := exec.Command(filepath.Join(j.dir, "whole/model"), generation...).Output()
		if err != nil {
			t.Fatal(err)
		}
		var longest time.Duration
		for i := range *runs {
			e := j.run(generation...)
			if longest = max(longest, e.took); e.code != 0 || e.out != string(want) {
				t.Errorf("run %d: status %d after %v\n%s\nstderr: %s", i, e.code, e.took, e.out, e.err)
			}
			j.nobody()
		}
		t.Logf("%d runs, the longest %v", *runs, longest)
	})
}

// end kills what is left of a job.
func (j *job) end() {
	for _, h := range []*Host{j.A, j.B} {
		for _, pid := range h.Ranks() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// TestWrongFiles: a job whose second host has other files ends with an error that names
// the rank.
func TestWrongFiles(t *testing.T) {
	each(t, func(t *testing.T, j *job) {
		for _, c := range []struct{ name, file, want string }{
			{"other program", "other-" + j.kind + "/model", "it runs a different program"},
			{"other shard", "other-" + j.kind + "/model.weights.1of2", "it belongs to another model"},
			{"no shard", "", "model.weights.1of2 is missing"},
		} {
			shard := j.B.Path(filepath.Join(home, j.folder, "model.weights.1of2"))
			if c.file == "" {
				os.Remove(shard)
			} else {
				j.put(j.B, c.file)
			}
			e := j.run(generation...)
			if e.code <= 0 || !strings.Contains(e.err, c.want) || !strings.Contains(e.err, "rank 1") {
				t.Errorf("%s: status %d after %v, expected an error with %q\n%s", c.name, e.code, e.took, c.want, e.err)
			} else if *outputs {
				t.Logf("%s: status %d after %v\n%s", c.name, e.code, e.took, e.err)
			}
			j.nobody()
			j.put(j.B, j.kind+"/model", j.kind+"/model.weights.1of2")
		}
	})
}

// page is the recipe whose commands TestPage runs as they stand there.
const page = "../../docs/two-machines.md"

// blocks returns the page's blocks with a mark, joined.
func blocks(t *testing.T, mark string) (text string) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(data), "```") {
		if rest, ok := strings.CutPrefix(part, "sh "+mark+"\n"); ok && i%2 == 1 {
			text += rest
		}
	}
	if text == "" {
		t.Fatalf("%s has no blocks that are marked %q", page, mark)
	}
	return text
}

// TestPage runs the recipe: what is compiled on this machine, and the rest on the hosts.
func TestPage(t *testing.T) {
	t.Parallel()
	dir := prepared(t)
	work := t.TempDir()
	compile := exec.Command("bash", "-euxo", "pipefail", "-c", blocks(t, "machine"))
	compile.Dir, compile.Env = work, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	hosts, err := Build([2]int{-1, -1})
	if err != nil {
		t.Fatal(err)
	}
	defer hosts.Close()
	if err := hosts.A.Put("model", filepath.Join(work, "model/model"), filepath.Join(work, "model/model.weights.0of2"), filepath.Join(work, "model/model.weights.1of2"), "../../deploy/launch"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := hosts.A.Command(ctx, "bash", "-euxo", "pipefail", "-c", blocks(t, "hosts")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "a small girl called"); n < 3 {
		t.Errorf("the demo's story came %d times, expected 3: from the two runs of 16 tokens and from the service\n%s", n, out)
	}
	if *outputs {
		t.Logf("%s", out)
	}
}
