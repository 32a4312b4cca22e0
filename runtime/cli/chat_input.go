//go:build unix

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxChatLine is the maximum length of a line of input, and of a pasted text.
const maxChatLine = 4 << 20

// Prompts for the first line of a message and for those after it.
const (
	chatPrompt     = "> "
	chatPromptMore = ". "
)

// errInterrupted is the error of a line at which the user pressed Ctrl-C without
// typing anything.
var errInterrupted = errors.New("interrupted")

// A lineSource gives the lines of the input.
type lineSource interface {
	// line returns the next line. It returns io.EOF after the last one.
	line(prompt string) (string, error)
	// keep adds a message to the history.
	keep(message string)
	close()
}

// A chatInput reads messages: lines, continued by a \ at the end, or lines
// between two lines of """.
type chatInput struct {
	source  lineSource
	lines   chan chatLine
	reading bool
}

type chatLine struct {
	text string
	err  error
}

// next returns where the next message comes. Nothing is read before the call, so
// that a terminal is in its usual mode while the model answers.
func (in *chatInput) next() <-chan chatLine {
	if !in.reading {
		in.reading = true
		go func() {
			text, err := message(in.source)
			in.lines <- chatLine{text, err}
		}()
	}
	return in.lines
}

// message reads a message.
func message(source lineSource) (string, error) {
	line, err := source.line(chatPrompt)
	if err != nil {
		return "", err
	}
	text := line
	if strings.TrimSpace(line) == `"""` {
		var block []string
		for {
			if line, err = source.line(chatPromptMore); err != nil || strings.TrimSpace(line) == `"""` {
				break
			}
			block = append(block, line)
		}
		text = strings.Join(block, "\n")
	} else {
		for strings.HasSuffix(text, `\`) {
			if line, err = source.line(chatPromptMore); err != nil {
				break
			}
			text = strings.TrimSuffix(text, `\`) + "\n" + line
		}
	}
	if errors.Is(err, errInterrupted) {
		return "", nil // it discards the lines before it
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	source.keep(text)
	return text, nil
}

// A plainSource gives the lines of a file, a pipe, or a terminal without control
// sequences.
type plainSource struct {
	scan   *bufio.Scanner
	prompt io.Writer // nil: no prompt
}

func newPlainSource(r io.Reader) *plainSource {
	scan := bufio.NewScanner(r)
	scan.Buffer(make([]byte, 0, 64<<10), maxChatLine)
	return &plainSource{scan: scan}
}

func (p *plainSource) line(prompt string) (string, error) {
	if p.prompt != nil {
		fmt.Fprint(p.prompt, prompt)
	}
	if p.scan.Scan() {
		return p.scan.Text(), nil
	}
	err := p.scan.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return "", wrong(fmt.Errorf("a line is longer than %d bytes", maxChatLine))
	case err != nil:
		return "", err
	}
	return "", io.EOF
}

func (*plainSource) keep(string) {}
func (*plainSource) close()      {}
