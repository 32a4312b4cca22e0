package loadgen

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// A Report summarizes a run. Times are in milliseconds.
type Report struct {
	URL         string  `json:"url"`
	Concurrency int     `json:"concurrency,omitempty"`
	Rate        float64 `json:"rate,omitempty"`
	Requests    int     `json:"requests"`
	Answered    int     `json:"answered"`
	Failed      int     `json:"failed"`
	Seconds     float64 `json:"seconds"`
	Tokens      int     `json:"tokens"`
	TokS        float64 `json:"tok_s"` // sum over all requests
	RequestsS   float64 `json:"requests_s"`
	Goodput     float64 `json:"goodput"` // requests per second within the limits
	TTFT        Spread  `json:"ttft_ms"`
	ITL         Spread  `json:"itl_ms"`
	Latency     Spread  `json:"latency_ms"`

	Classes  map[string]*Report `json:"classes,omitempty"`
	Statuses map[int]int        `json:"statuses,omitempty"`
	results  []Result
}

// A Spread holds percentiles of times, in milliseconds.
type Spread struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// spread computes percentiles by the nearest-rank method.
func spread(list []time.Duration) (s Spread) {
	if len(list) == 0 {
		return s
	}
	slices.Sort(list)
	at := func(p float64) float64 {
		return float64(list[max(0, int(math.Ceil(p*float64(len(list))))-1)].Microseconds()) / 1000
	}
	return Spread{at(.5), at(.9), at(.95), at(.99), at(1)}
}

// report summarizes all results and those of each class.
func (c *Config) report(results []Result, took time.Duration) *Report {
	r := c.sum(results, took)
	classes := map[string][]Result{}
	for _, x := range results {
		if x.Class != "" {
			classes[x.Class] = append(classes[x.Class], x)
		}
	}
	for name, list := range classes {
		if r.Classes == nil {
			r.Classes = map[string]*Report{}
		}
		r.Classes[name] = c.sum(list, took)
	}
	return r
}

func (c *Config) sum(results []Result, took time.Duration) *Report {
	r := &Report{URL: c.URL, Concurrency: c.Concurrency, Rate: c.Rate, Requests: len(results), Seconds: took.Seconds(), Statuses: map[int]int{}, results: results}
	var ttft, itl, latency []time.Duration
	good := 0
	for _, x := range results {
		r.Statuses[x.Status]++
		r.Tokens += x.Tokens
		if x.Err != nil {
			r.Failed++
			continue
		}
		r.Answered++
		ttft, itl, latency = append(ttft, x.TTFT), append(itl, x.ITL...), append(latency, x.Latency)
		if c.within(x) {
			good++
		}
	}
	r.TTFT, r.ITL, r.Latency = spread(ttft), spread(itl), spread(latency)
	r.TokS = float64(r.Tokens) / r.Seconds
	r.RequestsS, r.Goodput = float64(r.Answered)/r.Seconds, float64(good)/r.Seconds
	return r
}

// within reports whether a request kept the limits.
func (c *Config) within(x Result) bool {
	if c.MaxTTFT > 0 && x.TTFT > c.MaxTTFT {
		return false
	}
	if c.MaxITL > 0 && len(x.ITL) > 0 {
		sum := time.Duration(0)
		for _, d := range x.ITL {
			sum += d
		}
		return sum <= c.MaxITL*time.Duration(len(x.ITL))
	}
	return true
}

// Print writes a report as text.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%d requests, %d answered, %d failed in %.1f s; %.1f tok/s, %.2f requests/s, goodput %.2f/s\n",
		r.Requests, r.Answered, r.Failed, r.Seconds, r.TokS, r.RequestsS, r.Goodput)
	fmt.Fprintf(w, "%-22s %9s %9s %9s %9s %9s\n", "ms", "p50", "p90", "p95", "p99", "max")
	for _, line := range []struct {
		name string
		s    Spread
	}{{"TTFT", r.TTFT}, {"ITL", r.ITL}, {"latency", r.Latency}} {
		fmt.Fprintf(w, "%-22s %9.1f %9.1f %9.1f %9.1f %9.1f\n", line.name, line.s.P50, line.s.P90, line.s.P95, line.s.P99, line.s.Max)
	}
}
