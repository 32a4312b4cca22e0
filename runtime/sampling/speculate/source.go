package speculate

// sourced is a drafter that sees a source in front of every text.
type sourced struct {
	Drafter
	source int     // tokens of it
	text   []int32 // behind it, the sequence
}

// Behind lets a drafter find what follows in what an encoder read, too: much of it
// stands in a correction, a summary or an answer again.
func Behind(source []int32, d Drafter) Drafter {
	return &sourced{d, len(source), append([]int32(nil), source...)}
}

// Propose implements Drafter.
func (s *sourced) Propose(history []int32, room Room) Draft {
	s.text = append(s.text[:s.source], history...)
	return s.Drafter.Propose(s.text, room)
}
