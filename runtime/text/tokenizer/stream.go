package tokenizer

import "strings"

// Stream decodes ids one by one. It hands text out as soon as later ids cannot
// change it, and never part of a character. The texts of all Push calls and of
// Flush, joined, equal Decode of all ids. Not safe for concurrent use.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	stages      []decodeStage
	sinks       []sink
	out         strings.Builder
	tokens      int
	held        string // text that the final tidying may still change
}

// NewStream starts an incremental decoder; skipSpecial drops special tokens.
func (t *Tokenizer) NewStream(skipSpecial bool) *Stream {
	s := &Stream{t: t, skipSpecial: skipSpecial, sinks: make([]sink, len(t.decoder)+1)}
	s.sinks[len(t.decoder)] = func(text string, _, _ bool) { s.out.WriteString(text) }
	for _, make := range t.decoder {
		s.stages = append(s.stages, make())
	}
	for i := len(s.stages) - 1; i >= 0; i-- {
		stage, next := s.stages[i], s.sinks[i+1]
		s.sinks[i] = func(text string, begin, end bool) { stage.push(text, begin, end, next) }
	}
	return s
}

// Push adds one id and returns the text that has become certain. Ids outside
// the vocabulary add nothing.
func (s *Stream) Push(id int32) string {
	s.add(id)
	return s.take(false)
}

// Flush ends the text and returns what was still held back. The stream is
// spent afterwards.
func (s *Stream) Flush() string {
	for i, stage := range s.stages {
		stage.flush(s.sinks[i+1])
	}
	s.stages = nil
	return s.take(true)
}

func (s *Stream) add(id int32) {
	token, ok := s.t.decodeToken(id)
	if !ok || (s.skipSpecial && s.t.added.special[token]) {
		return
	}
	if len(s.t.decoder) == 0 && s.tokens > 0 {
		s.out.WriteByte(' ')
	}
	s.tokens++
	s.sinks[0](token, true, true)
}

// take empties the output, tidied where the configuration asks for it.
func (s *Stream) take(last bool) string {
	text := s.out.String()
	s.out.Reset()
	if !s.t.config.CleanUp {
		return text
	}
	text = s.held + text
	cut := len(text)
	if !last {
		cut = cleanUpCut(text)
	}
	s.held = text[cut:]
	return spaceCleanup.apply(text[:cut])
}

// cleanUpCut finds the last place where no replacement of spaceCleanup can
// reach across: in front of a blank that neither follows an apostrophe nor
// begins " ' ", which would join its two sides.
func cleanUpCut(s string) int {
	for i := len(s) - 2; i > 0; i-- {
		if s[i] != ' ' || s[i-1] == '\'' {
			continue
		}
		if s[i+1] != '\'' || (i+2 < len(s) && s[i+2] != ' ') {
			return i
		}
	}
	return 0
}

// Decode turns ids into text; skipSpecial drops special tokens. Ids outside the
// vocabulary are left out, and bytes that form no character become U+FFFD.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	s := t.NewStream(skipSpecial)
	for _, id := range ids {
		s.add(id)
	}
	return s.Flush()
}
