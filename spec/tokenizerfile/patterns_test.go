package tokenizerfile

import (
	"slices"
	"testing"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/iflowc/iflowc/runtime/text/regexp"
)

// TestRegexAgainstRegexp2 compares published patterns with the engine regexp2.
func TestRegexAgainstRegexp2(t *testing.T) {
	t.Parallel()
	texts := []string{
		"Hello, world! It's 12345 o'clock\n\n  and   more \t\r\n x", "été Ünïcode 天亮以前 русский 한국어 ١٢٣", "a'sB'LLc'reD'd 'x ''s",
		"    \n \n\n   end   ", "foo_bar(baz)[1]{2}<3>;:'\"\\/|~`!@#$%^&*()-=+", "🙂🙃 ab🙂cd  \u00a0\u3000x",
	}
	gpt2Pattern := `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	patterns := []string{gpt2Pattern, llama3Pattern, qwen2Pattern, tekkenPattern, o200kPattern, bloomPattern, deepseekV3Words, seedPattern}
	for _, p := range patterns {
		ours, err := regexp.Compile(p)
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
			for _, s := range ours.FindAll(text) {
				got = append(got, text[s.Start:s.End])
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s on %q:\n%q, want\n%q", p, text, got, want)
			}
		}
	}
}
