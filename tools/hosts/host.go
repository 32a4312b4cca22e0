//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// names of the hosts, and of the user on both.
const (
	nameA, nameB = "host-a", "host-b"
	user         = "iflowc"
	home         = "/home/" + user
	userID       = 7000
	netDevice    = "eth0"
)

// A Host is a machine of namespaces: network, processes, mounts, IPC and host name.
type Host struct {
	Name    string
	CPU     int // the core that its programs use; -1: any
	process *exec.Cmd
	hold    io.Closer // the host ends when this is closed
}

// Hosts are two hosts and the link between them.
type Hosts struct {
	A, B *Host
	Link *Link
}

// Missing returns why hosts cannot be built on this machine, or nil.
func Missing() error {
	if os.Geteuid() != 0 {
		return errors.New("not root: network namespaces cannot be built")
	}
	tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("no TUN devices: %w", err)
	}
	tun.Close()
	for _, tool := range []string{"ip", "nsenter", "setpriv", "taskset", "ssh", "ssh-keygen", "/usr/sbin/sshd"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w (Debian: iproute2, util-linux, openssh-client, openssh-server)", err)
		}
	}
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the kernel allows no new namespaces: %w", err)
	}
	return nil
}

const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// Build starts two hosts whose users can log in to each other. cpus are the cores
// of the hosts, or -1.
func Build(cpus [2]int) (*Hosts, error) {
	keys, err := os.MkdirTemp("", "hosts")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(keys)
	for _, name := range []string{"id_ed25519", nameA, nameB} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", filepath.Join(keys, name)).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ssh-keygen: %w\n%s", err, out)
		}
	}
	h := &Hosts{A: &Host{Name: nameA, CPU: cpus[0]}, B: &Host{Name: nameB, CPU: cpus[1]}}
	var ends []*os.File
	for i, x := range []*Host{h.A, h.B} {
		tun, err := x.start(i, keys)
		if err != nil {
			h.Close()
			for _, f := range ends {
				f.Close()
			}
			return nil, fmt.Errorf("%s: %w", x.Name, err)
		}
		ends = append(ends, tun)
	}
	h.Link = newLink(ends[0], ends[1])
	return h, nil
}

// Close ends both hosts with all their processes.
func (h *Hosts) Close() {
	if h.Link != nil {
		h.Link.Close()
	}
	for _, x := range []*Host{h.A, h.B} {
		if x.process != nil {
			x.hold.Close()
			x.process.Process.Kill()
			x.process.Wait()
		}
	}
}

// start starts the host's first process and returns the device of its network.
func (h *Host) start(number int, keys string) (*os.File, error) {
	cmd := exec.Command("/proc/self/exe", hostCommand, h.Name, strconv.Itoa(number+1), keys)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h.process, h.hold = cmd, in
	tun, err := openTUN(cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	io.WriteString(in, "go\n")
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		tun.Close()
		return nil, errors.New("its first process did not start; its error is above")
	}
	return tun, nil
}

// openTUN creates a device in the network namespace of a process.
func openTUN(pid int) (f *os.File, err error) {
	err = inNetwork(pid, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		request, _ := unix.NewIfreq(netDevice)
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
			unix.Close(fd)
			return err
		}
		f = os.NewFile(uintptr(fd), "tun")
		return nil
	})
	return f, err
}

// Path returns where a path of the host is found from outside.
func (h *Host) Path(path string) string {
	return fmt.Sprintf("/proc/%d/root%s", h.process.Process.Pid, path)
}

// Put copies files into a folder of the user's home.
func (h *Host) Put(folder string, files ...string) error {
	dir := h.Path(filepath.Join(home, folder))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if len(files) == 0 {
		return nil
	}
	args := append([]string{"-rL", "--preserve=mode", "--remove-destination", "--"}, files...)
	if out, err := exec.Command("cp", append(args, dir)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", userID, userID), dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// Command returns a command that the host's user runs in the home folder.
func (h *Host) Command(ctx context.Context, args ...string) *exec.Cmd {
	front := []string{"nsenter", "-t", strconv.Itoa(h.process.Process.Pid), "-m", "-n", "-p", "-i", "-u", "--", "setpriv",
		"--reuid", strconv.Itoa(userID), "--regid", strconv.Itoa(userID), "--clear-groups", "sh", "-c", `cd && exec "$@"`, "sh"}
	if h.CPU >= 0 {
		front = slices.Concat([]string{"taskset", "-c", strconv.Itoa(h.CPU)}, front)
	}
	cmd := exec.CommandContext(ctx, front[0], append(front[1:], args...)...)
	cmd.Env = []string{"HOME=" + home, "USER=" + user, "LOGNAME=" + user, "SHELL=/bin/sh", "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	cmd.Cancel = func() error { return Signal(cmd, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for pipes that a process left behind still holds
	return cmd
}

// Signal sends a signal to a command of a host. nsenter, which waits for it, would not
// pass signals on.
func Signal(cmd *exec.Cmd, sig syscall.Signal) error {
	pid := cmd.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return err
	}
	for child := range strings.FieldsSeq(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			syscall.Kill(n, sig)
		}
	}
	return nil
}

// Ranks returns the processes of an MPI job on the host, by rank.
func (h *Host) Ranks() map[int]int {
	own, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", h.process.Process.Pid))
	found := map[int]int{}
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range paths {
		if space, err := os.Readlink(p + "/ns/pid"); err != nil || space != own {
			continue
		}
		env, _ := os.ReadFile(p + "/environ")
		exe, _ := os.Readlink(p + "/exe")
		if !strings.HasPrefix(exe, home) {
			continue
		}
		for _, name := range []string{"OMPI_COMM_WORLD_RANK=", "PMI_RANK="} {
			for field := range strings.SplitSeq(string(env), "\x00") {
				if n, err := strconv.Atoi(strings.TrimPrefix(field, name)); err == nil && strings.HasPrefix(field, name) {
					found[n], _ = strconv.Atoi(filepath.Base(p))
				}
			}
		}
	}
	return found
}
