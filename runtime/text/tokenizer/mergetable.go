package tokenizer

// mergeTable looks up the merge of a pair of adjacent tokens. In addition to the list
// of merges it needs 8 to 16 bytes per merge.
type mergeTable struct {
	merges []Merge
	ranks  []int32 // of each merge; nil: its index
	table  []int32 // indices by hash of the pair, −1: free
}

type mergeRule struct{ rank, into int32 }

// newMergeTable keeps both lists. Among merges of the same pair the last one wins.
func newMergeTable(merges []Merge, ranks []int32) mergeTable {
	t := mergeTable{merges: merges, ranks: ranks, table: newPlaces(2 * len(merges))}
	for i, m := range merges {
		t.table[t.slot(m.Left, m.Right)] = int32(i)
	}
	return t
}

// slot returns the table slot of a pair, or a free one. The table always has a free
// slot.
func (t *mergeTable) slot(left, right int32) int {
	mask := len(t.table) - 1
	key := (uint64(uint32(left))<<32 | uint64(uint32(right))) * 0x9e3779b97f4a7c15 // 2⁶⁴ divided by the golden ratio: Fibonacci hashing
	for at := int(key>>32) & mask; ; at = (at + 1) & mask {
		i := t.table[at]
		if i < 0 || t.merges[i].Left == left && t.merges[i].Right == right {
			return at
		}
	}
}

func (t *mergeTable) find(left, right int32) (mergeRule, bool) {
	i := t.table[t.slot(left, right)]
	if i < 0 {
		return mergeRule{}, false
	}
	rank := i
	if t.ranks != nil {
		rank = t.ranks[i]
	}
	return mergeRule{rank, t.merges[i].Into}, true
}
