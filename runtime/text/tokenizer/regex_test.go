package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// TestRegexAgainstRegexp2 runs published patterns through another engine too.
func TestRegexAgainstRegexp2(t *testing.T) {
	t.Parallel()
	texts := []string{
		"Hello, world! It's 12345 o'clock\n\n  and   more \t\r\n x", "été Ünïcode 天亮以前 русский 한국어 ١٢٣", "a'sB'LLc'reD'd 'x ''s",
		"    \n \n\n   end   ", "foo_bar(baz)[1]{2}<3>;:'\"\\/|~`!@#$%^&*()-=+", "🙂🙃 ab🙂cd  \u00a0\u3000x",
	}
	patterns := []string{gpt2Pattern, llama3Pattern, qwen2Pattern, tekkenPattern, o200kPattern, bloomPattern, deepseekV3Words, seedPattern}
	for _, p := range patterns {
		ours, err := compileRegex(p)
		if err != nil {
			t.Fatal(err)
		}
		theirs := regexp2.MustCompile(p, regexp2.None)
		theirs.MatchTimeout = 5 * time.Second
		for _, text := range texts {
			var want []string
			for m, err := theirs.FindStringMatch(text); m != nil; m, err = theirs.FindNextMatch(m) {
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, m.String())
			}
			var got []string
			for _, s := range ours.findAll(text) {
				got = append(got, text[s.start:s.end])
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s on %q:\n%q, want\n%q", p, text, got, want)
			}
		}
	}
}

func TestRegexErrors(t *testing.T) {
	t.Parallel()
	for _, p := range []string{
		"(", ")", "[", "[a", "a{2,1}", "*a", `\p{Nope}`, `\p{L`, `(?<=`, `\`, "[z-a]", "a{2000}", `\1`, `\x{110000}`, "(?q)a",
		strings.Repeat("(", 200) + strings.Repeat(")", 200), strings.Repeat("[", 200), "((((a{900}){900}){900}){900}){900}",
	} {
		if _, err := compileRegex(p); err == nil {
			t.Errorf("compileRegex(%.40q): want an error", p)
		}
	}
}

// TestRegexBudget gives patterns that backtrack without end, and deep ones.
func TestRegexBudget(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", 5000)
	for _, p := range []string{"(a*)*b", "(a|a)*b", "(?:a+)+$b", "(a|b|ab)*c", "(?:(?:a))*", "(?=(a*)*b)a", "(?<!(a*)*b)c"} {
		re, err := compileRegex(p)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		re.findAll(text)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%s took %v on %d bytes", p, d, len(text))
		}
	}
}

func FuzzRegex(f *testing.F) {
	for _, p := range []string{gpt2Pattern, o200kPattern, kimiPattern, "(?<=a)b|[^x&&[a-c]]{2,3}+?", `\bfoo\B|(?i:ß)`} {
		f.Add(p, "Hello wörld 123  x\n")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 200 || len(text) > 200 || !utf8.ValidString(pattern) {
			return
		}
		re, err := compileRegex(pattern)
		if err != nil {
			return
		}
		last := 0
		for _, s := range re.findAll(text) {
			if s.start < last || s.end < s.start || s.end > len(text) {
				t.Fatalf("%q on %q: match %v after %d", pattern, text, s, last)
			}
			last = s.end
		}
	})
}
