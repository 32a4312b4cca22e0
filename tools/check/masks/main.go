// Command masks measures how long the masks of structured output take. It reads commands,
// one JSON object a line, and writes a result for each. compare.py sends the commands and
// gives the same tokens to other engines.
//
//	go run ./tools/check/masks -vocabulary FILE
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/iflowc/iflowc/runtime/text/grammar"
)

// A command samples a text or measures one.
type command struct {
	Kind   string          `json:"kind"`   // schema, regex or gbnf
	Source json.RawMessage `json:"source"` // a schema or a string
	Seed   uint64          `json:"seed"`
	Tokens int             `json:"tokens"` // maximum length of a sampled text
	Text   []int32         `json:"text"`   // to measure; empty: sample a text
}

// A result of a command. Times are in nanoseconds, one for each token: Cold with a new
// grammar, Warm when the same text follows.
type result struct {
	Text    []int32 `json:"text,omitempty"`
	Ended   bool    `json:"ended,omitempty"`
	Compile int64   `json:"compile,omitempty"`
	Cold    []int64 `json:"cold,omitempty"`
	Warm    []int64 `json:"warm,omitempty"`
}

func main() {
	path := flag.String("vocabulary", "", "file of the tokens: .tiktoken, .gguf, tokenizer.json or a model's folder")
	write := flag.String("write", "", "write the tokens to this .tiktoken file and exit")
	flag.Parse()
	if err := run(*path, *write, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "masks:", err)
		os.Exit(1)
	}
}

func run(path, write string, in io.Reader, out io.Writer) error {
	words, err := readVocabulary(path)
	if err != nil {
		return err
	}
	if write != "" {
		return words.save(write)
	}
	began := time.Now()
	v, err := grammar.NewVocabulary(len(words.words), func(id int32) []byte { return words.words[id] }, []int32{words.eos})
	if err != nil {
		return err
	}
	e := json.NewEncoder(out)
	if err := e.Encode(map[string]any{"tokens": len(words.words), "eos": words.eos, "build": time.Since(began).Nanoseconds()}); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return err
		}
		r, err := c.run(v, words)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Source, err)
		}
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (c *command) run(v *grammar.Vocabulary, words *vocabulary) (*result, error) {
	began := time.Now()
	g, err := c.parse()
	r := &result{Compile: time.Since(began).Nanoseconds()}
	if err != nil {
		return nil, err
	}
	if len(c.Text) == 0 {
		s := &sampler{rng: rand.New(rand.NewPCG(c.Seed, 1)), words: words}
		r.Text, r.Ended, err = s.text(g, v, c.Tokens)
		return r, err
	}
	if r.Cold, err = measure(g, v, c.Text); err != nil {
		return nil, err
	}
	r.Warm, err = measure(g, v, c.Text)
	return r, err
}

// parse compiles the command's grammar.
func (c *command) parse() (*grammar.Grammar, error) {
	var text string
	if c.Kind == "regex" || c.Kind == "gbnf" {
		if err := json.Unmarshal(c.Source, &text); err != nil {
			return nil, err
		}
	}
	switch c.Kind {
	case "schema":
		return grammar.ParseSchema(c.Source)
	case "regex":
		return grammar.ParseRegex(text)
	case "gbnf":
		return grammar.ParseGBNF(text)
	}
	return nil, fmt.Errorf("kind %q: expected schema, regex or gbnf", c.Kind)
}

// measure returns the time of each mask: the first one includes the start of the text,
// the others the acceptance of the token before.
func measure(g *grammar.Grammar, v *grammar.Vocabulary, text []int32) ([]int64, error) {
	times := make([]int64, 0, len(text))
	began := time.Now()
	m, err := grammar.NewMatcher(g, v)
	if err != nil {
		return nil, err
	}
	for i, id := range text {
		if id < 0 || int(id)/64 >= v.Words() {
			return nil, fmt.Errorf("token %d of the text is %d: out of range", i, id)
		}
		mask, err := m.Mask()
		times = append(times, time.Since(began).Nanoseconds())
		if err != nil {
			return nil, err
		}
		if mask[id/64]>>(id%64)&1 == 0 {
			return nil, fmt.Errorf("the mask before token %d of the text does not allow it", i)
		}
		began = time.Now()
		if err := m.Accept(id); err != nil {
			return nil, err
		}
	}
	return times, nil
}
