package grammar

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestGBNF(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, source string
		good, bad    []string
	}{
		{"arithmetic", "root ::= expr \"=\" [0-9]+ # comment\nexpr ::= term ([-+*/] term)*\nterm ::=\n  num | \"(\" expr \")\"\nnum ::= [0-9]{1,3}\n",
			[]string{"1+2=3", "(1+(22*333))=0"}, []string{"1+=3", "1234=1", "(1=2"}},
		{"characters", `root ::= "\x41\u00e9\U0001F600" [^a-c\]\n] . "\"" `, []string{"Aé😀dx\"", "Aé😀ä😀\""}, []string{"Aé😀ax\"", "Aé😀]x\""}},
		{"repetitions", `root ::= "a"{2} "b"{1,} "c"{0,2} ("de"){2,3}`, []string{"aabdede", "aabbccdedede"}, []string{"abdede", "aabcccdede", "aabde", "aabdedededede"}},
		{"groups", "root ::= (\n \"a\"\n | \"b\" ) |\n \"c\"", []string{"a", "b", "c"}, []string{"", "ab"}},
		{"right recursion", `root ::= "x" root | ""`, []string{"", strings.Repeat("x", 10000)}, []string{"xy"}},
		{"nested", `root ::= "(" root ")" | ""`, []string{"", strings.Repeat("(", 2000) + strings.Repeat(")", 2000)}, []string{"(", "())"}},
		{"ambiguous", `root ::= (a | b)* "!"` + "\n" + `a ::= "x"` + "\n" + `b ::= "x" | "xx"`, []string{strings.Repeat("x", 500) + "!"}, []string{"x"}},
	} {
		g, err := ParseGBNF(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for want, list := range map[bool][]string{true: c.good, false: c.bad} {
			for _, text := range list {
				if got, err := g.Match(text); got != want || err != nil {
					t.Errorf("%s: %.40q: match %v, want %v, %v", c.name, text, got, want, err)
				}
			}
		}
	}
}

func TestGBNFErrors(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`a ::= "x"`:                      "no rule named root",
		`root ::= b`:                     "rule b is used but not defined",
		`root ::= root "x" | "y"`:        "left-recursive",
		`root ::= "x"` + "\n root ::= y": "defined twice",
		`root ::= "x`:                    "grammar:1:12: the literal has no closing quote",
		`root ::= [a`:                    "no ]",
		`root ::= [z-a]`:                 "reversed",
		`root ::= ("x"`:                  "expected )",
		`root ::= "\q"`:                  "escape",
		`root ::= "x"{3,1}`:              "{m,n}",
		`root = "x"`:                     "expected ::=",
		"root ::= x\nx ::= \"a\" x":      "matches no text",
		`root ::= a` + "\n" + `a ::= b? a "x" | "z"` + "\n" + `b ::= "y"`: "left-recursive",
		"root ::= " + strings.Repeat("(", 1000):                           "nested deeper",
		`root ::= (((("a"{60000}){60000}){60000}){60000})`:                "too large",
		"root ::= " + strings.Repeat(`"a"{1000} `, 1000):                  "too large",
		"root ::= \"\xff\"": "UTF-8",
	} {
		if _, err := ParseGBNF(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", source, err, want)
		}
	}
}

// TestRegex compares patterns with package regexp on random texts.
func TestRegex(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, pattern := range []string{`a*b?c+`, `(ab|ba){2,3}`, `[^a-b]c|a.c`, `(?i)aBc`, `a{2,}`, `\w+\s?\d{1,2}`, `(a|b)*abb`, `é|ü+`, ``, `(a*)*`, `(a|aa)+b`, `x{0,0}a`} {
		g, err := ParseRegex(pattern)
		if err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile(`\A(?:` + pattern + `)\z`)
		for range 400 {
			var text strings.Builder
			for range rng.IntN(8) {
				text.WriteRune([]rune("aabbcABC1 éü")[rng.IntN(12)])
			}
			if got, _ := g.Match(text.String()); got != want.MatchString(text.String()) {
				t.Errorf("%s: %q: match %v", pattern, text.String(), got)
			}
		}
	}
}

// TestRegexEscapes checks \uXXXX, which package regexp lacks, beside an escaped backslash.
func TestRegexEscapes(t *testing.T) {
	t.Parallel()
	g, err := ParseRegex(`\\u0041\u00e9[\u0042-\u0044]`)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{`\u0041éC`: true, `AéC`: false, `\AéC`: false, `\u0041éE`: false} {
		if got, err := g.Match(text); got != want || err != nil {
			t.Errorf("%s: match %v, want %v, %v", text, got, want, err)
		}
	}
}

// testVocabulary returns a vocabulary of all bytes, some words and an end token.
func testVocabulary(t testing.TB) *Vocabulary {
	t.Helper()
	words := []string{"", `{"`, `":`, `"name"`, `name`, `,"`, `, "`, "12", "true", `"}`, `"}]`, "é", "\n", "  ", `{"name": "`, `a`, `a`, "😀"}
	v, err := NewVocabulary(256+len(words), func(id int32) []byte {
		if id < 256 {
			return []byte{byte(id)}
		}
		return []byte(words[id-256])
	}, []int32{256})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// schemaMatcher returns a matcher of a schema.
func schemaMatcher(t testing.TB, schema string, v *Vocabulary) *Matcher {
	t.Helper()
	g, err := ParseSchema([]byte(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	m, err := NewMatcher(g, v)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMask compares masks along random texts with tests of each single token, and
// checks the resulting texts against the grammar.
func TestMask(t *testing.T) {
	t.Parallel()
	v := testVocabulary(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range schemaCases {
		m := schemaMatcher(t, c.schema, v)
		var text []byte
		for range 40 {
			mask, err := m.Mask()
			if err != nil {
				t.Fatalf("%s after %s: %v", c.name, text, err)
			}
			var allowed []int32
			for id := range int32(v.size) {
				alone := *m
				want := alone.Accept(id) == nil
				if got := mask[id/64]>>(id%64)&1 == 1; got != want {
					t.Fatalf("%s after %s: token %d (%q): mask %v, alone %v", c.name, text, id, v.text[id], got, want)
				}
				if want {
					allowed = append(allowed, id)
				}
			}
			id := allowed[rng.IntN(len(allowed))]
			if err := m.Accept(id); err != nil {
				t.Fatal(err)
			}
			if m.done {
				if ok, _ := m.g.Match(string(text)); !ok {
					t.Errorf("%s: ended after %s", c.name, text)
				}
				break
			}
			text = append(text, v.text[id]...)
		}
	}
}

func TestMatcherErrors(t *testing.T) {
	t.Parallel()
	v := testVocabulary(t)
	m, err := NewMatcher(AnyObject(), v)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []int32{-1, 100000, 'x', 256} {
		if err := m.Accept(id); err == nil {
			t.Errorf("token %d was accepted", id)
		}
	}
	small, err := NewVocabulary(2, func(id int32) []byte { return []byte{"ab"[id]} }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = NewMatcher(AnyObject(), small); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Mask(); err != ErrNoToken {
		t.Errorf("no token fits: error %v", err)
	}
}

func FuzzGBNF(f *testing.F) {
	f.Add("root ::= (\"a\" | [b-c]){2,3} x?\nx ::= \"\\n\" | .", "ab")
	f.Add("root ::= a* \"x\"\na ::= \"\" | \"y\"{0,30} a2\na2 ::= \"z\"", "yyzx")
	f.Fuzz(func(t *testing.T, source, text string) {
		if g, err := ParseGBNF(source); err == nil {
			g.Match(text[:min(len(text), 200)])
		}
	})
}

func FuzzSchema(f *testing.F) {
	for _, c := range schemaCases {
		f.Add(c.schema, c.good[0])
	}
	f.Fuzz(func(t *testing.T, schema, text string) {
		if g, err := ParseSchema([]byte(schema)); err == nil {
			g.Match(text[:min(len(text), 200)])
		}
	})
}
