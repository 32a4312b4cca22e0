package decode

import (
	"fmt"
	"strings"
)

// BeamStrategy is the name of beam search among the strategies. It looks at
// several sequences at once, so that it is no Strategy but a BeamSearch.
const BeamStrategy = "beam"

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
	if n := p["beams"]; n < 1 || n > 64 || n != float64(int(n)) || p["early_stopping"] > float64(StopNever) || p["early_stopping"] != float64(int(p["early_stopping"])) {
		return opt, true, fmt.Errorf("strategy %s: beams=%v, early_stopping=%v: expected 1 to 64 and 0 to 2", name, n, p["early_stopping"])
	}
	return BeamOptions{Beams: p.whole("beams"), LengthPenalty: p["length_penalty"], Stopping: Stopping(p.whole("early_stopping"))}, true, nil
}
