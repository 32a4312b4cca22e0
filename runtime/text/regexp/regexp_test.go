package regexp

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestRegexErrors(t *testing.T) {
	t.Parallel()
	for _, p := range []string{
		"(", ")", "[", "[a", "[[:]", "a{2,1}", "*a", `\p{Nope}`, `\p{L`, `(?<=`, `\`, "[z-a]", "a{2000}", `\1`, `\x{110000}`, "(?q)a",
		strings.Repeat("(", 200) + strings.Repeat(")", 200), strings.Repeat("[", 200), "((((a{900}){900}){900}){900}){900}",
	} {
		if _, err := Compile(p); err == nil {
			t.Errorf("Compile(%.40q): want an error", p)
		}
	}
}

// TestRegexBudget checks patterns with catastrophic backtracking or deep recursion.
func TestRegexBudget(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", 5000)
	for _, p := range []string{"(a*)*b", "(a|a)*b", "(?:a+)+$b", "(a|b|ab)*c", "(?:(?:a))*", "(?=(a*)*b)a", "(?<!(a*)*b)c"} {
		re, err := Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		re.FindAll(text)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%s took %v on %d bytes", p, d, len(text))
		}
	}
}

func FuzzRegex(f *testing.F) {
	for _, p := range []string{
		// GPT-2, GPT-4o and Kimi K2
		`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
		`[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
		"(?<=a)b|[^x&&[a-c]]{2,3}+?", `\bfoo\B|(?i:ß)`,
	} {
		f.Add(p, "Hello wörld 123  x\n")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 200 || len(text) > 200 || !utf8.ValidString(pattern) {
			return
		}
		re, err := Compile(pattern)
		if err != nil {
			return
		}
		last := 0
		for _, s := range re.FindAll(text) {
			if s.Start < last || s.End < s.Start || s.End > len(text) {
				t.Fatalf("%q on %q: match %v after %d", pattern, text, s, last)
			}
			last = s.End
		}
	})
}
