//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

var small = obj{"prompt": "Once upon a time", "max_tokens": 8}

// Statuses that may also end a request that stays incomplete.
var (
	slowly    = []int{0, 200, 400, 408, 413, 429, 431}
	forbidden = []int{400, 401, 403, 415, 421}
)

// connectionAttacks hold or break connections.
func connectionAttacks() []attack {
	return []attack{
		{name: "idle-4200", sends: "4,200 connections that say nothing", workers: 4200, like: one, expect: []int{0, 400, 408}, bare: true, do: func(info) act { return hold(same(nil)) }},
		{name: "idle-2000-keyless", sends: "2,000 connections that say nothing, without keys", workers: 2000, keyless: true, like: one, expect: []int{0, 400, 408}, bare: true,
			do: func(info) act { return hold(same(nil)) }},
		{name: "slow-head", sends: "a head, one byte a second", workers: 1000, like: one, expect: slowly, bare: true, do: func(info) act {
			return dribble(fixed(completions, small), 20, 1, time.Second)
		}},
		{name: "slow-body", sends: "a body, one byte a second", workers: 1000, like: one, expect: slowly, do: func(info) act {
			return dribble(fixed(completions, obj{"prompt": words(100, 1)}), 250, 1, time.Second)
		}},
		{name: "dribbled-4mb", sends: "bodies of 4 MB of which the last bytes do not come", workers: 200, like: many, expect: slowly, do: func(info) act {
			data := post(completions, []byte(`{"prompt":"`+fill("a", largest)+`"}`))
			return dribble(same(data), len(data)-600, 1, time.Second)
		}},
		{name: "half", sends: "half requests, then the client goes", workers: 64, pause: refused, like: many, expect: slowly, do: func(info) act {
			data := post(completions, encode(small))
			return leave(same(data[:len(data)-10]), time.Millisecond)
		}},
		{name: "open-close", sends: "connections that open and close", workers: 64, pause: refused, like: many, expect: slowly, do: func(info) act { return leave(same(nil), 0) }},
		{name: "no-body", sends: "Expect: 100-continue and no body", workers: 500, like: one, expect: slowly, do: func(info) act {
			return ask(same(raw("POST "+completions+" HTTP/1.1", nil, "Content-Length: 4000000", "Expect: 100-continue")))
		}},
	}
}

// bodyAttacks send request bodies in unusual ways.
func bodyAttacks() []attack {
	chunked := func(piece int) request {
		var b bytes.Buffer
		for body := encode(obj{"prompt": "a", "max_tokens": 1, "user": fill("a", 250), "stop": []string{fill("b", 200000)}}); len(body) > 0; {
			n := min(piece, len(body))
			fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
			body = body[n:]
		}
		b.WriteString("0\r\n\r\n")
		return same(raw("POST "+completions+" HTTP/1.1", b.Bytes(), "Transfer-Encoding: chunked"))
	}
	return []attack{
		{name: "tiny-chunks", sends: "bodies in chunks of a byte", workers: 16, pause: refused, like: few, expect: slowly, do: func(info) act { return ask(chunked(1)) }},
		{name: "endless-chunks", sends: "chunked bodies without an end", workers: 64, like: few, expect: slowly, do: func(info) act {
			data := raw("POST "+completions+" HTTP/1.1", []byte(strings.Repeat("10000\r\n"+fill("a", 1<<16)+"\r\n", 128)), "Transfer-Encoding: chunked")
			return dribble(same(data), 1<<16, 1<<16, 50*time.Millisecond)
		}},
		{name: "gzip-bomb", sends: "4 MB of gzip that hold 1 GB", workers: 16, pause: refused, like: few, expect: []int{400, 413, 415, 429}, do: func(info) act {
			var b bytes.Buffer
			z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
			zeros := make([]byte, 1<<20)
			for range 64 {
				z.Write(zeros)
			}
			z.Close()
			return ask(same(post(completions, bytes.Repeat(b.Bytes(), max(1, largest/b.Len())), "Content-Encoding: gzip")))
		}},
		{name: "too-large", sends: "bodies of 64 MB", workers: 8, pause: refused, like: few, expect: []int{0, 400, 413, 429}, do: func(info) act {
			return ask(same(raw("POST "+completions+" HTTP/1.1", make([]byte, 64<<20))))
		}},
		{name: "garbage", sends: "bytes that are no HTTP", workers: 64, pause: refused, like: few, expect: slowly, bare: true, do: func(info) act {
			return ask(func(*worker) []byte {
				b := make([]byte, 512)
				for i := range b {
					b[i] = byte(rand.IntN(256))
				}
				return append(b, "\r\n\r\n"...)
			})
		}},
	}
}

// readerAttacks do not read the response.
func readerAttacks() []attack {
	long := func(in info) request {
		return in.fresh(16, obj{"max_tokens": in.Context, "stream": true, "logprobs": 20, "ignore_eos": true})
	}
	return []attack{
		{name: "never-read", sends: "long streams that nobody reads", workers: 64, like: many, do: func(in info) act { return hold(long(in)) }},
		{name: "slow-read", sends: "long streams, read 100 bytes at a time", workers: 64, like: many, do: func(in info) act { return sip(long(in), 100, 100*time.Millisecond) }},
		{name: "never-read-large", sends: "whole answers of megabytes that nobody reads", workers: 64, like: many, do: func(in info) act {
			return hold(same(post("/tokenize", []byte(`{"with_pieces":true,"content":"`+fill("a b", 1<<20)+`"}`))))
		}},
		{name: "pipelined", sends: "200 requests on a connection before the first answer", workers: 16, like: few, do: func(info) act {
			one := bytes.Replace(post(completions, encode(small)), []byte("Connection: close\r\n"), nil, 1)
			return ask(same(append(bytes.Repeat(one, 200), post(completions, encode(small))...)))
		}},
	}
}

// httpAttacks are attacks against any web server.
func httpAttacks() []attack {
	get := func(path string, headers ...string) request {
		return same(raw("GET "+path+" HTTP/1.1", nil, headers...))
	}
	return []attack{
		{name: "foreign-origin", sends: "a foreign page's text/plain POST, without keys", workers: 16, pause: refused, keyless: true, like: few, expect: forbidden, do: func(info) act {
			return ask(same(post(completions, encode(small), "Origin: http://evil.example", "Content-Type: text/plain")))
		}},
		{name: "foreign-host", sends: "a foreign Host (DNS rebinding), without keys", workers: 16, pause: refused, keyless: true, like: few, expect: forbidden, do: func(info) act {
			return ask(same(bytes.Replace(post(completions, encode(small)), []byte("Host: 127.0.0.1"), []byte("Host: evil.example"), 1)))
		}},
		{name: "wrong-keys", sends: "another wrong key in each request", workers: 64, pause: refused, like: few, expect: []int{401, 429}, must: 401, do: func(info) act {
			return ask(func(w *worker) []byte {
				return post(completions, encode(small), fmt.Sprintf("Authorization: Bearer guess-%d-%d", w.n, w.seq))
			})
		}},
		{name: "wrong-keys-4mb", sends: "4 MB with a wrong key", workers: 64, pause: refused, like: few, expect: []int{0, 401, 413, 429}, do: func(info) act {
			return ask(same(post(completions, []byte(`{"prompt":"`+fill("a", largest)+`"}`), "Authorization: Bearer guess")))
		}},
		{name: "metrics", sends: "GET /metrics", workers: 64, pause: refused, like: few, expect: []int{200, 429}, do: func(info) act { return ask(get("/metrics")) }},
		{name: "not-found", sends: "GET of paths that are not there", workers: 64, pause: refused, like: few, expect: []int{404, 429}, must: 404, do: func(info) act { return ask(get("/v1/nothing/" + fill("a", 4000))) }},
		{name: "long-head", sends: "a header of 1 MB", workers: 64, pause: refused, like: few, expect: []int{0, 400, 429, 431}, bare: true, do: func(info) act {
			return ask(get("/v1/models", "X-Long: "+fill("a", 1<<20)))
		}},
		{name: "many-headers", sends: "3,000 headers", workers: 64, pause: refused, like: few, expect: []int{0, 200, 400, 429, 431}, bare: true, do: func(info) act {
			return ask(get("/v1/models", strings.TrimSuffix(fill("X-A: b\r\n", 24000), "\r\n")))
		}},
		{name: "http-1.0", sends: "HTTP/1.0 without a Host", workers: 64, pause: refused, like: few, expect: []int{200, 400, 429, 505}, bare: true, do: func(info) act {
			return ask(same([]byte("GET /v1/models HTTP/1.0\r\nAuthorization: Bearer " + evilKey + "\r\n\r\n")))
		}},
		{name: "log-injection", sends: "line ends in X-Request-Id and in the path", workers: 16, pause: refused, like: few, expect: []int{200, 400, 404, 429}, bare: true, after: cleanLog, do: func(info) act {
			return mixed(ask(get("/health%0aINJECTED", "X-Request-Id: a\x0bINJECTED")), ask(get("/health?a=%0d%0aINJECTED", "X-Request-Id: a\"\\nINJECTED=1 level=ERROR")))
		}},
		{name: "smuggling", sends: "two lengths of one body", workers: 16, pause: refused, like: few, expect: []int{0, 200, 400, 429, 501}, bare: true, do: func(info) act {
			return ask(same(raw("POST "+completions+" HTTP/1.1", []byte("0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), "Transfer-Encoding: chunked, identity", "Content-Length: 4")))
		}},
	}
}

// cleanLog checks that the attacker could not write lines into the service's
// log.
func cleanLog(s *service) error {
	text, err := os.ReadFile(s.log)
	if err == nil && bytes.Contains(text, []byte("\nINJECTED")) {
		err = errors.New("the attacker wrote lines into the log")
	}
	return err
}
