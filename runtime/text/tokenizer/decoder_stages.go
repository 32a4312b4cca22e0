package tokenizer

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// wholeToken collects the chunks of one token.
type wholeToken struct{ buf string }

// add returns the token when it is complete.
func (w *wholeToken) add(text string, begin, end bool) (string, bool) {
	if begin {
		w.buf = ""
	}
	w.buf += text
	return w.buf, end
}

// mapStage rewrites each token independently; i counts tokens.
type mapStage struct {
	whole wholeToken
	count int
	f     func(i int, token string) string
}

func tokenMap(f func(i int, token string) string) stageMaker {
	return func() decodeStage { return &mapStage{f: f} }
}

func (s *mapStage) push(text string, begin, end bool, out sink) {
	if token, ok := s.whole.add(text, begin, end); ok {
		out(s.f(s.count, token), true, true)
		s.count++
	}
}

func (s *mapStage) flush(sink) {}

// fuseStage joins all tokens to one.
type fuseStage struct{ begun bool }

func (s *fuseStage) push(text string, _, _ bool, out sink) {
	out(text, !s.begun, false)
	s.begun = true
}

func (s *fuseStage) flush(out sink) { out("", !s.begun, true) }

// byteLevelStage converts GPT-2's byte alphabet to bytes and these to text, as one
// token; an incomplete character waits for its other bytes.
type byteLevelStage struct {
	whole wholeToken
	fuse  fuseStage
	tail  []byte
}

func (s *byteLevelStage) push(text string, begin, end bool, out sink) {
	token, ok := s.whole.add(text, begin, end)
	if !ok {
		return
	}
	text2, tail := lossyUTF8(append(s.tail, fromByteAlphabet(token)...))
	s.tail = append([]byte(nil), tail...)
	s.fuse.push(string(text2), true, true, out)
}

func (s *byteLevelStage) flush(out sink) {
	if len(s.tail) > 0 {
		s.fuse.push("\uFFFD", true, true, out)
		s.tail = nil
	}
	s.fuse.flush(out)
}

// byteFallbackStage converts runs of <0xXX> tokens: to text if the whole run is valid
// UTF-8, else to one U+FFFD per byte.
type byteFallbackStage struct {
	whole wholeToken
	run   []byte
}

func (s *byteFallbackStage) push(text string, begin, end bool, out sink) {
	token, ok := s.whole.add(text, begin, end)
	if !ok {
		return
	}
	if b, ok := byteToken(token); ok {
		s.run = append(s.run, b)
		return
	}
	s.flush(out)
	out(token, true, true)
}

func (s *byteFallbackStage) flush(out sink) {
	if len(s.run) == 0 {
		return
	}
	if utf8.Valid(s.run) {
		out(string(s.run), true, true)
	} else {
		for range s.run {
			out("\uFFFD", true, true)
		}
	}
	s.run = nil
}

// byteToken parses <0xXX>.
func byteToken(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	v, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(v), err == nil
}

// stripStage removes up to start characters from the front and up to stop from the end
// of every token.
type stripStage struct {
	content     string
	start, stop int
	cut         int    // characters removed from the front of this token
	middle      bool   // the front of the token is done
	pending     string // characters at the end that may have to be removed
}

func (s *stripStage) push(text string, begin, end bool, out sink) {
	first := begin
	if begin {
		s.cut, s.middle, s.pending = 0, false, ""
	}
	for !s.middle && text != "" {
		if s.cut < s.start && strings.HasPrefix(text, s.content) {
			text = text[len(s.content):]
			s.cut++
			continue
		}
		s.middle = true
	}
	text = s.pending + text
	keep := text
	for n := 0; n < s.stop && strings.HasSuffix(keep, s.content); n++ {
		keep = strings.TrimSuffix(keep, s.content)
	}
	s.pending = text[len(keep):]
	out(keep, first, end)
}

func (s *stripStage) flush(sink) {}

// suffixStage decodes BPE with an end-of-word suffix: the suffix becomes a space,
// except in the last token.
type suffixStage struct {
	whole   wholeToken
	suffix  string
	pending string
	have    bool
}

func (s *suffixStage) push(text string, begin, end bool, out sink) {
	token, ok := s.whole.add(text, begin, end)
	if !ok {
		return
	}
	s.emit(" ", out)
	s.pending, s.have = token, true
}

func (s *suffixStage) emit(blank string, out sink) {
	if s.have {
		if s.suffix != "" {
			s.pending = strings.ReplaceAll(s.pending, s.suffix, blank)
		}
		out(s.pending, true, true)
		s.have = false
	}
}

func (s *suffixStage) flush(out sink) { s.emit("", out) }

// ctcStage collapses repeats, drops padding and replaces the word delimiter by a space
// (connectionist temporal classification, Graves et al. 2006).
type ctcStage struct {
	whole          wholeToken
	pad, delimiter string
	cleanup        bool
	last           string
	begun          bool
}

func newCTC(c *Component) stageMaker {
	pad, delimiter := "<pad>", "|"
	if c.PadToken != nil {
		pad = *c.PadToken
	}
	if c.WordDelimiter != nil {
		delimiter = *c.WordDelimiter
	}
	return func() decodeStage { return &ctcStage{pad: pad, delimiter: delimiter, cleanup: orTrue(c.Cleanup)} }
}

func (s *ctcStage) push(text string, begin, end bool, out sink) {
	token, ok := s.whole.add(text, begin, end)
	if !ok || (s.begun && token == s.last) {
		return
	}
	s.last, s.begun = token, true
	if s.pad != "" {
		token = strings.ReplaceAll(token, s.pad, "")
	}
	if s.cleanup {
		token = wordPieceCleanup.apply(token)
		if s.delimiter != "" {
			token = strings.ReplaceAll(token, s.delimiter, " ")
		}
	}
	if token != "" {
		out(token, true, true)
	}
}

func (s *ctcStage) flush(sink) {}
