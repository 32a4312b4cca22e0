package tokenizer

import "strings"

// A Stream decodes ids incrementally. It returns text as soon as later ids cannot
// change it, and never a part of a character. The concatenated results of all Push
// calls and Flush equal Decode of all ids. It is not safe for concurrent use.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	stages      []decodeStage
	sinks       []sink
	out         strings.Builder
	tokens      int
	pending     string // text that the final cleanup may still change
}

// NewStream returns a new Stream; skipSpecial omits special tokens.
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

// Push adds an id and returns the text that later ids cannot change. Ids outside the
// vocabulary add nothing.
func (s *Stream) Push(id int32) string {
	s.add(id)
	return s.take(false)
}

// Flush marks the end of the text and returns the rest. The stream cannot be used
// afterwards.
func (s *Stream) Flush() string {
	for i, stage := range s.stages {
		stage.flush(s.sinks[i+1])
	}
	s.stages = nil
	return s.take(true)
}

func (s *Stream) add(id int32) {
	// Like tokenizers 0.23, it skips a special token that matches normalized text only if its
	// normalized form is a special token.
	token, _, ok := s.t.decodeToken(id)
	if !ok || s.skipSpecial && s.t.added.special[token] {
		return
	}
	if len(s.t.decoder) == 0 && s.tokens > 0 {
		s.out.WriteByte(' ')
	}
	s.tokens++
	s.sinks[0](token, true, true)
}

// take returns and clears the pending output, after the configured cleanup.
func (s *Stream) take(last bool) string {
	text := s.out.String()
	s.out.Reset()
	if !s.t.config.CleanUp {
		return text
	}
	text = s.pending + text
	cut := len(text)
	if !last {
		cut = cleanUpCut(text)
	}
	s.pending = text[cut:]
	return spaceCleanup.apply(text[:cut])
}

// cleanUpCut returns the last position that no replacement of spaceCleanup spans:
// before a space that neither follows an apostrophe nor starts " ' ", which is replaced
// as a whole.
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

// Decode converts ids to text; skipSpecial omits special tokens. Ids outside the
// vocabulary are ignored, and bytes that form no character become U+FFFD.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	s := t.NewStream(skipSpecial)
	for _, id := range ids {
		s.add(id)
	}
	return s.Flush()
}
