//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// An ordinary load is a number of concurrent clients, with prompts and answers
// of given lengths in tokens.
type ordinary struct{ clients, prompt, answer int }

func (l ordinary) String() string {
	return fmt.Sprintf("%d clients, %d+%d tokens", l.clients, l.prompt, l.answer)
}

// A result is a row of the table.
type result struct {
	Attack   string   `json:"attack"`
	Sends    string   `json:"sends"`
	Size     string   `json:"size"`
	Like     string   `json:"ordinary_load"`
	PeakMB   float64  `json:"peak_mb"`
	MostMB   float64  `json:"most_mb,omitempty"` // from serve's output; 0: none
	BasePeak float64  `json:"ordinary_peak_mb"`
	Base     times    `json:"ordinary"`
	Under    times    `json:"attacked"`
	Health   float64  `json:"health_ms"` // maximum latency of /health
	Statuses string   `json:"statuses"`
	Says     []string `json:"says,omitempty"`
	Attacker float64  `json:"attacker_cores"` // CPU cores used by the load generator
	Wrong    []string `json:"wrong"`          // none: passed
	slow     int      // how many of them are the client's times
}

// times summarizes the client's observations, in milliseconds.
type times struct {
	Answers int     `json:"answers"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
	First   float64 `json:"ttft_p50_ms"`
}

func (s seen) times() times {
	return times{len(s.Whole), at(s.Whole, .5), at(s.Whole, .99), at(s.First, .5)}
}

// A phase is one measurement.
type phase struct {
	seen
	peak, most, health, cores float64
	count                     map[int]int
	says                      map[int]string
	wrong                     []string
}

// measure starts a fresh service, puts it under a load, and runs the client.
func (o *options) measure(a *attack) (p phase, err error) {
	s, err := o.start(a)
	if err != nil {
		return p, err
	}
	defer s.stop()
	p.most = s.most
	if a.check != nil {
		if err := a.check(s); err != nil {
			p.wrong = append(p.wrong, err.Error())
		}
	}
	what := a.do(s.info) // builds the bodies
	s.resetPeak()
	health := s.health()
	cpu := used()
	begun := time.Now()
	l, end := run(s, a.workers, a.pause, what)
	time.Sleep(time.Duration(min(0.3, o.seconds/4) * float64(time.Second))) // the load starts before the client
	stop, err := a.begin(s)
	if err == nil {
		p.seen, err = o.behave(s)
		err = cmp.Or(stop(), err)
	}
	if err != nil {
		return p, err
	}
	p.cores = (used() - cpu).Seconds() / time.Since(begun).Seconds()
	p.peak = s.memory("VmHWM")
	end()
	p.health = health()
	p.count, p.says = l.count, l.says
	switch {
	case s.killed.Load():
		p.peak = o.kill
		p.wrong = append(p.wrong, fmt.Sprintf("killed above %.0f MB", o.kill))
	case !s.alive():
		p.wrong = append(p.wrong, "the service died")
	default:
		if err := s.settle(o.settle); err != nil {
			p.wrong = append(p.wrong, fmt.Sprintf("not idle %v after it: %v", o.settle, err))
		}
	}
	if a.after != nil {
		if err := a.after(s); err != nil {
			p.wrong = append(p.wrong, err.Error())
		}
	}
	return p, nil
}

// used returns the CPU time of this process.
func used() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// health requests /health every 200 ms over a new connection, and returns the maximum
// latency in milliseconds.
func (s *service) health() func() float64 {
	ctx, cancel := context.WithCancel(context.Background())
	var slowest time.Duration
	var wg sync.WaitGroup
	wg.Go(func() {
		client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext, TLSClientConfig: anyCertificate()}}
		for ctx.Err() == nil && s.alive() {
			begun := time.Now()
			answer, err := client.Get(s.url() + "/health")
			took := time.Since(begun)
			switch {
			case !s.alive():
				return // other checks report it
			case err != nil:
				took = 5 * time.Second
			default:
				answer.Body.Close()
			}
			slowest = max(slowest, took)
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return func() float64 { cancel(); wg.Wait(); return ms(slowest) }
}

// judge compares both phases.
func (o *options) judge(a *attack, base, under *phase) result {
	r := result{
		Attack: a.name, Sends: a.sends, Size: a.size(), Like: a.like.String(), PeakMB: under.peak, MostMB: under.most, BasePeak: base.peak,
		Base: base.times(), Under: under.times(), Health: under.health, Statuses: statuses(under.count), Attacker: under.cores, Wrong: append([]string{}, under.wrong...),
	}
	wrong := func(format string, args ...any) { r.Wrong = append(r.Wrong, fmt.Sprintf(format, args...)) }
	for status, n := range under.count {
		if status >= 400 || status == 0 {
			r.Says = append(r.Says, fmt.Sprintf("%d %s", status, under.says[status]))
		}
		switch {
		case status == 400 && len(strings.Fields(under.says[status])) < 3 && !a.bare:
			wrong("400 without a sentence: %q", under.says[status])
		case !slices.Contains(a.expected(), status):
			wrong("%s: expected %v", statuses(map[int]int{status: n}), a.expected())
		}
	}
	if a.must != 0 && under.count[a.must] == 0 {
		wrong("no answer has status %d", a.must)
	}
	if r.MostMB > 0 && r.PeakMB > r.MostMB {
		wrong("%.0f MB, more than the %.0f that serve prints", r.PeakMB, r.MostMB)
	}
	if most := float64(o.limit.bytes) / 1e6; most > 0 && r.PeakMB > most {
		wrong("%.0f MB, more than the %.0f of --memory", r.PeakMB, most)
	}
	if r.Health > 1000 {
		wrong("/health took %.1f s", r.Health/1000)
	}
	if n := len(under.Failed); n > 0 {
		wrong("the client failed %d of %d times: %s", n, n+len(under.Whole), under.Failed[0])
	}
	if len(under.Whole) == 0 {
		wrong("the client starved")
	}
	if len(base.Whole) == 0 {
		wrong("the ordinary load of this size starves the client too")
		return r
	}
	if r.Under.P50 > max(o.p50*r.Base.P50, o.floor50) {
		wrong("median %.1f times", r.Under.P50/r.Base.P50)
		r.slow++
	}
	if r.Under.P99 > max(o.p99*r.Base.P99, o.floor99) {
		wrong("p99 %.1f times", r.Under.P99/r.Base.P99)
		r.slow++
	}
	return r
}
