//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A service is a job that serves, started by deploy/launch.
type service struct {
	*job
	launch *exec.Cmd
	log    output
	ended  chan struct{}
	client *http.Client
}

// An output collects what a program prints, while another goroutine reads it.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

const servedAt = "127.0.0.1:8080"

// serve starts the service and waits until it responds. Under MPICH each rank gets a
// session of its own, so that a lost rank does not end the others before they have
// answered.
func (j *job) serve() *service {
	if j.mpi == "mpich" {
		return j.serveAs("setsid", "--wait")
	}
	return j.serveAs()
}

// serveAs is serve with words before the program.
func (j *job) serveAs(front ...string) *service {
	j.t.Helper()
	s := &service{job: j, ended: make(chan struct{})}
	s.launch = j.A.Command(context.Background(), slices.Concat([]string{"model/launch"}, j.launcher, front, []string{"model/model", "serve", "--port", "8080"})...)
	s.launch.Stdout, s.launch.Stderr = &s.log, &s.log
	if err := s.launch.Start(); err != nil {
		j.t.Fatal(err)
	}
	go func() { s.launch.Wait(); close(s.ended) }()
	j.t.Cleanup(func() {
		select {
		case <-s.ended: // its process id may be another's by now
		default:
			Signal(s.launch, syscall.SIGKILL)
		}
	})
	s.client = &http.Client{Timeout: 2 * limit, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return dialIn(j.A.process.Process.Pid, servedAt)
	}}}
	for until := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		if r, err := s.client.Get("http://" + servedAt + "/health"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return s
			}
		}
		if time.Now().After(until) {
			j.t.Fatalf("the service does not start:\n%s", s.log.String())
		}
	}
}

// dialIn connects to an address in the network namespace of a process.
func dialIn(pid int, at string) (conn net.Conn, err error) {
	err = inNetwork(pid, func() error {
		conn, err = net.Dial("tcp", at)
		return err
	})
	return conn, err
}

// An answer is how a request ended: the status and its tokens, or what went wrong.
type answer struct {
	status int
	tokens int
	fault  string // "": complete
	after  time.Duration
}

// ask requests many tokens as a stream. It sends on begun when the first one has come.
func (s *service) ask(tokens int, begun chan<- struct{}) (a answer) {
	start := time.Now()
	defer func() { a.after = time.Since(start) }()
	body := fmt.Sprintf(`{"prompt": "Once upon a time", "max_tokens": %d, "temperature": 0, "ignore_eos": true, "stream": true}`, tokens)
	r, err := s.client.Post("http://"+servedAt+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return answer{fault: err.Error()}
	}
	defer r.Body.Close()
	a.status = r.StatusCode
	if r.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(r.Body, 1000))
		a.fault = string(text)
		return a
	}
	a.fault = "the stream was cut off"
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
		case data == "[DONE]":
			a.fault = ""
		case strings.Contains(data, `"error"`):
			a.fault = data
			return a
		default:
			var chunk struct{ Choices []json.RawMessage }
			if json.Unmarshal([]byte(data), &chunk) == nil && len(chunk.Choices) > 0 {
				if a.tokens++; a.tokens == 1 && begun != nil {
					begun <- struct{}{}
				}
			}
		}
	}
	return a
}

// background starts requests and returns when each has got its first token. The answers
// arrive on the channel.
func (s *service) background(n, tokens int) <-chan answer {
	s.t.Helper()
	answers, begun := make(chan answer, n), make(chan struct{}, n)
	for range n {
		go func() { answers <- s.ask(tokens, begun) }()
	}
	for range n {
		select {
		case <-begun:
		case a := <-answers:
			s.t.Fatalf("a request ended before the test began: %+v\n%s", a, s.log.String())
		case <-time.After(limit):
			s.t.Fatalf("no token after %v\n%s", limit, s.log.String())
		}
	}
	return answers
}

// status waits for the end of the launcher and returns its exit status; -1: it is still
// there after some time.
func (s *service) status(within time.Duration) int {
	s.t.Helper()
	start := time.Now()
	select {
	case <-s.ended:
		s.t.Logf("the launcher ended with status %d after %.1f s", s.launch.ProcessState.ExitCode(), time.Since(start).Seconds())
		return s.launch.ProcessState.ExitCode()
	case <-time.After(within):
		s.t.Errorf("the launcher is still there after %v:\n%s", within, s.log.String())
		Signal(s.launch, syscall.SIGKILL)
		return -1
	}
}

// long returns a number of tokens that takes two to four seconds at a delay of 2 ms: a
// token waits for two messages if the model is pipeline parallel, else for about ten.
func (j *job) long() int {
	if j.kind == "tensor" {
		return 100
	}
	return 400
}

// signal sends a signal to a rank.
func (j *job) signal(rank int, sig syscall.Signal) {
	j.t.Helper()
	pid := j.A.Ranks()[0]
	if rank == 1 {
		pid = j.B.Ranks()[1]
	}
	if pid == 0 {
		j.t.Fatalf("rank %d is not found", rank)
	}
	syscall.Kill(pid, sig)
}

// restart checks that a new service answers after the end of another.
func (j *job) restart() {
	j.t.Helper()
	s := j.serve()
	if a := s.ask(8, nil); a.fault != "" || a.tokens == 0 {
		j.t.Errorf("after a restart: %+v", a)
	}
	Signal(s.launch, syscall.SIGTERM)
	if code := s.status(limit); code != 0 {
		j.t.Errorf("the restarted service ended with status %d", code)
	}
}

// lost checks the answers of a job that has lost a rank: each names the loss.
func (s *service) lost(answers <-chan answer, n int) {
	s.t.Helper()
	for range n {
		select {
		case a := <-answers:
			if !strings.Contains(a.fault, "rank_lost") {
				s.t.Errorf("a request ended with %+v, expected rank_lost\n%s", a, s.log.String())
			}
		case <-time.After(limit):
			s.t.Errorf("a request has not ended after %v\n%s", limit, s.log.String())
			return
		}
	}
}

// TestShortLinkFailure: three seconds without a link only delay the answers.
func TestShortLinkFailure(t *testing.T) {
	each(t, func(t *testing.T, j *job) {
		j.Link.Set(Shape{Delay: 2 * time.Millisecond})
		s := j.serve()
		answers := s.background(2, j.long())
		j.Link.Set(Shape{Down: true})
		time.Sleep(3 * time.Second)
		j.Link.Set(Shape{Delay: 2 * time.Millisecond})
		for range 2 {
			if a := <-answers; a.fault != "" || a.after < 3*time.Second {
				t.Errorf("%+v, expected a complete answer after the link was back\n%s", a, s.log.String())
			}
		}
		Signal(s.launch, syscall.SIGTERM)
		if code := s.status(limit); code != 0 {
			t.Errorf("status %d\n%s", code, s.log.String())
		}
		j.nobody()
	})
}

// TestLongLinkFailure: thirty seconds without a link end the job on both hosts, and it
// can be started again.
func TestLongLinkFailure(t *testing.T) {
	each(t, func(t *testing.T, j *job) {
		j.Link.Set(Shape{Delay: 2 * time.Millisecond})
		s := j.serve()
		answers := s.background(2, j.long())
		j.Link.Set(Shape{Down: true})
		down := time.Now()
		s.lost(answers, 2)
		if a := s.ask(8, nil); a.fault == "" || a.status != http.StatusServiceUnavailable && a.status != 0 { // 0: it has ended
			t.Errorf("a request after the loss: %+v, expected status 503", a)
		}
		if code := s.status(limit); code == 0 {
			t.Errorf("status 0\n%s", s.log.String())
		}
		time.Sleep(time.Until(down.Add(30 * time.Second)))
		j.Link.Set(Shape{})
		j.nobody()
		j.restart()
	})
}

// TestSignals sends signals to each rank of a busy service.
func TestSignals(t *testing.T) {
	each(t, func(t *testing.T, j *job) {
		for _, c := range []struct {
			rank int
			sig  syscall.Signal
		}{{1, syscall.SIGKILL}, {1, syscall.SIGSTOP}, {0, syscall.SIGKILL}, {0, syscall.SIGSTOP}} {
			j.Link.Set(Shape{Delay: 2 * time.Millisecond})
			s := j.serve()
			answers := s.background(2, j.long())
			t.Logf("%v to rank %d", c.sig, c.rank)
			j.signal(c.rank, c.sig)
			if c.rank == 1 {
				s.lost(answers, 2)
			}
			if code := s.status(limit); code == 0 {
				t.Errorf("%v to rank %d: status 0\n%s", c.sig, c.rank, s.log.String())
			}
			for _, pid := range j.B.Ranks() {
				syscall.Kill(pid, syscall.SIGCONT) // a rank that was stopped ends when it goes on
			}
			j.nobody()
		}
		j.restart()
	})
}

// TestPlainMPICH: without sessions of their own, MPICH kills all ranks with the lost one.
func TestPlainMPICH(t *testing.T) {
	each(t, func(t *testing.T, j *job) {
		if j.mpi != "mpich" {
			t.Skip("of MPICH only")
		}
		j.Link.Set(Shape{Delay: 2 * time.Millisecond})
		s := j.serveAs()
		answers := s.background(2, j.long())
		j.signal(1, syscall.SIGKILL)
		for range 2 {
			if a := <-answers; a.fault == "" { // rank 0 may still say that a rank is lost
				t.Errorf("%+v, expected a broken connection", a)
			}
		}
		if code := s.status(limit); code == 0 {
			t.Errorf("status 0\n%s", s.log.String())
		}
		j.nobody()
	})
}

// TestDrain: SIGTERM to the launcher, to rank 0 or to rank 1 cuts no request.
func TestDrain(t *testing.T) {
	each(t, func(t *testing.T, j *job) {
		for _, to := range []string{"launcher", "rank 0", "rank 1"} {
			j.Link.Set(Shape{Delay: 2 * time.Millisecond})
			s := j.serve()
			answers := s.background(2, j.long())
			switch to {
			case "launcher":
				Signal(s.launch, syscall.SIGTERM)
			case "rank 0":
				j.signal(0, syscall.SIGTERM)
			default:
				j.signal(1, syscall.SIGTERM)
			}
			for range 2 {
				if a := <-answers; a.fault != "" {
					t.Errorf("SIGTERM to %s: %+v, expected a complete answer\n%s", to, a, s.log.String())
				}
			}
			if to == "rank 1" {
				Signal(s.launch, syscall.SIGTERM)
			}
			if code := s.status(limit); code != 0 {
				t.Errorf("SIGTERM to %s: status %d\n%s", to, code, s.log.String())
			}
			j.nobody()
		}
	})
}
