package speculate

// Limits of prompt lookup.
const (
	lookupChain = 16 // earlier occurrences that are compared, the latest first
	lookupMatch = 32 // maximum tokens of a match
	lookupMax   = 32 // maximum tokens of a draft
)

// A Lookup drafts the tokens that followed an earlier occurrence of the last tokens, in
// the prompt or the generated text (prompt lookup decoding; Saxena 2023). It selects
// the longest match, the latest among equals. Its measured acceptance rates limit the
// draft's length. They include tokens that were not drafted, so that a text without
// repetition costs no step. Each token takes constant time.
type Lookup struct {
	single map[int32]int32  // token → index of its last occurrence
	pair   map[uint64]int32 // pair of tokens → index of the second token of its last occurrence
	before []int32          // for each index, that of the previous occurrence of its pair; -1: none
	done   int              // indexed tokens of history

	ahead  []int32 // tokens after the match
	length int     // of the match
	record [len(lookupPriors)]Rate
}

// lookupPriors are the acceptance rates of drafted tokens before any are measured, by
// class of match length; see lookupClass.
var lookupPriors = [...]float64{0.05, 0.25, 0.5, 0.65, 0.75, 0.85, 0.92}

// lookupClass returns the class of a match of n tokens: 1, 2, 3, 4–5, 6–8, 9–16, or
// more.
func lookupClass(n int) int {
	for i, last := range [...]int{1, 2, 3, 5, 8, 16} {
		if n <= last {
			return i
		}
	}
	return len(lookupPriors) - 1
}

// NewLookup returns the drafter of one sequence.
func NewLookup() *Lookup {
	l := &Lookup{single: map[int32]int32{}, pair: map[uint64]int32{}}
	for i, p := range lookupPriors {
		l.record[i] = NewRate(p)
	}
	return l
}

// Propose implements Drafter.
func (l *Lookup) Propose(history []int32, room Room) Draft {
	if len(history) < l.done { // a different text
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

// find indexes the new tokens of history and looks up what followed its end earlier.
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
		l.ahead = history[best+1:][:min(lookupMax, len(history)-best-1)]
	}
}

// longest returns the earlier occurrence with the longest match, among the latest of
// the last pair.
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
