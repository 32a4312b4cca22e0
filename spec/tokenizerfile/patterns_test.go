package tokenizerfile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/iflowc/iflowc/runtime/text/regexp"
)

// TestRegexAgainstRegexp2 compares published patterns, and those of all names of
// tokenizer.ggml.pre, with the engine regexp2.
func TestRegexAgainstRegexp2(t *testing.T) {
	t.Parallel()
	texts := []string{
		"Hello, world! It's 12345 o'clock\n\n  and   more \t\r\n x", "été Ünïcode 天亮以前 русский 한국어 ١٢٣", "a'sB'LLc'reD'd 'x ''s",
		"    \n \n\n   end   ", "foo_bar(baz)[1]{2}<3>;:'\"\\/|~`!@#$%^&*()-=+", "🙂🙃 ab🙂cd  \u00a0\u3000x",
		"\u1f5f\u1f7d \u1fd3\u1fdb \u212a\u2126 K\u03a9 \u0e01\u0e40 1234567 ab 12 c", "하나 둘 ㄱㅏ、。《「》」 ㄅ 豈\uf900 ｶﾅ ကက", "<sentinel:12> IMGIMGABZ \t  x    y", "a b c d e\u0301 f 1/2 //\n",
	}
	gpt2Pattern := `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	patterns := map[string]bool{gpt2Pattern: true}
	for _, pre := range ggufPreTokenizers {
		for _, step := range pre.steps {
			if step.Pattern != nil && !strings.Contains(*step.Pattern.Regex, "&&") { // regexp2 has no intersections
				patterns[*step.Pattern.Regex] = true
			}
		}
	}
	for p := range patterns {
		ours, err := regexp.Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		theirs := regexp2.MustCompile(p, regexp2.Multiline) // in Oniguruma $ is the end of a line
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
