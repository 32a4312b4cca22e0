package decode

import "strings"

// BeamStrategy is the name of beam search among the strategies. It looks at
// several sequences at once, so that it is no Strategy but a BeamSearch.
const BeamStrategy = "beam"

// maxBeams is how many beams a strategy's name may ask for.
const maxBeams = 64

// ParseBeams reads a strategy's name with its parameters; false: it is not beam
// search. early_stopping 1 stops with enough hypotheses, 2 only when none can
// get better, as "never" does.
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
