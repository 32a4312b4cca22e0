//go:build unix

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/peterh/liner"
	"golang.org/x/sys/unix"
)

// editorHelp is the part of the help text about keys.
const editorHelp = `Alt-Enter starts a line within the message; the line shows it as ␤.
A pasted text stays one message.
Up and Down go through earlier messages, Ctrl-R searches them.
Tab completes commands. Ctrl-C discards what is typed, Ctrl-D leaves.`

// Sequences that turn on bracketed paste: the terminal marks where a pasted text
// begins and ends.
const (
	pasteModeOn  = "\x1b[?2004h"
	pasteModeOff = "\x1b[?2004l"
)

// A chatEditor reads lines that a user types and edits on a terminal.
type chatEditor struct {
	out     io.Writer
	state   *liner.State
	typed   *typedInput
	history *chatHistory // nil: not kept
}

// newChatEditor returns an editor for a terminal; nil if it cannot move the
// cursor.
func newChatEditor(in, out *os.File) (*chatEditor, error) {
	if os.Getenv("TERM") == "" { // nobody has set it, as in containers; every terminal knows these sequences
		os.Setenv("TERM", "vt100")
	}
	if !liner.TerminalSupported() || in.Fd() != os.Stdin.Fd() || out.Fd() != os.Stdout.Fd() {
		return nil, nil
	}
	size, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return nil, nil
	}
	if size.Col == 0 { // nobody has set it, as in containers; the editor needs one
		size.Row, size.Col = 24, 80
		if err := unix.IoctlSetWinsize(int(out.Fd()), unix.TIOCSWINSZ, size); err != nil {
			return nil, nil
		}
	}
	typed, keys, err := readTyped(in)
	if err != nil {
		return nil, err
	}
	// The library changes the terminal's mode, but reads os.Stdin: the keys that
	// typedInput has translated.
	os.Stdin = keys
	state := liner.NewLiner()
	os.Stdin = in
	state.SetCtrlCAborts(true)
	state.SetMultiLineMode(true)
	state.SetBeep(false)
	state.SetCompleter(completeCommand)
	fmt.Fprint(out, pasteModeOn)
	return &chatEditor{out: out, state: state, typed: typed}, nil
}

// remember adds the messages of earlier chats, and keeps those of this one.
func (e *chatEditor) remember() error {
	history, err := openHistory()
	if err != nil {
		return err
	}
	e.history = history
	for _, entry := range history.past {
		e.state.AppendHistory(entry)
	}
	return nil
}

// completeCommand returns the commands that begin with a line.
func completeCommand(line string) (list []string) {
	if line == "" {
		return nil
	}
	for _, c := range chatCommands() {
		if strings.HasPrefix(c.name, line) {
			if c.argument != "" {
				c.name += " "
			}
			list = append(list, c.name)
		}
	}
	return list
}

func (e *chatEditor) line(prompt string) (string, error) {
	e.typed.fresh()
	line, err := e.state.Prompt(prompt)
	switch {
	case errors.Is(err, liner.ErrPromptAborted) && e.typed.any():
		return "", nil
	case errors.Is(err, liner.ErrPromptAborted):
		return "", errInterrupted
	case errors.Is(err, io.EOF):
		fmt.Fprintln(e.out)
	}
	if err != nil {
		return "", err
	}
	return e.typed.expand(line)
}

// keep adds a message to the history. Long ones are of no use there.
func (e *chatEditor) keep(message string) {
	const most = 4 << 10
	if strings.TrimSpace(message) == "" || len(message) > most {
		return
	}
	entry := oneLine(message)
	e.state.AppendHistory(entry)
	if e.history != nil {
		e.history.add(entry)
	}
}

// close returns the terminal to its usual mode.
func (e *chatEditor) close() {
	fmt.Fprint(e.out, pasteModeOff)
	_ = e.state.Close() // the terminal is gone: nothing to restore
	if e.history != nil {
		e.history.close()
	}
}
