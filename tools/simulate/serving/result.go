package main

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// A Summary holds the metrics of some requests of a run. Times are in milliseconds.
type Summary struct {
	Requests   int     `json:"requests"`
	TTFT       Spread  `json:"ttft_ms"`
	ITL        Spread  `json:"itl_ms"`
	LateTTFT   float64 `json:"late_ttft"`  // fraction of requests that miss the TTFT target
	LateITL    float64 `json:"late_itl"`   // fraction of tokens that miss the ITL target
	Starved    int     `json:"starved"`    // requests with a TTFT above the limit
	Throughput float64 `json:"throughput"` // tokens per second
}

// A Class is the summary of a class of requests.
type Class struct {
	Name string `json:"name"`
	Summary
}

// A Result is the result of a run.
type Result struct {
	Load      string  `json:"load"`
	Policy    string  `json:"policy"`
	Seconds   float64 `json:"seconds"` // of virtual time
	Steps     int     `json:"steps"`
	Preempted int     `json:"preempted"`
	Fairness  float64 `json:"fairness"` // Jain's index of the clients' tokens per second; 1: all equal
	Summary
	Classes []Class `json:"classes,omitempty"`
}

// A Spread is percentiles of times in milliseconds.
type Spread struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// spread computes percentiles by the nearest rank.
func spread(list []time.Duration) (s Spread) {
	if len(list) == 0 {
		return s
	}
	slices.Sort(list)
	at := func(p float64) float64 {
		return float64(list[max(0, int(math.Ceil(p*float64(len(list))))-1)].Microseconds()) / 1000
	}
	return Spread{at(.5), at(.9), at(.99), at(1)}
}

func (s *simulation) sum(of func(*Request) bool) (sum Summary) {
	var first, gaps []time.Duration
	tokens, lateFirst, lateGap, targets := 0, 0, 0, 0
	for i := range s.trace {
		q, o := &s.trace[i], &s.outcome[i]
		if !of(q) {
			continue
		}
		sum.Requests++
		tokens += o.tokens
		first, gaps = append(first, o.first), append(gaps, o.gaps...)
		if s.load.TTFT > 0 && (s.load.Short == 0 || q.Prompt <= s.load.Short) && (s.load.Polite == "" || q.Class == s.load.Polite) {
			targets++
			lateFirst += count(o.first > s.load.TTFT)
		}
		sum.Starved += count(o.first > s.load.Starved && (s.load.Polite == "" || q.Class == s.load.Polite))
		for _, g := range o.gaps {
			lateGap += count(g > s.load.ITL)
		}
	}
	sum.TTFT, sum.ITL = spread(first), spread(gaps)
	sum.LateTTFT = float64(lateFirst) / float64(max(targets, 1))
	sum.LateITL = float64(lateGap) / float64(max(len(gaps), 1))
	sum.Throughput = float64(tokens) / s.now.Seconds()
	return sum
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fairness returns Jain's index (Σx)² / (n·Σx²), with x a client's tokens per second
// while it had a request.
func (s *simulation) fairness() float64 {
	type client struct {
		tokens     int
		busy, till time.Duration
	}
	clients := map[int]*client{}
	order := make([]int, len(s.trace))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.outcome[a].came, s.outcome[b].came) })
	sum, squares := 0.0, 0.0
	for _, i := range order {
		o := &s.outcome[i]
		c := clients[s.trace[i].Client]
		if c == nil {
			c = &client{}
			clients[s.trace[i].Client] = c
		}
		c.tokens += o.tokens
		if end := o.came + o.end; end > c.till {
			c.busy += end - max(c.till, o.came)
			c.till = end
		}
	}
	for _, id := range slices.Sorted(maps.Keys(clients)) { // sorted, so that sums are reproducible
		x := float64(clients[id].tokens) / clients[id].busy.Seconds()
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / (float64(len(clients)) * squares)
}
