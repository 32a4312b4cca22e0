package decode

import "strings"

// BeamStrategy is the name of beam search among the strategies. It is implemented by
// BeamSearch, not by a Strategy, because it ranks several sequences.
const BeamStrategy = "beam"

// maxBeams bounds the beams in a strategy's parameters.
const maxBeams = 64

// ParseBeams parses a strategy's name with its parameters; ok is false if it is not
// beam search. early_stopping is 0, 1 (true) or 2 ("never").
func ParseBeams(text string) (opt BeamOptions, ok bool, err error) {
	name, list, _ := strings.Cut(text, ":")
	if name != BeamStrategy && name != "beam_search" {
		return opt, false, nil
	}
	p := params{"beams": 4, "length_penalty": 1, "early_stopping": 0}
	if err := p.read(name, list); err != nil {
		return opt, true, err
	}
	return BeamOptions{Beams: p.whole("beams"), LengthPenalty: p["length_penalty"], Stopping: Stopping(p.whole("early_stopping"))}, true, nil
}
