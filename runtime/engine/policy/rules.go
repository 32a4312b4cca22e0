package policy

import "fmt"

// A Rule is a part of the policy that can be switched off, so that the simulator
// can measure what it is good for.
type Rule uint

// The rules.
const (
	ShortestFirst  Rule = 1 << iota // prompts with the fewest tokens left first
	OvertakeLimit                   // a prompt is overtaken at most maxOvertaken times in a row
	IdleStretch                     // steps may be longer while nobody generates
	DecodeStretch                   // steps with prompts may take a multiple of those without
	BurstStretch                    // steps may be longer still where many wait and few generate
	PrefillBarrier                  // requests of a burst begin to generate together
	TileRounding                    // a step ends with a full tile of rows
	DraftLimit                      // drafts make a step at most stretch times as long
	Aging                           // waiting requests become more urgent
	ClientFairness                  // a free slot goes to the client with the fewest live sequences
)

// A RuleName is a rule and its name.
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

// FindRule is the rule of a name.
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
