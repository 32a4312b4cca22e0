// Package loadgen asks a service of the OpenAI interface many things at once
// and measures what clients see: time to the first token, time between tokens,
// and how many requests keep given limits of these.
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

// A Config says what to ask and how often.
type Config struct {
	URL         string // of the service, without /v1
	Key         string
	Model       string
	Requests    int     // how many; with a trace: its own
	Concurrency int     // at once, with Rate at most; 0: as many as the rate brings
	Rate        float64 // requests a second, arriving at random (Poisson); 0: each client asks again at once
	Prompt      int     // words of a prompt
	Output      int     // tokens of an answer
	Seed        uint64
	Trace       []Arrival // in place of all that

	FirstLimit   time.Duration // goodput counts requests whose first token comes within it …
	BetweenLimit time.Duration // … and whose tokens follow each other within it, on average; 0: no limit
}

// An Arrival is a request of a trace.
type Arrival struct {
	At        float64 `json:"at"`             // seconds after the start
	Text      string  `json:"prompt"`         // "": Words random ones
	Words     int     `json:"prompt_words"`   //
	MaxTokens int     `json:"max_tokens"`     //
	Class     string  `json:"class"`          // results are also given for each
	Stop      float64 `json:"disconnect_at"`  // seconds after which the client goes; 0: it stays
	Chat      bool    `json:"chat,omitempty"` // as a conversation
}

// A Result is what one request saw.
type Result struct {
	Class   string
	Start   time.Duration // after the run's start
	First   time.Duration // to the first token
	Between []time.Duration
	End     time.Duration // of the whole answer
	Tokens  int
	Status  int
	Err     error
}

// Run asks everything and waits for the answers.
func Run(ctx context.Context, c Config) (*Report, error) {
	arrivals := c.Trace
	if arrivals == nil {
		arrivals = c.arrivals()
	}
	if len(arrivals) == 0 {
		return nil, errors.New("there is nothing to ask")
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

// arrivals are those of the rate, or all at once.
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
