package grammar

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// texts are the grammars and texts for which llguidance's masks are known; see
// tools/gen/reference/grammar_masks.py.
type texts struct {
	Words []string
	Cases []struct {
		Name, Kind, Source string
		Texts              []string
	}
}

func readTestdata(t *testing.T, name string, to any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func parse(kind, source string) (*Grammar, error) {
	switch kind {
	case "schema":
		return ParseSchema([]byte(source))
	case "regex":
		return ParseRegex(source)
	case "gbnf":
		return ParseGBNF(source)
	}
	return nil, fmt.Errorf("kind %q", kind)
}

// TestAgainstLLGuidance compares the masks before every token with those of an
// independent implementation.
func TestAgainstLLGuidance(t *testing.T) {
	t.Parallel()
	var given texts
	var want []struct {
		Name  string
		Steps map[string][]string
	}
	readTestdata(t, "texts.json", &given)
	readTestdata(t, "llguidance.json", &want)
	if len(want) != len(given.Cases) {
		t.Fatalf("%d cases, expected %d", len(given.Cases), len(want))
	}
	v, err := NewVocabulary(256+len(given.Words), func(id int32) []byte {
		if id < 256 {
			return []byte{byte(id)}
		}
		return []byte(given.Words[id-256])
	}, []int32{256})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range given.Cases {
		g, err := parse(c.Kind, c.Source)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		for _, text := range c.Texts {
			compareMasks(t, g, v, c.Name, text, want[i].Steps[text])
		}
	}
}

// allowedHere reports known, correct differences. U+007F is valid in JSON strings. A
// number in a range may have trailing zeros and may end as soon as it is in the range.
// After forced bytes, llguidance omits tokens that are a prefix of them.
func allowedHere(name, token string) bool {
	return token == "\x7f" || token == `{"` || token == `":` || token == `{"name": "` || name == "decimal range" && (token == "0" || token == "")
}

// allowedThere reports an intended difference: exponents end at 199.
func allowedThere(rest, token string) bool { return token == "12" && strings.HasPrefix(rest, `,"x"`) }

func compareMasks(t *testing.T, g *Grammar, v *Vocabulary, name, text string, steps []string) {
	t.Helper()
	m, err := NewMatcher(g, v)
	if err != nil {
		t.Fatal(err)
	}
	rest := text
	for i, step := range steps {
		mask, err := m.Mask()
		if err != nil {
			t.Fatalf("%s: %s before %q: %v", name, text, rest, err)
		}
		bits, err := hex.DecodeString(step)
		if err != nil {
			t.Fatal(err)
		}
		var more, fewer []string
		for id := range v.size {
			ours, theirs := mask[id/64]>>(id%64)&1 == 1, bits[id/8]>>(id%8)&1 == 1
			switch {
			case ours && !theirs && !allowedHere(name, string(v.text[id])):
				more = append(more, fmt.Sprintf("%q", v.text[id]))
			case theirs && !ours && !allowedThere(rest, string(v.text[id])):
				fewer = append(fewer, fmt.Sprintf("%q", v.text[id]))
			}
		}
		if len(more)+len(fewer) > 0 {
			t.Errorf("%s: %s before %q: allowed only here %v, only there %v", name, text, rest, more, fewer)
		}
		best := int32(-1)
		for id := range int32(v.size) {
			if b := v.text[id]; len(b) > 0 && strings.HasPrefix(rest, string(b)) && (best < 0 || len(b) > len(v.text[best])) {
				best = id
			}
		}
		if best < 0 || m.Accept(best) != nil {
			if i != len(steps)-1 {
				t.Errorf("%s: %s: refused before %q", name, text, rest)
			}
			return
		}
		rest = rest[len(v.text[best]):]
	}
}
