package spelling

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"rms_norm", "layer_norm", "rope", "softmax"}
	for have, want := range map[string]string{
		"rms_nrom":                 "rms_norm",   // neighbors swapped
		"RMS_Norm":                 "rms_norm",   // case
		"layernorm":                "layer_norm", // one left out
		"rop":                      "rope",
		"soft":                     "softmax", // its end left out
		"so":                       "",
		"convolution":              "",
		"":                         "",
		strings.Repeat("x", 1<<20): "", // hostile: bounded work
	} {
		if got := Nearest(have, words); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", have, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b        string
		limit, want int
	}{{"kitten", "sitting", 9, 3}, {"ab", "ba", 9, 1}, {"", "abc", 9, 3}, {"", "abc", 2, 2}, {"same", "same", 9, 0}} {
		if got := Distance(c.a, c.b, c.limit); got != c.want {
			t.Errorf("Distance(%q, %q, %d) = %d, want %d", c.a, c.b, c.limit, got, c.want)
		}
	}
}
