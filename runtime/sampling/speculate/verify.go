package speculate

import (
	"slices"

	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// A Judge picks the token behind a node of a draft (-1: behind the sequence's
// last token), where drafted was drafted, -1 for nothing, from a distribution,
// nil for no randomness; it says whether the text goes on.
type Judge func(node int, drafted int32, from []decode.TokenProb) (token int32, more bool, err error)

// Walk follows a draft as far as the picked tokens go its way. It returns the
// nodes that were accepted, from the first on; one more token was picked behind
// the last of them.
//
// A judge may leave aside what was drafted and draw from the model's own
// distribution: the drafted token is accepted when it is the same, so that the
// text is what it is without drafts, for every way of picking. From the
// distribution of a draft that was drawn at random, it may accept more.
func Walk(d Draft, judge Judge) (path []int, err error) { return WalkAlong(d, nil, judge) }

// WalkAlong is Walk with a preferred path, nil for none: its nodes are what was
// drafted, and behind them nothing was.
func WalkAlong(d Draft, preferred []int, judge Judge) (path []int, err error) {
	for node := -1; ; {
		drafted, from := int32(-1), []decode.TokenProb(nil)
		if n := len(path); n < len(preferred) && slices.Equal(path, preferred[:n]) {
			drafted = d.Tokens[preferred[n]]
		}
		for i := node + 1; i < d.Len() && preferred == nil; i++ {
			if int(d.Parent[i]) == node {
				if drafted = d.Tokens[i]; i < len(d.From) {
					from = d.From[i]
				}
				break
			}
		}
		token, more, err := judge(node, drafted, from)
		if err != nil || !more {
			return path, err
		}
		if node = d.Child(node, token); node < 0 {
			return path, nil
		}
		path = append(path, node)
	}
}
