//go:build linux

// Command servicecheck checks the files of deploy/ for what stands in front of a
// service: a reverse proxy, and Prometheus. It starts each program that this machine has
// as a child process, with the committed file, in front of a served model.
//
//	servicecheck [-programs FOLDER] BIN
//
// It prints a line for each check, and what it did not run.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	programs := flag.String("programs", "/", "folder whose usr/bin and usr/sbin are searched after PATH and /usr/sbin")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: servicecheck [-programs FOLDER] BIN")
		os.Exit(2)
	}
	os.Setenv("PATH", strings.Join([]string{os.Getenv("PATH"), "/usr/sbin", filepath.Join(*programs, "usr/sbin"), filepath.Join(*programs, "usr/bin")}, ":"))
	dir, err := os.MkdirTemp("", "servicecheck")
	if err == nil {
		err = run(dir, flag.Arg(0))
		os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "servicecheck:", err)
		os.Exit(1)
	}
}

// keys are the keys of the service.
const (
	webKey     = "sk-web"
	metricsKey = "sk-metrics"
	keyFile    = "- {name: web, key: " + webKey + "}\n- {name: prometheus, key: " + metricsKey + ", metrics_only: true}\n"
)

func run(dir, bin string) error {
	keys := filepath.Join(dir, "keys.yaml")
	if err := os.WriteFile(keys, []byte(keyFile), 0o600); err != nil {
		return err
	}
	r := &results{}
	keyed, err := serve(dir, "keyed", bin, "--keys", keys, "--trusted-proxy", "127.0.0.1")
	if err != nil {
		return err
	}
	defer keyed.stop()
	open, err := serve(dir, "open", bin, "--allowed-host", proxyHost, "--trusted-proxy", "127.0.0.1")
	if err != nil {
		return err
	}
	defer open.stop()
	if err := checkProxies(r, dir, bin, keyed, open); err != nil {
		return err
	}
	if err := checkPrometheus(r, dir, keyed); err != nil {
		return err
	}
	if r.failed > 0 {
		return fmt.Errorf("%d checks failed", r.failed)
	}
	return nil
}

// results counts and prints the results of checks.
type results struct{ failed int }

func (r *results) add(name string, err error) {
	if err != nil {
		r.failed++
		fmt.Printf("FAILED  %s: %v\n", name, err)
		return
	}
	fmt.Printf("ok      %s\n", name)
}

// A process is a running program.
type process struct {
	cmd  *exec.Cmd
	addr string // where it listens
	log  string // path of what it says
}

// start starts a program, and waits until it listens at addr.
func start(dir, name, addr string, command ...string) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...), addr: addr, log: filepath.Join(dir, name+".log")}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = log, log, dir
	p.cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for range 600 {
		if c, err := net.Dial("tcp", addr); err == nil {
			return p, c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.stop()
	text, _ := os.ReadFile(p.log)
	return nil, fmt.Errorf("%s does not listen at %s:\n%s", name, addr, text)
}

func (p *process) stop() {
	p.cmd.Process.Signal(os.Interrupt)
	kill := time.AfterFunc(5*time.Second, func() { p.cmd.Process.Kill() })
	p.cmd.Wait()
	kill.Stop()
}

// serve starts a model's service.
func serve(dir, name, bin string, flags ...string) (*process, error) {
	path, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	addr := freeAddress()
	_, port, _ := net.SplitHostPort(addr)
	return start(dir, name, addr, append([]string{path, "serve", "--port", port, "--log", "json"}, flags...)...)
}

// freeAddress returns a loopback address that nothing listens at, below the ports that
// the system gives away by itself.
func freeAddress() string {
	for port := 20000 + os.Getpid()*7%10000; ; port++ {
		if port >= 30000 {
			port = 20000
		}
		addr := "127.0.0.1:" + strconv.Itoa(port)
		if l, err := net.Listen("tcp", addr); err == nil && !given[addr] {
			l.Close()
			given[addr] = true
			return addr
		} else if err == nil {
			l.Close()
		}
	}
}

// given are the results of freeAddress.
var given = map[string]bool{}
