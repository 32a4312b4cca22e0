package decode

import "strings"

// A Stopper passes text through until a stop word, and holds back text that may be the
// start of one.
type Stopper struct {
	Words []string
	Done  bool   // nothing follows
	Word  string // the stop word that was found; "": none
	held  string
	last  bool
}

// End makes the next Push the last one.
func (s *Stopper) End() { s.last = true }

// Push adds text and returns the part that certainly precedes any stop word.
func (s *Stopper) Push(text string) string {
	if s.Done {
		return ""
	}
	s.Done = s.last
	text = s.held + text
	s.held = ""
	first := len(text)
	for _, w := range s.Words {
		if i := strings.Index(text, w); i >= 0 && i < first {
			first, s.Word, s.Done = i, w, true
		}
	}
	if s.Done {
		return text[:first]
	}
	keep := 0
	for _, w := range s.Words {
		for n := min(len(w)-1, len(text)); n > keep; n-- {
			if strings.HasSuffix(text, w[:n]) {
				keep = n
			}
		}
	}
	s.held = text[len(text)-keep:]
	return text[:len(text)-keep]
}

// Flush returns the text held back, when the text ends without a stop word.
func (s *Stopper) Flush() string {
	text := s.held
	s.held = ""
	return text
}
