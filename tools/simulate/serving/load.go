package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A Request of a trace.
type Request struct {
	At       time.Duration // after the start, or after the end of request After
	After    int           // 1 + the index of the request that it follows; 0: none
	Client   int
	Class    string // results are also reported per class
	Priority int
	Prompt   int // tokens
	Output   int // tokens
	Text     int // the prompts of requests with the same Text are prefixes of each other
	Shared   int // the first Shared tokens are equal for all requests with the same Stem
	Stem     int
}

// A Load is a kind of traffic: the arrivals for a seed, the service's settings, and its
// latency targets.
type Load struct {
	Name, About string
	Requests    func(r *rand.Rand) []Request
	Sequences   int     // maximum live sequences
	Pages       int     // of the KV cache
	Slow        float64 // factor on the measured model's step time; 0: 1
	Accept      float64 // probability that a drafted token is right; 0: nothing is drafted

	TTFT    time.Duration // target TTFT of requests with prompts up to Short; 0: none, because the load exceeds the capacity
	Short   int           // 0: of all requests
	Polite  string        // the TTFT target applies to requests of this class; "": to all
	ITL     time.Duration // target inter-token latency of a request
	Starved time.Duration // TTFT above which a request counts as starved
}

const (
	ms  = time.Millisecond
	sec = time.Second
)

// Loads are the kinds of traffic for the comparison of policies.
var Loads = []Load{
	{Name: "poisson", About: "independent requests at 70 % of what the service can do", Requests: func(r *rand.Rand) []Request { return poisson(r, 200, 6.5) },
		Sequences: 16, Pages: 512, TTFT: sec, ITL: 60 * ms, Starved: 10 * sec},
	{Name: "overload", About: "independent requests at 120 % of it", Requests: func(r *rand.Rand) []Request { return poisson(r, 200, 11) },
		Sequences: 16, Pages: 512, ITL: 60 * ms, Starved: 10 * sec},
	{Name: "bursts", About: "bursts of 4 to 20 requests within 8 ms", Requests: func(r *rand.Rand) []Request { return bursts(r, 1) },
		Sequences: 16, Pages: 512, ITL: 60 * ms, Starved: 10 * sec},
	{Name: "long-short", About: "prompts of 1,000 to 1,600 tokens next to chats of 20 to 60", Requests: longShort,
		Sequences: 16, Pages: 512, TTFT: 200 * ms, Short: 64, ITL: 60 * ms, Starved: 6 * sec},
	{Name: "agents", About: "12 agents of 6 turns behind one system prompt of 768 tokens", Requests: agents,
		Sequences: 16, Pages: 512, TTFT: sec, ITL: 60 * ms, Starved: 10 * sec},
	{Name: "clients", About: "1,000 clients within 90 s, every tenth with a long prompt", Requests: clients,
		Sequences: 32, Pages: 1024, TTFT: sec, Short: 64, ITL: 60 * ms, Starved: 30 * sec},
	{Name: "greedy", About: "one client asks 60 things at once, nine others one after another", Requests: greedy,
		Sequences: 16, Pages: 512, Polite: "loop", TTFT: 3 * sec, ITL: 60 * ms, Starved: 10 * sec},
	{Name: "urgent", About: "a flow of urgent requests that would fill the service, and a few others", Requests: urgent,
		Sequences: 8, Pages: 256, ITL: 60 * ms, Starved: 12 * sec},
	{Name: "one", About: "one client that asks again at once", Requests: func(r *rand.Rand) []Request { return loops(r, 1, 20) },
		Sequences: 16, Pages: 512, TTFT: sec, ITL: 60 * ms, Starved: 10 * sec},
	{Name: "waves-8", About: "8 clients that ask again at once, all requests alike", Requests: func(r *rand.Rand) []Request { return waves(r, 8, 6) },
		Sequences: 16, Pages: 512, TTFT: sec, ITL: 60 * ms, Starved: 10 * sec},
	{Name: "waves-16", About: "16 of them", Requests: func(r *rand.Rand) []Request { return waves(r, 16, 6) },
		Sequences: 16, Pages: 512, TTFT: sec, ITL: 60 * ms, Starved: 10 * sec},
	{Name: "slow", About: "independent requests at 90 % of what a model can do whose steps take four times as long", Requests: func(r *rand.Rand) []Request { return poisson(r, 120, 2) },
		Sequences: 16, Pages: 512, Slow: 4, TTFT: 6 * sec, ITL: 240 * ms, Starved: 10 * sec},
	{Name: "slow-bursts", About: "bursts of 4 to 20 requests on that model", Requests: func(r *rand.Rand) []Request { return bursts(r, 4) },
		Sequences: 16, Pages: 512, Slow: 4, ITL: 240 * ms, Starved: 20 * sec},
	{Name: "few-pages", About: "independent requests with a quarter of the KV-cache pages", Requests: func(r *rand.Rand) []Request { return poisson(r, 150, 5) },
		Sequences: 16, Pages: 48, TTFT: sec, ITL: 60 * ms, Starved: 10 * sec},
	{Name: "drafts", About: "independent requests with drafts of which 3 in 5 tokens are right", Requests: func(r *rand.Rand) []Request { return poisson(r, 150, 5) },
		Sequences: 16, Pages: 512, Accept: 0.6, TTFT: sec, ITL: 60 * ms, Starved: 10 * sec},
	{Name: "few-drafts", About: "three clients with drafts of which 3 in 5 tokens are right, one after another", Requests: func(r *rand.Rand) []Request { return loops(r, 3, 12) },
		Sequences: 16, Pages: 512, Accept: 0.6, TTFT: sec, ITL: 60 * ms, Starved: 10 * sec},
}

// The fractions of first tokens and of other tokens that may miss the targets.
const (
	mayLateTTFT = 0.05
	mayLateITL  = 0.01
)

// FindLoad returns the load called name.
func FindLoad(name string) (Load, error) {
	names := ""
	for _, l := range Loads {
		if l.Name == name {
			return l, nil
		}
		names += " " + l.Name
	}
	return Load{}, fmt.Errorf("no load %q; there are:%s", name, names)
}

// between returns a random number from least to most.
func between(r *rand.Rand, least, most int) int { return least + r.IntN(most-least+1) }

// poisson returns n requests with Poisson arrivals at rate per second.
func poisson(r *rand.Rand, n int, rate float64) (list []Request) {
	at := 0.0
	for i := range n {
		at += r.ExpFloat64() / rate
		list = append(list, Request{At: seconds(at), Client: i % 40, Prompt: between(r, 32, 256), Output: between(r, 16, 96), Text: i, Stem: i})
	}
	return list
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// bursts returns bursts of requests of similar length that arrive within 8 ms, with
// random pauses between bursts.
func bursts(r *rand.Rand, pause float64) (list []Request) {
	at := 0.0
	for range 14 {
		words, output := between(r, 48, 160), between(r, 32, 64)
		for range between(r, 4, 20) {
			i := len(list)
			list = append(list, Request{At: seconds(at + 8e-3*r.Float64()), Client: i % 16, Prompt: words + r.IntN(8), Output: output, Text: i, Stem: i})
		}
		at += pause * (1 + 2*r.Float64())
	}
	slices.SortStableFunc(list, func(a, b Request) int { return int(a.At - b.At) })
	return list
}

// longShort returns short chats and, about once per second, a long document.
func longShort(r *rand.Rand) (list []Request) {
	for at := 0.0; at < 20; {
		at += r.ExpFloat64() / 6
		i := len(list)
		q := Request{At: seconds(at), Client: i % 20, Class: "short", Prompt: between(r, 20, 60), Output: between(r, 16, 48), Text: i, Stem: i}
		if r.IntN(10) == 0 {
			q.Class, q.Prompt, q.Output = "long", between(r, 1000, 1600), 32
		}
		list = append(list, q)
	}
	return list
}

// agents returns clients that send one request after another; each continues the
// previous text.
func agents(r *rand.Rand) (list []Request) {
	for a := range 12 {
		tokens, after := 768, 0
		at := seconds(1.5 * r.Float64())
		for range 6 {
			tokens += between(r, 24, 120)
			q := Request{At: at, After: after, Client: a, Prompt: tokens, Output: between(r, 24, 80), Text: a, Shared: 768, Stem: 1}
			list = append(list, q)
			tokens += q.Output
			after, at = len(list), seconds(0.05+0.3*r.Float64())
		}
	}
	return list
}

// clients returns many clients with one request each.
func clients(r *rand.Rand) (list []Request) {
	for i := range 1000 {
		q := Request{At: seconds(90 * r.Float64()), Client: i, Class: "short", Prompt: between(r, 16, 64), Output: between(r, 8, 48), Text: i, Stem: i}
		if i%10 == 0 {
			q.Class, q.Prompt = "long", between(r, 300, 900)
		}
		list = append(list, q)
	}
	slices.SortStableFunc(list, func(a, b Request) int { return int(a.At - b.At) })
	return list
}

// loops returns clients that send the next request as soon as the last one ends.
func loops(r *rand.Rand, n, times int) (list []Request) {
	for c := range n {
		after := 0
		for range times {
			i := len(list)
			list = append(list, Request{After: after, Client: c, Class: "loop", Prompt: between(r, 32, 160), Output: between(r, 24, 64), Text: i, Stem: i})
			after = len(list)
		}
	}
	return list
}

// waves returns clients that send the next request as soon as the last one ends, all
// with the same number of tokens.
func waves(r *rand.Rand, n, times int) []Request {
	list := loops(r, n, times)
	for i := range list {
		list[i].At = seconds(2e-3 * r.Float64())
		list[i].Prompt, list[i].Output = 90+r.IntN(12), 64
	}
	return list
}

// greedy returns one client with many concurrent requests and others with one each.
func greedy(r *rand.Rand) []Request {
	list := loops(r, 9, 8)
	for range 60 {
		i := len(list)
		list = append(list, Request{At: 300 * ms, Client: 9, Class: "greedy", Prompt: between(r, 64, 256), Output: between(r, 32, 96), Text: i, Stem: i})
	}
	return list
}

// urgent returns urgent requests above the capacity, with a few others among them.
func urgent(r *rand.Rand) []Request {
	list := poisson(r, 300, 10)
	for i := range list {
		list[i].Class = "urgent"
		if i%25 == 7 {
			list[i].Class, list[i].Priority = "other", 1
		}
	}
	return list
}
