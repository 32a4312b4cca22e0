//go:build unix

package server

import (
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// A lineReader ends an answer at the end of a line: in front of a line with less than a
// minimum of white space, or after a time.
type lineReader struct {
	reader
	choice *choice
	indent int           // minimum of white space in front of a line; 0: none
	limit  time.Duration // time until the answer ends with its next line; 0: none

	begun time.Time // when the first token came
	lines bool      // the text has a line feed
	held  string    // line feeds and white space whose line has no other text yet
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
		d.Content += l.held
		l.held = ""
	}
	return d
}

// keep returns the part of a text that belongs to the answer.
func (l *lineReader) keep(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' && l.indent > 0, l.held != "" && (r == ' ' || r == '\t' || r == '\r'):
			l.held += string(r)
			l.lines = true
			continue
		case r == '\n':
			l.lines = true
		case l.held != "" && len(l.held)-strings.LastIndexByte(l.held, '\n')-1 < l.indent:
			l.end()
			return out.String()
		}
		out.WriteString(l.held)
		out.WriteRune(r)
		l.held = ""
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
