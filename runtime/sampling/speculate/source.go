package speculate

// sourced is a drafter that sees the source in front of the text.
type sourced struct {
	Drafter         // length of the source
	source  int     // tokens of it
	text    []int32 // the source and the sequence
}

// WithSource returns a drafter that also drafts from the tokens of an encoder's source,
// which corrections, summaries and answers often repeat.
func WithSource(source []int32, d Drafter) Drafter {
	return &sourced{d, len(source), append([]int32(nil), source...)}
}

// Propose implements Drafter.
func (s *sourced) Propose(history []int32, room Room) Draft {
	s.text = append(s.text[:s.source], history...)
	return s.Drafter.Propose(s.text, room)
}
