//go:build unix

package server

import (
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/text/chat"
)

// pieces are the texts of tokens.
type pieces []string

func (p pieces) Push(id int32) chat.Delta { return chat.Delta{Content: p[id]} }
func (p pieces) Flush() chat.Delta        { return chat.Delta{} }

// TestLineReader checks where answers end, however tokens split the text.
func TestLineReader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		indent int
		limit  time.Duration
		want   string
		cut    bool
	}{
		{"a\nb\n", 0, 0, "a\nb\n", false}, {"a\n  b\n c", 2, 0, "a\n  b", true}, {"a\n\n\tb\nc", 1, 0, "a\n\n\tb", true}, {"a\n  ", 4, 0, "a\n  ", false},
		{"a", 4, 0, "a", false}, {" a\nb", 4, 0, " a", true}, {"a\r\n\r\n    b\r\n}", 4, 0, "a\r\n\r\n    b\r", true}, {"a\n\tb", 2, 0, "a", true},
		{"a\n b", 0, time.Nanosecond, "a\n b", true}, {"ab", 0, time.Nanosecond, "ab", false}, {"a\n b", 0, time.Hour, "a\n b", false},
	} {
		for size := 1; size <= len(c.text); size++ {
			var tokens pieces
			for rest := c.text; rest != ""; rest = rest[min(size, len(rest)):] {
				tokens = append(tokens, rest[:min(size, len(rest))])
			}
			ch := &choice{stop: decode.Stopper{Words: []string{"\n    bX"}}} // holds text back
			l := &lineReader{reader: tokens, choice: ch, indent: c.indent, limit: c.limit}
			ch.reader = l
			got := ""
			for i := range tokens {
				e := scheduler.Event{Token: int32(i)}
				if i == len(tokens)-1 {
					e.Finish = "length"
				}
				p := piece{}
				ch.add(&p, e)
				if got += p.delta.Content; ch.finish != "" {
					break
				}
			}
			want := c.want
			if c.limit == time.Nanosecond && c.cut { // where it ends depends on the tokens
				want = got
				if len(got) < len("a\n") || c.text[:len(got)] != got {
					t.Errorf("%q by %d: %q", c.text, size, got)
				}
			}
			if got != want || l.cut != c.cut || (ch.finish == "stop") != c.cut {
				t.Errorf("%q by %d: %q, cut %v, %s; expected %q, %v", c.text, size, got, l.cut, ch.finish, want, c.cut)
			}
		}
	}
}
