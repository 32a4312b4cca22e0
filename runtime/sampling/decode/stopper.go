package decode

import "strings"

// A Stopper passes text through until a stop word, and holds back text that may be the
// start of one.
type Stopper struct {
	Words []string
	Done  bool // a stop word was found: nothing follows
	held  string
}

// Push adds text and returns the part that certainly precedes any stop word.
func (s *Stopper) Push(text string) string {
	if s.Done {
		return ""
	}
	if len(s.Words) == 0 {
		return text
	}
	text = s.held + text
	s.held = ""
	first := len(text)
	for _, w := range s.Words {
		if i := strings.Index(text, w); i >= 0 && i < first {
			first, s.Done = i, true
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
