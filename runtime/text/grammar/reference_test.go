package grammar

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// A referenceNetwork matches texts as the network defines it, without the optimizations of this
// package: its stacks are copied at every call, and a mask tries each token by itself.
type referenceNetwork struct {
	g     *Grammar
	known map[string]*moment
}

// A moment is what position is to a Grammar.
type moment struct {
	configs []stacked
	accept  bool
	next    [256]*moment
}

// A stacked config is a state with the states to return to, the innermost last.
type stacked struct {
	state int32
	stack string
}

func newReference(g *Grammar) (*referenceNetwork, *moment) {
	r := &referenceNetwork{g, map[string]*moment{}}
	return r, r.place([]stacked{{state: g.rules[g.root].start}})
}

// place follows what consumes no byte.
func (r *referenceNetwork) place(list []stacked) *moment {
	seen := map[stacked]bool{}
	p := &moment{}
	for i := 0; i < len(list); i++ {
		c := list[i]
		if seen[c] {
			continue
		}
		seen[c] = true
		st := &r.g.states[c.state]
		for _, t := range st.eps {
			list = append(list, stacked{t, c.stack})
		}
		for _, call := range st.calls {
			list = append(list, stacked{r.g.rules[call.rule].start, string(binary.LittleEndian.AppendUint32([]byte(c.stack), uint32(call.ret)))})
		}
		if st.final {
			if n := len(c.stack) - 4; n >= 0 {
				list = append(list, stacked{int32(binary.LittleEndian.Uint32([]byte(c.stack[n:]))), c.stack[:n]})
			} else {
				p.accept = true
			}
		}
		if len(st.edges) > 0 {
			p.configs = append(p.configs, c)
		}
	}
	slices.SortFunc(p.configs, func(a, b stacked) int {
		return strings.Compare(a.stack, b.stack)*2 + int(min(1, max(-1, a.state-b.state)))
	})
	var key []byte
	for _, c := range p.configs {
		key = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(key, uint32(c.state)), uint32(len(c.stack)))
		key = append(key, c.stack...)
	}
	if p.accept {
		key = append(key, 1)
	}
	if known := r.known[string(key)]; known != nil {
		return known
	}
	r.known[string(key)] = p
	return p
}

func (r *referenceNetwork) step(p *moment, c byte) *moment {
	if p.next[c] == nil {
		var after []stacked
		for _, at := range p.configs {
			for _, e := range r.g.states[at.state].edges {
				if e.lo <= c && c <= e.hi {
					after = append(after, stacked{e.to, at.stack})
				}
			}
		}
		p.next[c] = r.place(after)
	}
	return p.next[c]
}

// after returns the moment after a text, or nil.
func (r *referenceNetwork) after(p *moment, text []byte) *moment {
	for _, c := range text {
		if p = r.step(p, c); len(p.configs) == 0 && !p.accept {
			return nil
		}
	}
	return p
}

func (r *referenceNetwork) mask(v *Vocabulary, p *moment) []uint64 {
	mask := make([]uint64, v.Words())
	for id := range int32(v.size) {
		ok := len(v.text[id]) > 0 && r.after(p, v.text[id]) != nil
		if slices.Contains(v.eos, id) {
			ok = p.accept
		}
		if ok {
			mask[id/64] |= 1 << (id % 64)
		}
	}
	return mask
}

// compareWithReference compares the masks along a random text.
func compareWithReference(t *testing.T, name string, g *Grammar, v *Vocabulary, rng *rand.Rand, tokens int) {
	t.Helper()
	m, err := NewMatcher(g, v)
	if err == nil {
		err = m.compareWithReference(t, name, rng, tokens)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// compareWithReference returns the errors of the matcher.
func (m *Matcher) compareWithReference(t *testing.T, name string, rng *rand.Rand, tokens int) error {
	t.Helper()
	g, v := m.g, m.v
	r, at := newReference(g)
	var text []byte
	for range tokens {
		mask, err := m.Mask()
		if err != nil {
			return fmt.Errorf("after %q: %w", text, err)
		}
		var allowed []int32
		for w, want := range r.mask(v, at) {
			for b := range 64 {
				id := int32(64*w + b)
				if mask[w]>>b&1 != want>>b&1 {
					t.Fatalf("%s after %q: token %d %q: mask %d, reference %d", name, text, id, v.text[id], mask[w]>>b&1, want>>b&1)
				}
				if want>>b&1 == 1 {
					allowed = append(allowed, id)
				}
			}
		}
		id := allowed[rng.IntN(len(allowed))]
		if rng.IntN(3) > 0 { // rarely the end of a string
			for range 20 {
				id = allowed[rng.IntN(len(allowed))]
				if !bytes.ContainsAny(v.text[id], `"]}`) {
					break
				}
			}
		}
		if err := m.Accept(id); err != nil {
			return fmt.Errorf("after %q: %w", text, err)
		}
		if m.done {
			return nil
		}
		text = append(text, v.text[id]...)
		at = r.after(at, v.text[id])
	}
	return nil
}

// mixedVocabulary returns all bytes, an end token and pieces of JSON and of other texts,
// some of which begin or end inside a character or are not UTF-8 at all.
func mixedVocabulary(t *testing.T, rng *rand.Rand, size int) *Vocabulary {
	t.Helper()
	pieces := strings.Split("\"|\": \"|\":|\",\"|\", \"|{\"|{|}|[|]|,|, |: |0|12|-|.5|e+|true|null|\\|\\n|\\u00|\\ud83d|a|b|ab|name|the| |  |the |X|_|-|<|</|</p>|</tool|>|é|ÿ|漢字|،|😀|\n|\t|\r|\x00|\x7f|\xff|\xc3|\x80|\xf0\x9f|\x98\x80|\xed\xa0\x80|\xe6", "|")
	words := make([][]byte, 257, size)
	for i := range 256 {
		words[i] = []byte{byte(i)}
	}
	words = append(words, bytes.Repeat([]byte(" "), 300), bytes.Repeat([]byte("="), 40), []byte(strings.Repeat("é", 33)+"\xc3"))
	for len(words) < size {
		var word []byte
		for range 1 + rng.IntN(4) {
			word = append(word, pieces[rng.IntN(len(pieces))]...)
		}
		if rng.IntN(8) == 0 {
			word = word[rng.IntN(len(word)):]
		}
		words = append(words, word)
	}
	v, err := NewVocabulary(size, func(id int32) []byte { return words[id] }, []int32{256})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// readVocabularies reads the files in IFLOWC_TEST_VOCABULARIES, a list of paths: lines of a
// token in base64 and its id. tools/check/masks writes them.
func readVocabularies(t *testing.T) []*Vocabulary {
	t.Helper()
	var list []*Vocabulary
	for _, path := range strings.Fields(os.Getenv("IFLOWC_TEST_VOCABULARIES")) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var words [][]byte
		for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
			text, _, _ := strings.Cut(lines.Text(), " ")
			word, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			words = append(words, word)
		}
		words = append(words, nil)
		v, err := NewVocabulary(len(words), func(id int32) []byte { return words[id] }, []int32{int32(len(words) - 1)})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}
