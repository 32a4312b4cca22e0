package speculate

import (
	"slices"

	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// A Judge picks the token after a node of a draft (-1: after the sequence's last
// token). drafted is the drafted token, -1 for none, and from the distribution from
// which it was sampled, nil if it was not. more reports whether the sequence continues.
type Judge func(node int, drafted int32, from []decode.TokenProb) (token int32, more bool, err error)

// Walk follows a draft as far as the picked tokens agree. It returns the accepted nodes
// in order; judge has picked one more token after the last of them.
//
// A judge may ignore the draft and sample from the model's distribution; a drafted
// token is then accepted if it equals the sample, so the result is that of plain
// decoding with any sampling method. For a sampled draft, a judge may accept more
// tokens without changing the distribution.
func Walk(d Draft, judge Judge) (path []int, err error) { return WalkAlong(d, nil, judge) }

// WalkAlong is Walk along a selected path: judge is offered only the nodes of
// preferred. If preferred is nil, it is offered the first child of each node.
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
