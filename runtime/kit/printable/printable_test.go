package printable_test

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/kit/printable"
)

// TestMessage keeps what a long message begins and ends with.
func TestMessage(t *testing.T) {
	t.Parallel()
	got := printable.Message("x.json: have " + strings.Repeat("9", 1<<20) + ", want a number")
	if len(got) > 9000 || !strings.HasPrefix(got, "x.json: have 9") || !strings.HasSuffix(got, "9, want a number") {
		t.Errorf("%d bytes: %.40s", len(got), got)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain é 猫\n\tnext": "plain é 猫\n\tnext", "\x1b]0;title\a": `\x1b]0;title\a`, "a\u202eb": `a\u202eb`, "\u009b31m": `\u009b31m`, "a\xffb\r": `a\xffb\r`, "�": "�",
	} {
		if got := printable.Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
