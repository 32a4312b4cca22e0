// Command schemas reads JSON schemas, one per line, and writes random texts
// that their grammars allow. check.py generates the schemas and validates the
// texts with another implementation.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/iflowc/iflowc/runtime/text/grammar"
)

// A task is a line of the input.
type task struct {
	Schema json.RawMessage `json:"schema"`
	Seed   uint64          `json:"seed"`
	Styles []string        `json:"styles"` // one text for each; see weight
	Tokens int             `json:"tokens"` // maximum length of a text
	Texts  []string        `json:"texts"`  // to match
}

// A result is a line of the output.
type result struct {
	Refused string `json:"refused,omitempty"`
	Texts   []text `json:"texts"`
	Matches []bool `json:"matches"`
}

type text struct {
	Style string `json:"style"`
	Text  string `json:"text"`
	Ended bool   `json:"ended"`
	Error string `json:"error,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	words := tokens()
	vocabulary, err := grammar.NewVocabulary(len(words), func(id int32) []byte { return words[id] }, []int32{eos})
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)
	e := json.NewEncoder(out)
	for lines.Scan() {
		var t task
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return err
		}
		if err := e.Encode(t.run(vocabulary, words)); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (t *task) run(v *grammar.Vocabulary, words [][]byte) result {
	g, err := grammar.ParseSchema(t.Schema)
	if err != nil {
		return result{Refused: err.Error()}
	}
	var r result
	for i, style := range t.Styles {
		w := walk{rng: rand.New(rand.NewPCG(t.Seed, uint64(i))), words: words, style: style}
		r.Texts = append(r.Texts, w.text(g, v, t.Tokens))
	}
	for _, text := range t.Texts {
		ok, err := g.Match(text)
		r.Matches = append(r.Matches, ok && err == nil)
	}
	return r
}
