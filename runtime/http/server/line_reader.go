//go:build unix

package server

import (
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// A lineReader ends an answer at the end of a line: in front of a line with less than a
// minimum of white space, or after a time, once it has a line feed.
type lineReader struct {
	reader
	choice *choice
	indent int           // minimum of white space in front of a line; 0: none
	limit  time.Duration // time after which an answer with a line feed ends; 0: none

	begun time.Time // when the first token came
	lines bool      // the text has a line feed
	held  []byte    // line feeds and white space whose line has no other text yet
	space int       // bytes of held after its last line feed
	cut   bool      // the answer was ended
}

// Push returns the text of a token, as far as it is certainly part of the answer.
func (l *lineReader) Push(id int32) chat.Delta {
	if l.begun.IsZero() {
		l.begun = time.Now()
	}
	d := l.reader.Push(id)
	d.Content = l.keep(d.Content)
	return d
}

// Flush returns the rest of the text.
func (l *lineReader) Flush() chat.Delta {
	d := l.reader.Flush()
	if d.Content = l.keep(d.Content); !l.cut {
		d.Content += string(l.held)
		l.held = nil
	}
	return d
}

// keep returns the part of a text that belongs to the answer.
func (l *lineReader) keep(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' && l.indent > 0, len(l.held) > 0 && (r == ' ' || r == '\t' || r == '\r'):
			l.held = append(l.held, byte(r))
			if l.space++; r == '\n' {
				l.space = 0
			}
			l.lines = true
			continue
		case r == '\n':
			l.lines = true
		case len(l.held) > 0 && l.space < l.indent:
			l.end()
			return out.String()
		}
		out.Write(l.held)
		out.WriteRune(r)
		l.held = l.held[:0]
	}
	if l.limit > 0 && l.lines && time.Since(l.begun) > l.limit {
		l.end()
	}
	return out.String()
}

// end ends the answer with the text that the reader returns next.
func (l *lineReader) end() {
	l.cut = true
	l.choice.stop.End()
}
