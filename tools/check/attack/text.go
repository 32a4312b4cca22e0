//go:build linux

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
)

// largest is just below the service's default --max-body.
const largest = 4<<20 - 512

// fill repeats a text up to the maximum body.
func fill(text string, n int) string { return strings.Repeat(text, n/len(text)) }

// chars returns random characters of a range, up to a number of bytes.
func chars(from, to rune, n int) string {
	var b strings.Builder
	b.Grow(n)
	for b.Len() < n-4 {
		b.WriteRune(from + rune(rand.IntN(int(to-from))))
	}
	return b.String()
}

// everywhere sends a text, as JSON, to every endpoint with text input.
func everywhere(text string) act {
	var list []act
	for _, e := range []struct{ path, head, tail string }{
		{completions, `{"max_tokens":1,"prompt":"`, `"}`},
		{conversations, `{"max_tokens":1,"messages":[{"role":"user","content":"`, `"}]}`},
		{"/tokenize", `{"content":"`, `"}`},
		{"/v1/embeddings", `{"input":"`, `"}`},
	} {
		list = append(list, ask(same(post(e.path, []byte(e.head+text+e.tail)))))
	}
	return mixed(list...)
}

// textAttacks are prompts of 4 MB, which exceed every context.
func textAttacks() []attack {
	row := func(name, what string, text func() string) attack {
		return attack{name: "text-" + name, sends: "4 MB of " + what + ", to all endpoints that read texts", workers: 16, pause: refused, like: few,
			expect: []int{200, 400, 404, 413, 429}, do: func(info) act { return everywhere(text()) }}
	}
	return []attack{
		row("one-word", "one long word", func() string { return fill("a", largest) }),
		row("spaces", "spaces", func() string { return fill(" ", largest) }),
		row("newlines", "line ends", func() string { return fill(`\n`, largest) }),
		row("cjk", "Chinese characters", func() string { return chars(0x4e00, 0x9fff, largest) }),
		row("unicode", "random characters of all planes", func() string { return chars(0x10000, 0x1fbff, largest) }),
		row("half-surrogates", "escapes of half characters", func() string { return fill(`\ud800`, largest) }),
		row("accents", "letters with thousands of accents", func() string { return fill("a"+strings.Repeat("\u0301", 5000), largest) }),
		row("digits", "digits", func() string { return fill("9081726354", largest) }),
		row("words", "words", func() string { return fill("the dog saw a cat and went home again ", largest) }),
		{name: "invalid-utf8", sends: "4 MB of bytes that are no UTF-8", workers: 16, pause: refused, like: few, expect: []int{400, 413, 429},
			do: func(info) act { return everywhere(fill("\xff\xc3", largest)) }},
		{name: "detokenize", sends: "600,000 ids to /detokenize", workers: 16, pause: refused, like: few, do: func(info) act {
			return ask(same(post("/detokenize", []byte(`{"tokens":[`+fill("100,", largest-8)+`100]}`))))
		}},
		{name: "tokenize-pieces", sends: "4 MB to /tokenize with_pieces", workers: 16, pause: refused, like: few, do: func(info) act {
			return ask(same(post("/tokenize", []byte(`{"with_pieces":true,"content":"`+fill("a b", largest-64)+`"}`))))
		}},
		{name: "embeddings-2048", sends: "2,048 texts to /v1/embeddings", workers: 16, pause: refused, like: fewAsk, expect: []int{200, 400, 404, 413, 429}, do: func(info) act {
			list := make([]string, 2048)
			for i := range list {
				list[i] = words(100, uint64(i))
			}
			return ask(fixed("/v1/embeddings", obj{"input": list}))
		}},
	}
}

// storeAttacks fill the memory of stored responses.
func storeAttacks() []attack {
	return []attack{{name: "responses-stored", sends: "responses with 200 KB of tools, which are stored", workers: 16, like: few, do: func(info) act {
		tool := obj{"type": "function", "name": "f", "description": fill("ab", 200<<10), "parameters": obj{}}
		return ask(fixed("/v1/responses", obj{"input": "a", "max_output_tokens": 1, "tools": []any{tool}, "tool_choice": "none"}))
	}}}
}

// jsonAttacks are bodies that grow when they are parsed.
func jsonAttacks() []attack {
	bodies := func(name, what, path string, body func() []byte) attack {
		return attack{name: "json-" + name, sends: "4 MB of " + what, workers: 16, pause: refused, like: few, do: func(info) act { return ask(same(post(path, body()))) }}
	}
	list := func(head, item, tail string) func() []byte {
		return func() []byte {
			return []byte(head + strings.TrimSuffix(fill(item, largest-len(head)-len(tail)), ",") + tail)
		}
	}
	return []attack{
		bodies("deep", "[[[[…", completions, list(`{"prompt":`, "[", "")),
		bodies("wide", "[[],[],…", completions, list(`{"prompt":[`, "[],", "]}")),
		bodies("numbers", "numbers as a prompt", completions, list(`{"max_tokens":1,"prompt":[`, "20,", "]}")),
		bodies("texts", "one-letter prompts", completions, list(`{"max_tokens":1,"prompt":[`, `"a",`, "]}")),
		bodies("messages", "{} as messages", conversations, list(`{"messages":[`, "{},", "]}")),
		bodies("parts", "parts of a message", conversations, list(`{"messages":[{"role":"user","content":[`, `{"type":"text","text":"a"},`, "]}]}")),
		bodies("items", "{} as items of a response", "/v1/responses", list(`{"input":[`, "{},", "]}")),
		bodies("blocks", "{} as blocks of a message", "/v1/messages", list(`{"max_tokens":1,"messages":[{"role":"user","content":[`, "{},", "]}]}")),
		bodies("ollama", "{} as Ollama's messages", "/api/chat", list(`{"messages":[`, "{},", "]}")),
		bodies("tools", "{} as tools", conversations, list(`{"messages":[{"role":"user","content":"a"}],"tools":[`, "{},", "]}")),
		bodies("logit-bias", "keys of logit_bias", completions, func() []byte {
			var b bytes.Buffer
			for i := 0; b.Len() < largest-64; i++ {
				fmt.Fprintf(&b, `,"%d":1`, i)
			}
			return []byte(`{"prompt":"a","logit_bias":{` + b.String()[1:] + "}}")
		}),
		bodies("kwargs", "keys of chat_template_kwargs", conversations, func() []byte {
			var b bytes.Buffer
			for i := 0; b.Len() < largest-128; i++ {
				fmt.Fprintf(&b, `,"%x":1`, i)
			}
			return []byte(`{"max_tokens":1,"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{` + b.String()[1:] + "}}")
		}),
		bodies("same-key", "the same key", completions, list("{", `"prompt":"a",`, `"max_tokens":1}`)),
		bodies("strategy", "parameters of a strategy", completions, func() []byte {
			var b bytes.Buffer
			for i := 0; b.Len() < largest-128; i++ {
				fmt.Fprintf(&b, `,"%x":1`, i)
			}
			return []byte(`{"prompt":"a","strategy":{"name":"fsd"` + b.String() + "}}")
		}),
	}
}

// listAttacks fill the lists of a request.
func listAttacks() []attack {
	ids := func(n int, in info) []int {
		list := make([]int, n)
		for i := range list {
			list[i] = 16 + i%(in.Vocab-16)
		}
		return list
	}
	row := func(name, what string, more func(in info) obj) attack {
		return attack{name: name, sends: what + ", long answers", workers: 16, pause: refused, like: fewLong, do: func(in info) act {
			body := more(in)
			body["prompt"], body["max_tokens"], body["ignore_eos"] = words(30, 1), in.scale(512), true
			return ask(fixed(completions, body))
		}}
	}
	return []attack{
		row("logit-bias-4096", "logit_bias of 4,096 tokens", func(in info) obj {
			bias := obj{}
			for i := range min(4096, in.Vocab) {
				bias[fmt.Sprint(i)] = i % 3
			}
			return obj{"logit_bias": bias}
		}),
		row("stop-16", "16 stop texts of 200 KB", func(info) obj {
			list := make([]string, 16)
			for i := range list {
				list[i] = fill(" the dog saw a cat"+fmt.Sprint(i), 200<<10)
			}
			return obj{"stop": list}
		}),
		row("stop-ids", "100,000 stop_token_ids", func(in info) obj { return obj{"stop_token_ids": ids(100000, in)[:100000]} }),
		row("bad-words", "100,000 bad_words_ids", func(in info) obj {
			list := make([][]int, 100000)
			for i, id := range ids(len(list), in) {
				list[i] = []int{id, id, id}
			}
			return obj{"bad_words_ids": list}
		}),
	}
}
