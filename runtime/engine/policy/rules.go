package policy

import "fmt"

// A Rule is a part of the policy that can be disabled, so that the simulator can
// measure its effect.
type Rule uint

// The rules.
const (
	ShortestFirst  Rule = 1 << iota // prompts with the fewest pending tokens first
	OvertakeLimit                   // shorter prompts overtake a prompt in at most maxOvertaken consecutive steps
	IdleStretch                     // steps may be longer while no request decodes
	DecodeStretch                   // steps with prompts may last a multiple of a decode-only step
	BurstStretch                    // steps may be longer while many requests wait and few decode
	PrefillBarrier                  // requests of a burst start decoding together
	TileRounding                    // steps are rounded to full tiles of rows
	DraftLimit                      // drafts stretch a step at most stretch times
	Aging                           // waiting requests become more urgent
	ClientFairness                  // a free slot goes to the client with the fewest live sequences
)

// A RuleName is a rule with its name.
type RuleName struct {
	Rule Rule
	Name string
}

// Rules lists all rules.
var Rules = []RuleName{
	{ShortestFirst, "shortest-first"}, {OvertakeLimit, "overtake-limit"}, {IdleStretch, "idle-stretch"},
	{DecodeStretch, "decode-stretch"}, {BurstStretch, "burst-stretch"}, {PrefillBarrier, "prefill-barrier"},
	{TileRounding, "tile-rounding"}, {DraftLimit, "draft-limit"}, {Aging, "aging"}, {ClientFairness, "client-fairness"},
}

// FindRule returns the rule with the given name.
func FindRule(name string) (RuleName, error) {
	names := ""
	for _, r := range Rules {
		if r.Name == name {
			return r, nil
		}
		names += " " + r.Name
	}
	return RuleName{}, fmt.Errorf("no rule %q; there are:%s", name, names)
}

func (in *Input) off(r Rule) bool { return in.Objective.Without&r != 0 }
