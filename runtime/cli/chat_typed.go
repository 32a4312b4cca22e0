//go:build unix

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// The editor edits one line. Line breaks and tabs within a message are these
// marks in it.
const (
	newlineMark = "␤"
	tabMark     = "␉"
)

// oneLine returns a text with marks in place of line breaks and tabs, and without
// other control characters, which could move the cursor.
func oneLine(text string) string {
	text = strings.NewReplacer("\r\n", newlineMark, "\r", newlineMark, "\n", newlineMark, "\t", tabMark).Replace(strings.ToValidUTF8(text, "\ufffd"))
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// asTyped returns the text of a line with marks.
func asTyped(line string) string {
	return strings.NewReplacer(newlineMark, "\n", tabMark, "\t").Replace(line)
}

// maxShownPaste is the longest pasted text, in bytes, that the line shows.
const maxShownPaste = 400

// Sequences of keys that the editor does not know, and what it gets in their
// place. Alt-Enter starts a line; terminals with the Kitty protocol send another
// sequence for it and for Shift-Enter.
var keySequences = []struct{ from, to string }{
	{"\x1b\r", newlineMark}, {"\x1b\n", newlineMark}, {"\x1b[13;2u", newlineMark}, {"\x1b[13;3u", newlineMark},
	{"\x1b[1;3C", "\x1bf"}, {"\x1b[1;3D", "\x1bb"}, // Alt with an arrow
	{pasteStart, ""},
}

// errPaste is the error of a message with a text that is not all there.
var errPaste = errors.New("the pasted text")

const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
	ctrlC      = 3
)

// A typedInput translates what a terminal sends for the editor: it makes each
// pasted text a part of the line.
type typedInput struct {
	from io.Reader
	to   io.WriteCloser

	pending []byte // the beginning of a sequence
	pasting bool   // pending is a pasted text

	mu     sync.Mutex
	touch  bool     // a key was pressed since fresh
	pastes []string // texts that the line shows by their number
	err    error    // of a pasted text
}

// readTyped translates input until it ends, and returns the file that gives the
// result.
func readTyped(in io.Reader) (*typedInput, *os.File, error) {
	keys, to, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	t := &typedInput{from: in, to: to}
	go func() {
		defer to.Close()
		for b := make([]byte, 4096); ; {
			n, err := t.from.Read(b)
			for _, key := range b[:n] {
				t.take(key)
			}
			if err != nil {
				return
			}
		}
	}()
	return t, keys, nil
}

// take takes a byte of the input.
func (t *typedInput) take(key byte) {
	t.pending = append(t.pending, key)
	if t.pasting {
		t.takePasted(key)
		return
	}
	if key == ctrlC { // also behind an Esc
		t.send(t.pending)
		return
	}
	prefix := false
	for _, s := range keySequences {
		if string(t.pending) == s.from {
			t.pasting = s.from == pasteStart
			t.send([]byte(s.to))
			return
		}
		prefix = prefix || strings.HasPrefix(s.from, string(t.pending))
	}
	if !prefix {
		t.send(t.pending)
	}
}

// takePasted takes a byte of a pasted text. Ctrl-C is not part of a text: the
// terminal has lost the end of it.
func (t *typedInput) takePasted(key byte) {
	text, ended := bytes.CutSuffix(t.pending, []byte(pasteEnd))
	switch {
	case ended:
		t.pasting = false
		t.send([]byte(t.shown(string(text))))
	case key == ctrlC:
		t.pasting = false
		t.send([]byte{ctrlC})
	case len(t.pending) > maxChatLine:
		t.mu.Lock()
		t.err = fmt.Errorf("%w is longer than %d bytes", errPaste, maxChatLine)
		t.mu.Unlock()
		t.pending = append(t.pending[:0], t.pending[len(t.pending)-len(pasteEnd):]...)
	}
}

// shown returns what the line shows of a pasted text.
func (t *typedInput) shown(text string) string {
	line := strings.TrimSuffix(oneLine(text), newlineMark)
	if len(line) <= maxShownPaste {
		return line
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pastes = append(t.pastes, line)
	return pasteName(len(t.pastes), line)
}

// pasteName is what the line shows of a long pasted text.
func pasteName(n int, line string) string {
	return fmt.Sprintf("[pasted text %d: %s]", n, counted(strings.Count(line, newlineMark)+1, "line"))
}

// send gives bytes to the editor.
func (t *typedInput) send(keys []byte) {
	t.mu.Lock()
	t.touch = t.touch || len(keys) != 1 || keys[0] != ctrlC
	t.mu.Unlock()
	_, _ = t.to.Write(keys) // fails only when the editor is gone
	t.pending = t.pending[:0]
}

// fresh begins a line.
func (t *typedInput) fresh() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.touch = false
}

// any reports whether a key other than Ctrl-C was pressed in this line.
func (t *typedInput) any() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.touch
}

// expand returns the text of a line: with line breaks and pasted texts.
func (t *typedInput) expand(line string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.err
	t.err = nil
	var names []string
	for i, text := range t.pastes {
		names = append(names, pasteName(i+1, text), text)
	}
	t.pastes = nil
	return asTyped(strings.NewReplacer(names...).Replace(line)), err
}
