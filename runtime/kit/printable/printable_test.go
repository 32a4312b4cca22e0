package printable_test

import (
	"testing"

	"github.com/iflowc/iflowc/runtime/kit/printable"
)

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
