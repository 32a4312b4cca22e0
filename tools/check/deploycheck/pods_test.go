//go:build linux

package deploycheck

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A pod is a folder for a script of a container, its secret and its programs.
type pod struct {
	dir, keys string
	env       []string
}

// newPod makes a pod. Its programs are those of the image: the scripts, and a model
// that the test gives as a shell script.
func newPod(t *testing.T, model string) *pod {
	t.Helper()
	dir, err := os.MkdirTemp("", "pod")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &pod{dir: dir, keys: filepath.Join(dir, "keys")}
	for _, script := range []string{"launch", "container/leader", "container/worker", "container/ranks"} {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(script)), []byte(read(t, script)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(p.keys, 0o700); err != nil {
		t.Fatal(err)
	}
	fakes(t, dir, map[string]string{"model": model})
	p.env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+dir, "IFLOWC_KEYS="+p.keys,
		"LWS_LEADER_ADDRESS=iflowc-0.iflowc.prod", "LWS_GROUP_SIZE=2")
	return p
}

// start runs a script of the pod until the test ends. log is its output.
func (p *pod) start(t *testing.T, script string, args ...string) (cmd *exec.Cmd, log string) {
	t.Helper()
	log = filepath.Join(p.dir, script+".log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd = exec.Command(filepath.Join(p.dir, script), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	return cmd, log
}

// until waits until a file contains a text.
func until(t *testing.T, file, text string) {
	t.Helper()
	var data []byte
	for range 400 {
		if data, _ = os.ReadFile(file); bytes.Contains(data, []byte(text)) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("no %q in:\n%s", text, data)
}

// ended waits for the end of a script and returns its status.
func ended(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	timer := time.AfterFunc(20*time.Second, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	cmd.Wait()
	if !timer.Stop() {
		t.Errorf("%v does not end", cmd.Args)
	}
	return cmd.ProcessState.ExitCode()
}

// keyPair makes a pair of keys.
func keyPair(t *testing.T, file string) {
	t.Helper()
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// move renames a file of one folder to another name or folder.
func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// newGroup makes the pods of a leader and a worker, with their keys. mpirun is a
// stand-in that tells what it was given and runs a command on the worker, which
// writes to the file rank.
func newGroup(t *testing.T) (leader, worker *pod, rank string) {
	t.Helper()
	if _, err := os.Stat("/usr/sbin/sshd"); err != nil {
		t.Skip("no sshd on this machine (package openssh-server)")
	}
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd wants it for root alone
			t.Skip(err)
		}
	}
	leader, worker = newPod(t, "true"), newPod(t, "true")
	keyPair(t, filepath.Join(leader.keys, "id_ed25519"))
	keyPair(t, filepath.Join(worker.keys, "host_ed25519"))
	move(t, filepath.Join(leader.keys, "id_ed25519.pub"), filepath.Join(worker.keys, "id_ed25519.pub"))
	move(t, filepath.Join(worker.keys, "host_ed25519.pub"), filepath.Join(leader.keys, "host_ed25519.pub"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := "IFLOWC_SSH_PORT=" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	leader.env, worker.env = append(leader.env, port), append(worker.env, port)
	rank = filepath.Join(worker.dir, "rank")
	fakes(t, leader.dir, map[string]string{
		"ssh": `exec /usr/bin/ssh -o HostName=127.0.0.1 "$@"`,
		"mpirun": `cat "$2"; printf '%s\n' "$@"
while [ "$1" != plm_rsh_agent ]; do shift; done
$2 iflowc-0-1.iflowc.prod "echo begun >` + rank + `; sleep 3; echo over >>` + rank + `"`,
	})
	return leader, worker, rank
}

// TestPodVariables: what a pod is given can neither be an option of ssh nor a line of its
// configuration, and no shell runs it as a part of a number.
func TestPodVariables(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	for script, list := range map[string][]string{
		"leader": {"LWS_LEADER_ADDRESS=-oProxyCommand=touch " + ran + ".a", "LWS_GROUP_SIZE=2x", "IFLOWC_SSH_PORT=22\n  ProxyCommand touch " + ran, "IFLOWC_INTERFACE=-x", "LWS_LEADER_ADDRESS="},
		"ranks":  {"LWS_GROUP_SIZE=a[$(touch " + ran + ")]", "LWS_WORKER_INDEX=-1", "IFLOWC_GPUS=99999", "IFLOWC_GPUS=1 + 1"},
	} {
		for _, variable := range list {
			p := newPod(t, "true")
			fakes(t, p.dir, map[string]string{"ssh": "touch " + ran, "mpirun": "touch " + ran})
			p.env = append(p.env, "LWS_WORKER_INDEX=0", variable)
			cmd, log := p.start(t, script, "serve")
			status := ended(t, cmd)
			text, _ := os.ReadFile(log)
			name, _, _ := strings.Cut(variable, "=")
			if _, err := os.Stat(ran); status != 2 || err == nil || !strings.Contains(string(text), name+"=") || !strings.Contains(string(text), "expected") {
				t.Errorf("%s with %q: status %d, ran something: %v\n%s", script, variable, status, err == nil, text)
			}
		}
	}
}

// TestPods runs the leader's and a worker's script with a real sshd.
func TestPods(t *testing.T) {
	t.Parallel()
	leader, worker, rank := newGroup(t)
	lead, log := leader.start(t, "leader", "serve", "--port", "80 81")
	until(t, log, "waiting for iflowc-0-1.iflowc.prod")
	work, workLog := worker.start(t, "worker")
	until(t, rank, "begun")
	work.Process.Signal(syscall.SIGTERM) // the group ends: the worker stays for its rank
	status := ended(t, work)
	if said, _ := os.ReadFile(rank); status != 0 || !strings.Contains(string(said), "over") {
		data, _ := os.ReadFile(workLog)
		t.Errorf("the worker ends with %d, when its rank has said %q:\n%s", status, said, data)
	}
	if status := ended(t, lead); status != 0 {
		t.Errorf("the leader ends with %d", status)
	}
	until(t, log, "localhost\niflowc-0-1.iflowc.prod\n--hostfile\n")
	until(t, log, "\n-n\n2\n")
	until(t, log, "\n"+leader.dir+"/model\nserve\n--port\n80 81\n")
}

// TestHostKey: the leader does not talk to a worker with another host key, and
// both end when they are told to.
func TestHostKey(t *testing.T) {
	t.Parallel()
	leader, worker, _ := newGroup(t)
	other := filepath.Join(leader.dir, "other")
	keyPair(t, other)
	move(t, other+".pub", filepath.Join(leader.keys, "host_ed25519.pub"))
	work, workLog := worker.start(t, "worker")
	until(t, workLog, "Server listening")
	lead, log := leader.start(t, "leader", "serve")
	until(t, log, "Host key verification failed")
	for _, cmd := range []*exec.Cmd{lead, work} {
		cmd.Process.Signal(syscall.SIGTERM)
	}
	if status := ended(t, lead); status != 143 {
		t.Errorf("the waiting leader ends with %d", status)
	}
	if status := ended(t, work); status != 0 {
		t.Errorf("the idle worker ends with %d", status)
	}
}

// TestRanks starts the ranks of two pods with two GPUs each. The model is a
// stand-in that tells its rank and ends as rank 0 lets it.
func TestRanks(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "released")
	model := `echo "rank $RANK local $LOCAL_RANK of $LOCAL_WORLD_SIZE world $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT: $*"
if [ "$RANK" = 0 ]; then trap 'touch ` + gate + `' INT; echo drains; fi
until [ -e ` + gate + ` ]; do sleep 0.1; done
exit $((RANK == FAILING ? 9 : 0))`
	for failing, statuses := range map[int][]int{-1: {0, 0}, 3: {0, 9}} {
		os.Remove(gate)
		var list []*exec.Cmd
		var logs []string
		for index := range 2 {
			p := newPod(t, model)
			p.env = append(p.env, "IFLOWC_GPUS=2", "LWS_WORKER_INDEX="+strconv.Itoa(index), "FAILING="+strconv.Itoa(failing))
			// A shell that inherits an ignored SIGINT cannot catch it; a model can.
			if err := os.Rename(filepath.Join(p.dir, "model"), filepath.Join(p.dir, "script")); err != nil {
				t.Fatal(err)
			}
			fakes(t, p.dir, map[string]string{"model": `exec env --default-signal=INT "$(dirname "$0")/script" "$@"`})
			cmd, log := p.start(t, "ranks", "serve", "--port", "80 81")
			list, logs = append(list, cmd), append(logs, log)
			for local := range 2 {
				until(t, log, fmt.Sprintf("rank %d local %d of 2 world 4 at iflowc-0.iflowc.prod:29400: serve --port 80 81\n", 2*index+local, local))
			}
		}
		until(t, logs[0], "drains")
		for _, cmd := range slices.Backward(list) { // workers first: they stay
			cmd.Process.Signal(syscall.SIGTERM)
			time.Sleep(200 * time.Millisecond)
		}
		for i, cmd := range list {
			if status := ended(t, cmd); status != statuses[i] {
				data, _ := os.ReadFile(logs[i])
				t.Errorf("pod %d ends with %d, expected %d:\n%s", i, status, statuses[i], strings.TrimSpace(string(data)))
			}
		}
	}
}
