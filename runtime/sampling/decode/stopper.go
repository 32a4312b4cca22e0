package decode

import "strings"

// A Stopper lets text through until one of its words comes, and holds back
// what may be the beginning of one.
type Stopper struct {
	Words []string
	Done  bool // a word came: nothing follows
	held  string
}

// Push adds text and returns what is certain to stand before any stop word.
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

// Flush returns what was held back: no word came.
func (s *Stopper) Flush() string {
	text := s.held
	s.held = ""
	return text
}
