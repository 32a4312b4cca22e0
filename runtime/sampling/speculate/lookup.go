package speculate

// Limits of prompt lookup.
const (
	lookupChain = 16 // places that are compared, the latest first
	lookupMatch = 32 // tokens that are compared
	lookupMost  = 32 // tokens of a draft
)

// A Lookup drafts what followed the last tokens where they stood before, in the
// prompt or in what was generated (prompt lookup; Saxena 2023). Of all places it
// takes the one with the longest match, of equals the latest. It drafts only as
// many tokens as its own record says will pay: also what was not drafted is
// compared with what came, so that a text that repeats nothing costs no step.
// One token takes constant time.
type Lookup struct {
	single map[int32]int32  // token → where it stood last
	pair   map[uint64]int32 // two tokens → where the second stood last
	before []int32          // for each place, where its pair stood before that; -1: nowhere
	done   int              // tokens of history that are indexed

	ahead  []int32 // what would follow, as long as it goes
	length int     // of the match behind it
	record [len(lookupPriors)]Rate
}

// lookupPriors are how often a draft's token is right before anything is known,
// by the class of its match; see lookupClass.
var lookupPriors = [...]float64{0.05, 0.25, 0.5, 0.65, 0.75, 0.85, 0.92}

// lookupClass sorts matches of 1, 2, 3, 4…5, 6…8, 9…16 and more tokens.
func lookupClass(n int) int {
	for i, last := range [...]int{1, 2, 3, 5, 8, 16} {
		if n <= last {
			return i
		}
	}
	return len(lookupPriors) - 1
}

// NewLookup makes the drafter of one sequence.
func NewLookup() *Lookup {
	l := &Lookup{single: map[int32]int32{}, pair: map[uint64]int32{}}
	for i, p := range lookupPriors {
		l.record[i] = NewRate(p)
	}
	return l
}

// Propose implements Drafter.
func (l *Lookup) Propose(history []int32, room Room) Draft {
	if len(history) < l.done { // another text
		*l = *NewLookup()
	}
	l.find(history)
	n := room.Open().Length(func(i int) float64 { return l.record[lookupClass(l.length+i)].Value }, len(l.ahead), 0)
	return Draft{Tree: Path(l.ahead[:n]...)}
}

// Observe implements Drafter.
func (l *Lookup) Observe(tokens []int32) {
	for i := 0; i < min(len(tokens), len(l.ahead)); i++ {
		right := tokens[i] == l.ahead[i]
		l.record[lookupClass(l.length+i)].Observe(right)
		if !right {
			return
		}
	}
}

// find indexes what is new in history and looks up what followed its end.
func (l *Lookup) find(history []int32) {
	best, length := -1, 0
	for i := l.done; i < len(history); i++ {
		at, ok := l.single[history[i]]
		l.single[history[i]] = int32(i)
		last := i == len(history)-1
		if last && ok {
			best, length = int(at), 1
		}
		if i == 0 {
			l.before = append(l.before, -1)
			continue
		}
		key := uint64(uint32(history[i-1]))<<32 | uint64(uint32(history[i]))
		at, ok = l.pair[key]
		if !ok {
			at = -1
		}
		l.before = append(l.before, at)
		l.pair[key] = int32(i)
		if last && at >= 0 {
			best, length = l.longest(history, int(at))
		}
	}
	l.done = len(history)
	l.ahead, l.length = nil, length
	if length > 0 {
		l.ahead = history[best+1:][:min(lookupMost, len(history)-best-1)]
	}
}

// longest is the place before the end whose match with the end is longest,
// among those of a chain of equal pairs.
func (l *Lookup) longest(history []int32, at int) (best, length int) {
	end := len(history) - 1
	for range lookupChain {
		if at < 0 {
			break
		}
		n := 2
		for n < lookupMatch && n <= at && history[at-n] == history[end-n] {
			n++
		}
		if n > length {
			best, length = at, n
		}
		if n == lookupMatch {
			break
		}
		at = int(l.before[at])
	}
	return best, length
}
