//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// refused is the pause after a cheap response, so that the flood costs the
// service and not the load generator.
const refused = 10 * time.Millisecond

// samplingAttacks request expensive computations.
func samplingAttacks() []attack {
	fsd := func(n int) func(in info) act {
		return func(in info) act {
			return ask(in.fresh(in.scale(2500), obj{"max_tokens": 1, "strategy": fmt.Sprintf("fsd:n=%d", n)}))
		}
	}
	return []attack{
		{name: "fsd-n-1e6", sends: "2,500 ids, strategy fsd:n=1000000", workers: 1, like: oneRead, do: fsd(1000000)},
		{name: "fsd-n-1e6-leave", sends: "the same; disconnects at once or after 2 s", workers: 1, pause: refused, like: oneRead, do: func(in info) act {
			r := in.fresh(in.scale(2500), obj{"max_tokens": 1, "strategy": "fsd:n=1000000"})
			return mixed(leave(r, 5*time.Millisecond), leave(r, 2*time.Second)) // during prefill, and during sampling
		}},
		{name: "fsd-n-largest", sends: "2,500 ids, fsd with the largest n that is allowed", workers: 16, like: fewRead, check: largestN,
			do: func(in info) act { return fsd(in.LargestN)(in) }},
		{name: "beams-16", sends: "beam:beams=16, long answers", workers: 1, like: ordinary{16, 128, 512}, do: func(in info) act {
			return ask(in.fresh(in.scale(128), obj{"max_tokens": in.scale(512), "strategy": "beam:beams=16", "ignore_eos": true}))
		}},
		{name: "beams-16-many", sends: "the same from 16", workers: 16, like: ordinary{64, 128, 128}, do: func(in info) act {
			return ask(in.fresh(in.scale(128), obj{"max_tokens": in.scale(512), "strategy": "beam:beams=16", "ignore_eos": true}))
		}},
		{name: "odd-numbers", sends: "temperature 1e-320, top_k 9223372036854775807, min_p 1e6", workers: 16, pause: refused, like: few, do: func(in info) act {
			tokens := in.scale(32)
			return mixed(ask(in.fresh(16, obj{"temperature": 1e-320, "max_tokens": tokens})), ask(in.fresh(16, obj{"top_k": 9223372036854775807, "max_tokens": tokens})),
				ask(in.fresh(16, obj{"min_p": 1e6, "max_tokens": tokens})))
		}},
		{name: "mirostat1-pool", sends: "strategy mirostat1:pool_size=1000000", workers: 16, like: fewLong, do: func(in info) act {
			return ask(in.fresh(in.scale(128), obj{"max_tokens": in.scale(512), "strategy": "mirostat1:pool_size=1000000,m=1000000", "ignore_eos": true}))
		}},
		{name: "no-repeat-ngram", sends: "no_repeat_ngram_size 2 with prompts of 2,500 ids", workers: 16, like: ordinary{16, 2500, 64}, do: func(in info) act {
			return ask(in.fresh(in.scale(2500), obj{"max_tokens": in.scale(64), "no_repeat_ngram_size": 2, "repetition_penalty": 1.1, "frequency_penalty": 1}))
		}},
		{name: "top-logprobs", sends: "20 logprobs a token of long answers", workers: 16, like: fewLong, do: func(in info) act {
			return ask(in.fresh(in.scale(128), obj{"max_tokens": in.scale(512), "logprobs": 20, "ignore_eos": true}))
		}},
		{name: "echo-logprobs", sends: "echo with 20 logprobs of prompts of 2,500 ids", workers: 16, like: fewRead, do: func(in info) act {
			return ask(in.fresh(in.scale(2500), obj{"max_tokens": 0, "logprobs": 20, "echo": true}))
		}},
		{name: "context-end", sends: "ignore_eos, no limit but the context's end", workers: 16, like: fewLong, do: func(in info) act {
			return ask(in.fresh(in.scale(128), obj{"max_tokens": in.Context, "ignore_eos": true}))
		}},
		{name: "min-tokens", sends: "min_tokens 1,000,000, logit_bias 100 for token 2", workers: 16, like: fewLong, do: func(in info) act {
			return ask(in.fresh(in.scale(128), obj{"max_tokens": in.Context, "min_tokens": 1000000, "logit_bias": obj{"2": 100}}))
		}},
	}
}

// choiceAttacks request many answers at once.
func choiceAttacks() []attack {
	prompts := func(n int) func(in info) act {
		return func(in info) act {
			return ask(func(*worker) []byte {
				list := make([][]int, n)
				for i := range list {
					list[i] = in.ids(in.scale(64))
				}
				return post(completions, encode(obj{"prompt": list, "max_tokens": in.scale(128), "ignore_eos": true}))
			})
		}
	}
	return []attack{
		{name: "prompts-145", sends: "145 prompts in one request", workers: 1, like: crowd, do: prompts(145)},
		{name: "prompts-256", sends: "256 prompts in one request", workers: 1, like: crowd, do: prompts(256)},
		{name: "prompts-256-many", sends: "256 prompts in each request", workers: 8, like: fullHall, do: prompts(256)},
		{name: "n-128", sends: "n 128, long answers", workers: 1, pause: refused, like: crowd, do: func(in info) act {
			return ask(in.fresh(in.scale(64), obj{"n": 128, "max_tokens": in.scale(512), "ignore_eos": true}))
		}},
		{name: "n-16-many", sends: "n 16, long answers", workers: 16, like: fullHall, do: func(in info) act {
			return ask(in.fresh(in.scale(64), obj{"n": 16, "max_tokens": in.scale(512), "ignore_eos": true}))
		}},
	}
}

// shareAttacks exceed the client's share.
func shareAttacks() []attack {
	return []attack{
		{name: "priority", sends: "priority -100, long answers", workers: 64, pause: refused, like: many, expect: []int{403}, do: func(in info) act {
			return ask(in.fresh(in.scale(128), obj{"max_tokens": in.scale(512), "priority": -100, "ignore_eos": true}))
		}},
		{name: "users", sends: "another user in each request", workers: 64, like: many, do: func(in info) act {
			return ask(func(w *worker) []byte {
				return post(completions, encode(obj{"prompt": in.ids(in.scale(128)), "max_tokens": in.scale(32), "ignore_eos": true, "user": fmt.Sprint(w.n, "-", w.seq)}))
			})
		}},
		{name: "users-salts", sends: "another user and cache_salt in each request", workers: 64, like: many, do: func(in info) act {
			return ask(func(w *worker) []byte {
				name := fmt.Sprint(w.n, "-", w.seq)
				return post(completions, encode(obj{"prompt": in.ids(in.scale(128)), "max_tokens": in.scale(32), "ignore_eos": true, "user": name, "cache_salt": name}))
			})
		}},
		{name: "full-queue", sends: "200 long requests at once: the client must not get 429", workers: 200, pause: refused, like: longHall, do: func(in info) act {
			return ask(in.fresh(in.scale(1000), obj{"max_tokens": in.Context, "ignore_eos": true}))
		}},
		{name: "mass-leave", sends: "streams that are left after a moment", workers: 64, like: manyAsk, expect: []int{200, 429}, do: func(in info) act {
			return leave(in.fresh(in.scale(128), obj{"max_tokens": in.Context, "stream": true, "ignore_eos": true}), 100*time.Millisecond)
		}},
		{name: "kv-exhaustion", sends: "prompts and answers that fill the context: pages run out", workers: 64, like: ordinary{64, 2500, 64}, do: func(in info) act {
			return ask(in.fresh(in.Context*3/4, obj{"max_tokens": in.Context, "ignore_eos": true}))
		}},
		{name: "keyless-addresses", sends: "64 long requests of another address, without keys", workers: 64, keyless: true, like: many, do: func(in info) act {
			return ask(in.fresh(in.scale(128), obj{"max_tokens": in.scale(512), "ignore_eos": true}))
		}},
	}
}

// cacheAttacks repeat requests of other clients.
func cacheAttacks() []attack {
	return []attack{
		{name: "cache-probe", sends: "prompts of the client: nothing of them may be known to another key", workers: 16, like: fewAsk, check: probePrompts, do: func(in info) act {
			return ask(in.fresh(in.scale(128), obj{"max_tokens": 1}))
		}},
		{name: "grammar-probe", sends: "schemas of the client: they may not be ready for another key", workers: 16, like: fewAsk, check: probeGrammars, do: func(in info) act {
			return ask(in.fresh(in.scale(128), obj{"max_tokens": 1}))
		}},
		{name: "cache-flush", sends: "prompts that are new each time, so that the cache forgets", workers: 16, like: fewRead, do: func(in info) act {
			return ask(in.fresh(in.scale(2500), obj{"max_tokens": 1}))
		}},
	}
}

// probePrompts looks for the client's prompts.
func probePrompts(s *service) error {
	n := s.info.scale(1000)
	return s.probe(func() obj { return obj{"prompt": s.info.ids(n), "max_tokens": 1} })
}

// probeGrammars looks for the client's schemas.
func probeGrammars(s *service) error {
	return s.probe(func() obj {
		list := make([]string, 400)
		for i := range list {
			list[i] = fmt.Sprintf("%016x", rand.Uint64())
		}
		return obj{"prompt": "a", "max_tokens": 1, "guided_json": obj{"enum": list}}
	})
}

// probe lets the client send a request, and the attacker the same one after it, and a new
// one. A shared cache would show in cached_tokens or in the response time.
func (s *service) probe(make func() obj) error {
	const each = 12
	var known, fresh []float64
	ask := func(key string, body obj) (cached int, took float64, err error) {
		begun := time.Now()
		text, err := s.ask(http.MethodPost, completions, key, body)
		took = ms(time.Since(begun))
		if err != nil {
			return 0, 0, err
		}
		return cachedTokens(text), took, nil
	}
	for range each {
		body, other := make(), make()
		if _, _, err := ask(goodKey, body); err != nil {
			return err
		}
		for _, p := range []struct {
			body  obj
			times *[]float64
		}{{body, &known}, {other, &fresh}} {
			cached, took, err := ask(evilKey, p.body)
			if err != nil {
				return err
			}
			if cached != 0 {
				return fmt.Errorf("cached_tokens tells another key of %d tokens", cached)
			}
			*p.times = append(*p.times, took)
		}
	}
	if at(known, .5) < 0.7*at(fresh, .5) {
		return fmt.Errorf("what another key has sent takes %.1f ms, something new %.1f", at(known, .5), at(fresh, .5))
	}
	return nil
}

// cachedTokens reads usage.prompt_tokens_details.cached_tokens.
func cachedTokens(answer []byte) (n int) {
	_, rest, _ := strings.Cut(string(answer), `"cached_tokens":`)
	fmt.Sscan(strings.TrimRight(rest, "}\n"), &n)
	return n
}

// largestN finds the largest accepted n of fsd, with a prompt too short to do
// harm.
func largestN(s *service) error {
	for n := 1 << 20; n >= 1; n /= 2 {
		_, err := s.ask(http.MethodPost, completions, evilKey, obj{"prompt": s.info.ids(4), "max_tokens": 1, "strategy": fmt.Sprintf("fsd:n=%d", n)})
		if err == nil {
			s.info.LargestN = n
			return nil
		}
	}
	return fmt.Errorf("no n of fsd is accepted")
}
