//go:build unix

package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTyped: keys reach the editor as it knows them, however the terminal cuts them
// up; a pasted text is a part of the line, whatever is in it.
func TestTyped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 100)
	for _, c := range []struct{ name, keys, shown, message string }{
		{"letters", "añ日\r", "añ日\r", "añ日"},
		{"an arrow", "\x1b[D\x1b[1;3D", "\x1b[D\x1bb", ""},
		{"Esc before another key", "\x1bx", "\x1bx", ""},
		{"Ctrl-C after Esc", "\x1b\x03", "\x1b\x03", ""},
		{"Alt-Enter", "a\x1b\rb", "a␤b", "a\nb"},
		{"Shift-Enter of Kitty", "a\x1b[13;2ub", "a␤b", "a\nb"},
		{"a pasted text", "x\x1b[200~a\r\nb\tc\r\x1b[201~y", "xa␤b␉cy", "xa\nb\tcy"},
		{"control characters in it", "\x1b[200~a\x1b[2Jb\x00\x7f\x1b[201~", "a[2Jb", "a[2Jb"},
		{"its end lost", "\x1b[200~abc\x03d", "\x03d", ""},
		{"bytes that are no text", "\x1b[200~a\xffb\x1b[201~", "a\ufffdb", "a\ufffdb"},
		{"two long texts", "\x1b[200~" + long + "\x1b[201~ and \x1b[200~" + long + "\rx\x1b[201~", "[pasted text 1: 1 line] and [pasted text 2: 2 lines]", long + " and " + long + "\nx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			typed := &typedInput{to: discardCloser{&out}}
			for _, key := range []byte(c.keys) {
				typed.take(key)
			}
			if out.String() != c.shown {
				t.Errorf("the editor gets %q, want %q", out.String(), c.shown)
			}
			if c.message == "" {
				return
			}
			if got, err := typed.expand(strings.TrimSuffix(out.String(), "\r")); got != c.message || err != nil {
				t.Errorf("the message is %q, %v, want %q", got, err, c.message)
			}
		})
	}
}

type discardCloser struct{ io.Writer }

func (discardCloser) Close() error { return nil }

// TestTypedTooMuch: a pasted text without end takes bounded memory and is an error.
func TestTypedTooMuch(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	typed := &typedInput{to: discardCloser{&out}}
	for _, key := range []byte(pasteStart + strings.Repeat("x", maxChatLine+10) + pasteEnd) {
		typed.take(key)
	}
	if _, err := typed.expand(out.String()); err == nil || len(typed.pending) > 0 {
		t.Errorf("%v, %d bytes pending", err, len(typed.pending))
	}
	if _, err := typed.expand(""); err != nil {
		t.Errorf("the next message: %v", err)
	}
}

// TestHistory: the file has the messages of earlier chats, only its owner can read it,
// and it does not grow without end.
func TestHistory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	name := filepath.Join(dir, "iflowc", "chat_history")
	entry := strings.Repeat("y", 1000)
	for chat := range 3 {
		h, err := openHistory()
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{0, 2, 500}[chat]; len(h.past) < want || len(h.past) > want+50 {
			t.Errorf("chat %d knows %d messages", chat, len(h.past))
		}
		h.add("a␤b")
		h.add(entry)
		h.close()
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() > maxHistory {
			t.Fatalf("chat %d: %v, %v", chat, info, err)
		}
		if chat == 1 {
			if err := os.WriteFile(name, []byte(strings.Repeat(entry+"\n", 2000)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("XDG_STATE_HOME", name) // not a folder
	if _, err := openHistory(); err == nil {
		t.Error("no error for a folder that cannot be made")
	}
}
