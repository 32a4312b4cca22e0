//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/iflowc/iflowc/tools/check/selfsigned"
)

// The two clients. Each key has its own share of the service.
const (
	goodKey = "key-of-the-client"
	evilKey = "key-of-the-attacker"
)

// A service is one `BIN serve` process.
type service struct {
	addr    string // host:port
	info    info
	most    float64 // MB that it announces as its maximum; 0: none
	keyless bool
	tls     bool

	cmd     *exec.Cmd
	log     string // file with its output
	exited  chan struct{}
	killed  atomic.Bool // by the watchdog
	resting int         // goroutines at rest
}

// info describes a service as seen by clients.
type info struct {
	Model    string
	Context  int
	Vocab    int
	LargestN int // of the strategy fsd; see largestN
}

// atMost matches the line with the memory limit of the whole service.
var atMost = regexp.MustCompile(`memory: at most ([\d.]+) MB`)

// start runs a fresh service and waits until it listens.
func (o *options) start(a *attack) (*service, error) {
	s := &service{keyless: a.keyless, tls: a.tls, exited: make(chan struct{}), log: filepath.Join(o.scratch, "serve.log")}
	args := []string{"serve", "--port", "0"}
	if !s.keyless {
		args = append(args, "--api-key", goodKey, "--api-key", evilKey)
	}
	if s.tls {
		cert, err := selfsigned.Write(o.scratch, "127.0.0.1")
		if err != nil {
			return nil, err
		}
		args = append(args, "--tls-cert", cert.File, "--tls-key", cert.KeyFile)
	}
	s.cmd = o.limit.command(o.bin, slices.Concat(args, a.flags, strings.Fields(o.flags)))
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	s.cmd.Stderr = out
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.cmd.Wait()
		close(s.exited)
	}()
	// The kernel should kill the service first if memory runs out.
	os.WriteFile(s.proc("oom_score_adj"), []byte("1000"), 0)
	go s.watch(o.kill)
	listening := regexp.MustCompile(`(?m)^listening at https?://(\S+)`)
	for range 1200 {
		text, _ := os.ReadFile(s.log)
		if m := listening.FindSubmatch(text); m != nil {
			s.addr = string(m[1])
			if m := atMost.FindSubmatch(text); m != nil {
				s.most, _ = strconv.ParseFloat(string(m[1]), 64)
			}
			return s, s.learn()
		}
		select {
		case <-s.exited:
			return nil, fmt.Errorf("%s did not start: %s", o.bin, text)
		case <-time.After(10 * time.Millisecond):
		}
	}
	s.stop()
	return nil, errors.New("the service is not ready after 12 s")
}

// watch kills the service before it takes all of the machine's memory.
func (s *service) watch(limit float64) {
	for {
		select {
		case <-s.exited:
			return
		case <-time.After(20 * time.Millisecond):
		}
		if s.memory("VmRSS") > limit {
			s.killed.Store(true)
			s.cmd.Process.Kill()
			return
		}
	}
}

func (s *service) proc(file string) string {
	return fmt.Sprintf("/proc/%d/%s", s.cmd.Process.Pid, file)
}

// memory returns a row of /proc/PID/status in MB.
func (s *service) memory(row string) float64 {
	f, err := os.Open(s.proc("status"))
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), row+":"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(text)[0], 64)
			return kb * 1024 / 1e6
		}
	}
	return 0
}

// resetPeak resets VmHWM.
func (s *service) resetPeak() { os.WriteFile(s.proc("clear_refs"), []byte("5"), 0) }

// alive reports whether the process runs.
func (s *service) alive() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

func (s *service) stop() {
	s.cmd.Process.Kill()
	<-s.exited
}

// get sends a request with the client's key.
func (s *service) get(path string) ([]byte, error) {
	return s.ask(http.MethodGet, path, goodKey, nil)
}

// ask sends one request on its own connection.
func (s *service) ask(method, path, key string, body any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var data []byte
	if body != nil {
		data, _ = json.Marshal(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url()+path, strings.NewReader(string(data)))
	if err != nil {
		return nil, err
	}
	r.Close = true
	if !s.keyless {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	a, err := askClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %.200s", path, a.StatusCode, text)
	}
	return text, err
}

// learn collects the service's properties and warms the model up.
func (s *service) learn() error {
	var models struct {
		Data []struct {
			ID  string
			Len int `json:"max_model_len"`
		}
	}
	text, err := s.get("/v1/models")
	if err == nil {
		err = json.Unmarshal(text, &models)
	}
	if err != nil || len(models.Data) == 0 {
		return fmt.Errorf("/v1/models: %w", err)
	}
	s.info = info{Model: models.Data[0].ID, Context: models.Data[0].Len, Vocab: 256}
	// The error for an id beyond the vocabulary states the vocabulary's size.
	_, err = s.ask(http.MethodPost, "/detokenize", goodKey, map[string]any{"tokens": []int{1 << 30}})
	if err != nil {
		if m := regexp.MustCompile(`has (\d+) tokens`).FindStringSubmatch(err.Error()); m != nil {
			s.info.Vocab, _ = strconv.Atoi(m[1])
		}
	}
	for range 3 {
		if _, err = s.ask(http.MethodPost, "/v1/completions", goodKey, map[string]any{"prompt": words(30, 0), "max_tokens": 8}); err != nil {
			return err
		}
	}
	time.Sleep(50 * time.Millisecond)
	m, err := s.metrics()
	s.resting = int(m["go_goroutines"])
	return err
}

// metrics reads the rows without labels of /metrics.
func (s *service) metrics() (map[string]float64, error) {
	text, err := s.get("/metrics")
	m := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				m[name] = v
			}
		}
	}
	return m, err
}

// settle waits until nothing runs, and returns the leftovers after a timeout.
func (s *service) settle(limit time.Duration) error {
	left := errors.New("not asked")
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if !s.alive() {
			return nil // other checks report it
		}
		m, err := s.metrics()
		running, waiting, routines := m["iflowc_requests_running"], m["iflowc_requests_waiting"], int(m["go_goroutines"])
		switch {
		case err != nil:
			left = err
		case running+waiting > 0:
			left = fmt.Errorf("%v running, %v waiting", running, waiting)
		case routines > s.resting+10:
			left = fmt.Errorf("%d goroutines, %d before", routines, s.resting)
		default:
			return nil
		}
	}
	return left
}
