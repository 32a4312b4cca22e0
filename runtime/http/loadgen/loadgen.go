// Package loadgen sends requests to an OpenAI-compatible server and measures what
// clients observe: time to first token (TTFT), inter-token latency (ITL), and goodput
// under limits on these.
package loadgen

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// A Config describes the load.
type Config struct {
	URL         string // of the server, without /v1
	Key         string
	Models      []string // names that requests take in turn; none: no name
	Requests    int      // number of requests; ignored with a trace
	Concurrency int      // maximum concurrent requests; 0: unlimited
	Rate        float64  // requests per second with Poisson arrivals; 0: each client sends its next request at once
	Prompt      int      // words per prompt
	Output      int      // tokens per answer
	Seed        uint64
	Trace       []Arrival // requests to send in place of random ones

	MaxTTFT time.Duration // goodput counts requests with at most this TTFT; 0: no limit
	MaxITL  time.Duration // and at most this average ITL; 0: no limit
}

// An Arrival is a request of a trace.
type Arrival struct {
	At        float64 `json:"at"`     // seconds after the start of the run
	Text      string  `json:"prompt"` // "": Words random words
	Words     int     `json:"prompt_words"`
	MaxTokens int     `json:"max_tokens"`
	Class     string  `json:"class"`          // the report has a section per class
	Stop      float64 `json:"disconnect_at"`  // seconds until the client disconnects; 0: never
	Chat      bool    `json:"chat,omitempty"` // send it to /v1/chat/completions
}

// A Result holds the measurements of one request.
type Result struct {
	Class   string
	Start   time.Duration // after the start of the run
	TTFT    time.Duration
	ITL     []time.Duration
	Latency time.Duration // until the end of the answer
	Tokens  int
	Status  int
	Err     error
}

// Run sends all requests and returns a report. It fails if no request succeeds.
func Run(ctx context.Context, c Config) (*Report, error) {
	arrivals := c.Trace
	if arrivals == nil {
		arrivals = c.arrivals()
	}
	if len(arrivals) == 0 {
		return nil, errors.New("the load has no requests")
	}
	workers := c.Concurrency
	if workers <= 0 || workers > len(arrivals) {
		workers = len(arrivals)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers, MaxConnsPerHost: 0}}
	defer client.CloseIdleConnections()
	results := make([]Result, len(arrivals))
	next := make(chan int)
	var wg sync.WaitGroup
	start := time.Now()
	for range workers {
		wg.Go(func() {
			for i := range next {
				results[i] = c.ask(ctx, client, arrivals[i], uint64(i), start)
			}
		})
	}
	for i, a := range arrivals {
		if wait := time.Until(start.Add(time.Duration(a.At * float64(time.Second)))); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := c.report(results, time.Since(start))
	if r.Answered == 0 {
		for _, x := range results {
			if x.Err != nil {
				return nil, fmt.Errorf("no request was answered; the first failed with: %w", x.Err)
			}
		}
	}
	return r, nil
}

// arrivals returns the requests of a load without a trace.
func (c *Config) arrivals() []Arrival {
	rng := rand.New(rand.NewPCG(c.Seed, 1))
	list := make([]Arrival, c.Requests)
	at := 0.0
	for i := range list {
		list[i] = Arrival{At: at, Words: c.Prompt, MaxTokens: c.Output}
		if c.Rate > 0 {
			at += rng.ExpFloat64() / c.Rate
		}
	}
	return list
}
