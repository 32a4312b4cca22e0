//go:build linux

package deploycheck

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/iflowc/iflowc/ir/irtest"
)

func TestMain(m *testing.M) { os.Exit(irtest.Run(m)) }

// A launched is a running deploy/launch.
type launched struct {
	*exec.Cmd
	dir   string // its TMPDIR, which marks the processes of its job
	ended chan struct{}
	mu    sync.Mutex
	said  bytes.Buffer
}

func (l *launched) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.Write(b)
}

func (l *launched) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.String()
}

// launch starts deploy/launch with a command.
func launch(t *testing.T, env []string, command ...string) *launched {
	t.Helper()
	dir, err := os.MkdirTemp("", "launch") // a short name: OpenMPI has sockets in it
	if err != nil {
		t.Fatal(err)
	}
	l := &launched{Cmd: exec.Command("../../../deploy/launch", command...), dir: dir, ended: make(chan struct{})}
	l.Env = append(append(os.Environ(), "TMPDIR="+dir, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"OMPI_MCA_rmaps_base_oversubscribe=1"), env...)
	l.Stdout, l.Stderr = l, l
	l.WaitDelay = time.Second
	if err := l.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { l.Wait(); close(l.ended) }()
	t.Cleanup(func() {
		l.Process.Kill()
		<-l.ended
		for pid := range l.job() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		os.RemoveAll(dir)
	})
	return l
}

var rankOf = regexp.MustCompile(`\0(?:OMPI_COMM_WORLD_RANK|PMI_RANK)=(\d+)\0`)

// job returns the processes that the launcher started: their ranks, or -1.
func (l *launched) job() map[int]int {
	found := map[int]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(env, []byte("\x00IFLOWC_PID_FILE="+l.dir)) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		found[pid] = -1
		if m := rankOf.FindSubmatch(env); m != nil {
			found[pid], _ = strconv.Atoi(string(m[1]))
		}
	}
	return found
}

// end waits for the launcher's end and returns its status. Nothing of the job may
// be left then.
func (l *launched) end(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-l.ended:
	case <-time.After(within):
		t.Fatalf("the launcher still runs after %v:\n%s", within, l.text())
	}
	for range 20 { // what was killed takes a moment to disappear
		if len(l.job()) == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if left := l.job(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	return l.ProcessState.ExitCode()
}

// until waits for a line of the output and returns what the pattern's group matches.
func (l *launched) until(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for range 600 {
		if m := re.FindStringSubmatch(l.text()); m != nil {
			return m[1]
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("no %s in:\n%s", pattern, l.text())
	return ""
}

// rank returns the process of a rank.
func (l *launched) rank(t *testing.T, rank int) *os.Process {
	t.Helper()
	for pid, r := range l.job() {
		exe, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
		if p, err := os.FindProcess(pid); r == rank && filepath.Base(exe) == "model" && err == nil {
			return p
		}
	}
	t.Fatalf("there is no rank %d:\n%s", rank, l.text())
	return nil
}

// stream asks for a long answer and returns it after its first chunk.
func stream(t *testing.T, url string) *bufio.Reader {
	t.Helper()
	body := `{"prompt": "Once upon a time", "max_tokens": 480, "ignore_eos": true, "stream": true, "n": 4}`
	answer, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	r := bufio.NewReader(answer.Body)
	for { // on a busy machine pings come first
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream begins with %q, %v", line, err)
		}
		if strings.HasPrefix(line, "data: {") {
			return r
		}
	}
}

// TestLaunch runs the demo model with two ranks under each mpirun that is here.
func TestLaunch(t *testing.T) {
	t.Parallel()
	bin := ""
	for _, mpirun := range []string{"mpirun.openmpi", "mpirun.mpich"} {
		path, err := exec.LookPath(mpirun)
		if err != nil {
			t.Logf("not under %s, which is not here (packages openmpi-bin, mpich)", mpirun)
			continue
		}
		if bin == "" {
			bin = compile(t)
		}
		start := func(t *testing.T) (*launched, string) {
			t.Parallel()
			// A loaded machine needs more than the default --grace for the rest of the request.
			l := launch(t, []string{"IFLOWC_GRACE=150"}, path, "-n", "2", bin, "serve", "--port", "0", "--threads", "1", "--log", "none", "--grace", "2m")
			return l, l.until(t, `listening at (\S+)`)
		}
		t.Run(mpirun+" drains", func(t *testing.T) {
			l, url := start(t)
			rank1, answer := l.rank(t, 1), stream(t, url)
			// Rank 1 is stopped, so that the request outlasts the 2 s that mpirun gives ranks.
			rank1.Signal(syscall.SIGSTOP)
			l.Process.Signal(syscall.SIGTERM)
			time.Sleep(2500 * time.Millisecond)
			if err := rank1.Signal(syscall.SIGCONT); err != nil {
				t.Fatalf("rank 1 has ended before the request: %v\n%s", err, l.text())
			}
			text, err := io.ReadAll(answer)
			if err != nil || !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
				t.Errorf("the stream ends with %q, %v", text[max(0, len(text)-100):], err)
			}
			if status := l.end(t, 30*time.Second); status != 0 { // a loaded machine takes its time
				t.Errorf("status %d:\n%s", status, l.text())
			}
		})
		t.Run(mpirun+" loses a rank", func(t *testing.T) {
			l, _ := start(t)
			l.rank(t, 1).Kill()
			if status := l.end(t, 30*time.Second); status <= 0 { // a loaded machine takes its time
				t.Errorf("status %d:\n%s", status, l.text())
			}
		})
	}
}

// compile makes the demo model for two ranks.
func compile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	iflowc, bin := filepath.Join(dir, "iflowc"), filepath.Join(dir, "model")
	for _, args := range [][]string{
		{"go", "build", "-o", iflowc, "../../../cmd/iflowc"},
		{iflowc, "compile", "../../../models/demo.yaml", "--devices", "0&1", "--isa", "portable", "-o", bin},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return bin
}

// TestLaunchForces: a launcher that does not end is killed, with all that it
// started. A faster sleep shortens the waits.
func TestLaunchForces(t *testing.T) {
	t.Parallel()
	// A shell that inherits an ignored SIGINT cannot catch it; a model can.
	rank0 := func(trap, then string) string {
		return `env --default-signal=INT sh -c '` + trap + `; echo $$ >"$IFLOWC_PID_FILE"; echo started; ` + then + `'`
	}
	for name, c := range map[string]struct {
		mpirun string // a shell script
		grace  string // waits
		stop   bool
		want   string // in the output
		status int
	}{
		"outlives rank 0":        {rank0(":", "/bin/sleep 2") + "; trap '' TERM; /bin/sleep 50", "4", false, "still runs 15 s after rank 0 has ended", 1},
		"rank 0 does not end":    {rank0(`trap "" INT`, "while :; do /bin/sleep 1; done"), "4", true, "still runs 4 s after it was asked to end", 1},
		"ends during the drain":  {rank0(`trap "exit 0" INT`, "while :; do /bin/sleep 0.1; done"), "150", true, "", 0}, // a loaded machine takes its time
		"is not serving yet":     {"echo started; /bin/sleep 50", "4", true, "rank 0 has not started", 1},
		"fails":                  {rank0(":", "/bin/sleep 0.3; exit 7"), "4", false, "", 7},
		"its file is of others":  {`echo 1 >"$IFLOWC_PID_FILE"; echo started; /bin/sleep 50`, "4", true, "rank 0 has not started", 1},
		"its file has no number": {`echo .. >"$IFLOWC_PID_FILE"; echo started; /bin/sleep 50`, "4", true, "rank 0 has not started", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fakes(t, dir, map[string]string{"mpirun": c.mpirun, "sleep": "/bin/sleep 0.1"})
			l := launch(t, []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "IFLOWC_GRACE=" + c.grace}, "mpirun")
			l.until(t, "(started)")
			if c.stop {
				l.Process.Signal(syscall.SIGTERM)
			}
			if status := l.end(t, 20*time.Second); status != c.status || !strings.Contains(l.text(), c.want) {
				t.Errorf("status %d:\n%s", status, l.text())
			}
		})
	}
	for grace, want := range map[string]string{"soon": "IFLOWC_GRACE=soon: expected seconds", "08": "IFLOWC_GRACE=08: expected seconds", "": "usage: launch mpirun"} {
		cmd := exec.Command("../../../deploy/launch")
		cmd.Env = append(os.Environ(), "IFLOWC_GRACE="+grace)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("IFLOWC_GRACE=%q: %v, %s", grace, err, out)
		}
	}
}

// TestLaunchShells: no shell takes its own programs for a part of the job, for which
// it would wait.
func TestLaunchShells(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"dash", "bash"} {
		bin, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("no %s on this machine", shell)
			continue
		}
		dir := t.TempDir()
		fakes(t, dir, map[string]string{"sleep": "echo waits\n/bin/sleep 0.1"})
		cmd := exec.Command(bin, "../../../deploy/launch", "true")
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "waits") > 12 { // else 15: the linger of deploy/launch
			t.Errorf("%s: %v after the waits\n%s", shell, err, out)
		}
	}
}
