//go:build linux

package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hostCommand is the argument with which this program is the first process of a host.
const hostCommand = "first-process-of-host"

// firstProcess makes the namespaces that it starts in a host: it mounts what the host does
// not share, configures its network and starts its ssh server. The host ends with it.
func firstProcess(name, number, keys string) error {
	if err := unix.Sethostname([]byte(name)); err != nil {
		return err
	}
	secret, err := readKeys(keys, name)
	if err != nil {
		return err
	}
	if err := mountOwn(); err != nil {
		return err
	}
	if err := writeFiles(secret); err != nil {
		return err
	}
	input := bufio.NewReader(os.Stdin)
	if _, err := input.ReadString('\n'); err != nil { // until the network device is there
		return err
	}
	for _, args := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "address", "add", "10.77.0." + number + "/24", "dev", netDevice},
		{"ip", "link", "set", netDevice, "mtu", fmt.Sprint(mtu), "up"},
		{"/usr/sbin/sshd", "-f", "/run/hosts/sshd_config"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	if err := listens("127.0.0.1:22"); err != nil {
		return err
	}
	fmt.Println("ready")
	go reap()
	input.ReadString('\n') // until the program that built the host ends it, or has ended
	return nil
}

// readKeys reads the files that the host's namespaces will hide.
func readKeys(dir, name string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, f := range []string{"id_ed25519", "id_ed25519.pub", name, nameA + ".pub", nameB + ".pub"} {
		data, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			return nil, err
		}
		files[f] = data
	}
	files["host_key"] = files[name]
	return files, nil
}

// mountOwn mounts file systems that no other host sees.
func mountOwn() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	// Programs look there for network devices, such as MPICH's UCX.
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("sysfs on /sys: %w", err)
	}
	for _, dir := range []string{"/tmp", "/run", "/home", "/root", "/dev/shm"} {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=1777"); err != nil {
			return fmt.Errorf("tmpfs on %s: %w", dir, err)
		}
	}
	return nil
}

// writeFiles writes the host's user, names and keys.
func writeFiles(keys map[string][]byte) error {
	known := nameA + " " + string(keys[nameA+".pub"]) + nameB + " " + string(keys[nameB+".pub"])
	id := fmt.Sprintf("%d:%d", userID, userID)
	root := []struct {
		path, text string
		mode       os.FileMode
	}{
		{"/run/hosts/host_key", string(keys["host_key"]), 0o600},
		{"/run/hosts/sshd_config", "HostKey /run/hosts/host_key\nPidFile none\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 100\nSubsystem sftp internal-sftp\n", 0o600},
		{"/run/hosts/passwd", "root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n" + user + ":x:" + id + "::" + home + ":/bin/sh\n", 0o644},
		{"/run/hosts/group", "root:x:0:\n" + user + fmt.Sprintf(":x:%d:\n", userID), 0o644},
		{"/run/hosts/hosts", "127.0.0.1 localhost\n10.77.0.1 " + nameA + "\n10.77.0.2 " + nameB + "\n", 0o644},
		{home + "/.ssh/id_ed25519", string(keys["id_ed25519"]), 0o600},
		{home + "/.ssh/authorized_keys", string(keys["id_ed25519.pub"]), 0o600},
		{home + "/.ssh/known_hosts", known, 0o600},
	}
	for _, dir := range []string{"/run/hosts", "/run/sshd", home, home + "/.ssh"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	for _, f := range root {
		if err := os.WriteFile(f.path, []byte(f.text), f.mode); err != nil {
			return err
		}
	}
	if out, err := exec.Command("chown", "-R", id, home).CombinedOutput(); err != nil {
		return fmt.Errorf("chown: %w: %s", err, out)
	}
	for _, f := range []string{"passwd", "group", "hosts"} {
		if err := unix.Mount("/run/hosts/"+f, "/etc/"+f, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("/etc/%s: %w", f, err)
		}
	}
	return nil
}

// listens waits until a server accepts connections.
func listens(at string) error {
	for range 100 {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			return conn.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("nothing listens at %s", at)
}

// reap waits for the processes whose parents have ended.
func reap() {
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
}
