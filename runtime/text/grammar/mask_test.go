package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/iflowc/iflowc/ir/irtest"
)

// referenceCases are grammars whose masks are compared with the reference, besides the
// schemas of other tests. Their strings differ in the characters and lengths that they
// allow.
var referenceCases = []struct{ kind, source string }{
	{"schema", `{"type":"object"}`},
	{"schema", `{"type":"array","items":{"type":"array","items":{"type":"object","additionalProperties":{"type":"string"}}}}`},
	{"schema", `{"properties":{"name":{},"nobody":{"type":"string","maxLength":3},"the":{"type":"string","minLength":2}}}`},
	{"schema", `{"type":"array","items":{"type":"string","minLength":1,"maxLength":40}}`},
	{"schema", `{"type":"array","items":{"type":"string","minLength":3,"maxLength":5}}`},
	{"schema", `{"type":"array","items":{"type":"string","pattern":"^[A-Z][a-z]{2,8}$"}}`},
	{"schema", `{"type":"array","items":{"type":"string","pattern":"^[A-Za-z0-9 ,.]+$"}}`},
	{"schema", `{"type":"array","items":{"type":"string","pattern":"^[^a-d]{0,5}the.*$"}}`},
	{"schema", `{"anyOf":[{"type":"string","pattern":"^[a-z ]*$"},{"type":"string","maxLength":4},{"type":"array","items":{"type":"string"}}]}`},
	{"regex", `(.|\n)*`},
	{"regex", `.*`},
	{"regex", `[^a]{3}(.|\n)*`},
	{"regex", `(.|\n)*[a-m ](.|\n){9}`},
	{"regex", `[a-zé]*x`},
	{"regex", `[a-z\x{80}-\x{10ffff}]{2,4}é?`},
	{"regex", `[^é]*x`},
	{"regex", `[^ÿ]*x`},
	{"regex", `[^漢]{2}([^😀]*|[a-z]+)`},
	{"regex", `[^"]{3}[\x{80}-\x{10ffff}]*`},
	{"regex", `([a-z]{5}|[a-zA-Z]{3}[0-9])*`},
	{"regex", `[^"\\]*"[^"]{2,}"`},
	{"regex", `([ -~]{2}\n)+`},
	{"gbnf", `root ::= "<p>" text "</p>"` + "\n" + `text ::= [^<]* ("<" [^/] [^<]*)*`},
	{"gbnf", `root ::= "\"" [^"\\\x00-\x1f]* "\"" | "{" root "}"`},
	{"gbnf", `root ::= line{1,3}` + "\n" + `line ::= [a-zA-Z =]{1,35} "\n"`},
	{"gbnf", `root ::= (a | b)* "!"` + "\n" + `a ::= [a-z ]` + "\n" + `b ::= [a-m]{2} | "é"`},
}

// TestMaskReference compares masks with the reference.
func TestMaskReference(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 10))
	v := mixedVocabulary(t, rng, 1500)
	cases := referenceCases
	for _, c := range schemaCases {
		cases = append(cases, struct{ kind, source string }{"schema", c.schema})
	}
	for _, c := range exactCases {
		cases = append(cases, struct{ kind, source string }{"schema", c.schema})
	}
	for _, c := range irtest.Sample(t, 60, cases) {
		g, err := parse(c.kind, c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		for range irtest.Rounds(1, 3) {
			compareWithReference(t, c.source, g, v, rng, 20)
		}
	}
	compared, grammars := 0, irtest.Rounds(12, 40)
	for range grammars {
		source := randomGrammar(rng)
		g, err := ParseGBNF(source)
		if err == nil {
			var m *Matcher
			if m, err = NewMatcher(g, v); err == nil {
				err = m.compareWithReference(t, source, rng, 10)
			}
		}
		switch {
		case err == nil:
			compared++
		case !errors.Is(err, ErrTooLarge):
			t.Errorf("%s: %v", source, err)
		}
	}
	if compared < grammars*3/4 {
		t.Errorf("only %d of the random grammars are small enough", compared)
	}
}

// TestCallMaskReference compares the masks of tool calls with the reference.
func TestCallMaskReference(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 12))
	v := mixedVocabulary(t, rng, 1500)
	tools := []Tool{{Name: "say", Parameters: json.RawMessage(`{"properties":{"the":{"type":"string"},"n":{"type":["integer","null"]},"a":{"enum":["name","ab"]}},"required":["the"]}`)}, {Name: "now"}}
	for _, format := range []CallFormat{
		{Open: "<tool_call>\n", Shut: "\n</tool_call>", Name: "name", Arguments: "arguments"},
		{Open: "<f=", Between: ">", End: "</f>", Argument: [3]string{"<p=", ">", "</p>"}},
		{Open: "[", Between: "(", End: ")", Shut: "]", Python: true},
	} {
		g, err := parseCall(format, tools, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			compareWithReference(t, format.Open, g, v, rng, 40)
		}
	}
}

// TestMaskConcurrent compares masks with the reference while other matchers use the grammar,
// and while its cache is dropped in the middle of a search.
func TestMaskConcurrent(t *testing.T) {
	t.Parallel()
	v := mixedVocabulary(t, rand.New(rand.NewPCG(15, 16)), 6000)
	g, err := ParseSchema([]byte(`{"type":"array","items":{"anyOf":[{"type":"object"},{"type":"string","maxLength":40},{"type":"string","pattern":"^[a-z ]*X"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	var drops atomic.Int32
	t.Cleanup(func() {
		if drops.Load() == 0 {
			t.Error("no search was long enough to be interrupted")
		}
	})
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			m, err := NewMatcher(g, v)
			if err != nil {
				t.Fatal(err)
			}
			m.run = func(work func(func() error) error) error {
				return work(func() error {
					g.mu.Lock()
					defer g.mu.Unlock()
					drops.Add(1)
					g.forget()
					return nil
				})
			}
			if err := m.compareWithReference(t, "concurrent", rand.New(rand.NewPCG(17, uint64(i))), 20); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMaskVocabularies compares masks with the reference for real vocabularies.
func TestMaskVocabularies(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(13, 14))
	for _, v := range readVocabularies(t) {
		for _, c := range referenceCases {
			g, err := parse(c.kind, c.source)
			if err != nil {
				t.Fatal(err)
			}
			compareWithReference(t, c.source, g, v, rng, 25)
		}
	}
}

// randomGrammar returns a random GBNF grammar of three rules.
func randomGrammar(rng *rand.Rand) string {
	var term func(rule, depth int) string
	term = func(rule, depth int) string {
		sets := []string{`[a-z]`, `[^"\\]`, `[ -~]`, `[^\n]`, `[a-zé-漢]`, `"the"`, `"\""`, `[^a-m<]`, `"😀"`, `[0-9]`}
		if depth == 0 || rng.IntN(4) == 0 {
			if rule < 2 && rng.IntN(3) == 0 {
				return fmt.Sprintf("r%d", rule+1)
			}
			return sets[rng.IntN(len(sets))]
		}
		a, b := term(rule, depth-1), term(rule, depth-1)
		switch rng.IntN(5) {
		case 0:
			return "(" + a + " | " + b + ")"
		case 1:
			return "(" + a + ")*"
		case 2:
			lo := rng.IntN(4)
			return fmt.Sprintf("(%s){%d,%d}", a, lo, lo+rng.IntN(5))
		}
		return a + " " + b
	}
	return fmt.Sprintf("root ::= %s r1\nr1 ::= %s r2\nr2 ::= %s", term(0, 3), term(1, 3), term(2, 2))
}
