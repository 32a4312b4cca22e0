package tokenizer

import "github.com/iflowc/iflowc/runtime/text/regexp"

// lattice finds the best segmentation of a text into scored pieces.
type lattice struct {
	trie     pieceTrie
	scores   []float64 // by id
	unk      int32
	unkScore float64
	single   bool // use float32 sums, as SentencePiece does
}

func (l *lattice) round(score float64) float64 {
	if l.single {
		return float64(float32(score))
	}
	return score
}

// pieceTrie is a byte trie; edges are indexed by (node, byte).
type pieceTrie struct {
	edges map[uint64]int32
	ids   []int32 // by node; -1: no piece ends here
}

func (t *pieceTrie) add(s string, id int32) {
	if t.edges == nil {
		t.edges = map[uint64]int32{}
		t.ids = []int32{-1}
	}
	at := int32(0)
	for i := range len(s) {
		key := uint64(at)<<8 | uint64(s[i])
		to, ok := t.edges[key]
		if !ok {
			to = int32(len(t.ids))
			t.ids = append(t.ids, -1)
			t.edges[key] = to
		}
		at = to
	}
	if at > 0 {
		t.ids[at] = id
	}
}

// bestPath is the best path to one byte position.
type bestPath struct {
	score float64
	start int32 // start of the last piece; -1: unreachable
	id    int32
}

// viterbi computes the best path to every position; among equal scores the first one
// found wins.
func (l *lattice) viterbi(s string) []bestPath {
	best := make([]bestPath, len(s)+1)
	for i := range best {
		best[i].start = -1
	}
	best[0].start = 0
	for at := 0; at < len(s); {
		here := best[at].score
		width := regexp.RuneLen(s, at)
		single := false
		node := int32(0)
		for end := at; end < len(s); {
			to, ok := l.trie.edges[uint64(node)<<8|uint64(s[end])]
			if !ok {
				break
			}
			node = to
			end++
			id := l.trie.ids[node]
			if id < 0 {
				continue
			}
			relax(&best[end], l.round(here+l.scores[id]), at, id)
			single = single || end-at == width
		}
		if !single {
			relax(&best[at+width], l.round(here+l.unkScore), at, l.unk)
		}
		at += width
	}
	return best
}

func relax(b *bestPath, score float64, start int, id int32) {
	if b.start < 0 || score > b.score {
		*b = bestPath{score, int32(start), id}
	}
}
