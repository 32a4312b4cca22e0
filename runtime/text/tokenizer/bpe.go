package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

// bpe is byte-pair encoding by merge rank (Sennrich et al. 2016), with the options of
// Hugging Face's BPE model.
type bpe struct {
	vocab        *vocabulary
	merges       mergeTable
	unk          int32
	hasUnk       bool
	fuseUnk      bool
	byteFallback bool
	ignoreMerges bool
	rawBytes     bool // pieces are raw bytes; tokens are spelled in GPT-2's byte alphabet
	prefix       string
	suffix       string
	byteIDs      [256]int32 // ids of <0xXX> with byteFallback, of the byte alphabet with rawBytes; -1: none
	cache        wordCache
}

func newBPE(d *Model, v *vocabulary, rawBytes bool) (*bpe, error) {
	m := &bpe{
		vocab: v, fuseUnk: d.FuseUnk,
		byteFallback: d.ByteFallback, ignoreMerges: d.IgnoreMerges, rawBytes: rawBytes,
		prefix: d.Prefix, suffix: d.Suffix,
	}
	if d.UnkToken != nil {
		m.unk, m.hasUnk = v.id(*d.UnkToken)
	}
	for i, r := range d.Merges {
		n := int32(v.size())
		if uint32(r.Left) >= uint32(n) || uint32(r.Right) >= uint32(n) || uint32(r.Into) >= uint32(n) {
			return nil, fmt.Errorf("merges[%d]: ids %d + %d -> %d are not all in the vocabulary of %d tokens", i, r.Left, r.Right, r.Into, n)
		}
	}
	m.merges = newMergeTable(d.Merges, nil)
	for b := range 256 {
		name := byteString[b]
		if !rawBytes {
			name = fmt.Sprintf("<0x%02X>", b)
		}
		m.byteIDs[b] = -1
		if id, ok := v.id(name); ok {
			m.byteIDs[b] = id
		}
	}
	m.cache.init()
	return m, nil
}

func (m *bpe) tokenize(ids []int32, piece string) []int32 {
	if piece == "" {
		return ids
	}
	if known, ok := m.cache.get(piece); ok {
		return append(ids, known...)
	}
	start := len(ids)
	ids = m.encode(ids, piece)
	m.cache.put(piece, ids[start:])
	return ids
}

func (m *bpe) encode(ids []int32, piece string) []int32 {
	if m.ignoreMerges {
		spelled := piece
		if m.rawBytes {
			spelled = ByteAlphabet(piece)
		}
		if id, ok := m.vocab.id(spelled); ok {
			return append(ids, id)
		}
	}
	var local mergeWord
	w := &local
	if m.rawBytes && m.prefix == "" && m.suffix == "" {
		m.byteSymbols(w, piece)
	} else {
		if m.rawBytes {
			piece = ByteAlphabet(piece)
		}
		m.charSymbols(w, piece)
	}
	w.mergeAll(&m.merges)
	for i := range w.symbols {
		if w.symbols[i].alive {
			ids = append(ids, w.symbols[i].id)
		}
	}
	return ids
}

// byteSymbols initializes a word from raw bytes, one symbol per byte.
func (m *bpe) byteSymbols(w *mergeWord, piece string) {
	unk := unkRun{m: m, w: w}
	for i := range len(piece) {
		if id := m.byteIDs[piece[i]]; id >= 0 {
			unk.flush()
			w.add(id)
			continue
		}
		unk.add()
	}
	unk.flush()
}

// charSymbols initializes a word from characters.
func (m *bpe) charSymbols(w *mergeWord, piece string) {
	unk := unkRun{m: m, w: w}
	for i := 0; i < len(piece); {
		_, n := utf8.DecodeRuneInString(piece[i:])
		s := piece[i : i+n]
		if i > 0 && m.prefix != "" {
			s = m.prefix + s
		}
		i += n
		if i == len(piece) && m.suffix != "" {
			s += m.suffix
		}
		if id, ok := m.vocab.id(s); ok {
			unk.flush()
			w.add(id)
			continue
		}
		if m.byteFallback && m.fallback(w, s) {
			continue
		}
		unk.add()
	}
	unk.flush()
}

// fallback replaces s by byte tokens if the vocabulary contains all of them. As in the
// reference, a preceding run of unknown characters stays pending.
func (m *bpe) fallback(w *mergeWord, s string) bool {
	for i := range len(s) {
		if m.byteIDs[s[i]] < 0 {
			return false
		}
	}
	for i := range len(s) {
		w.add(m.byteIDs[s[i]])
	}
	return true
}

// unkRun collects unknown symbols; with fuse_unk a run becomes one token.
type unkRun struct {
	m       *bpe
	w       *mergeWord
	pending bool
}

func (u *unkRun) add() {
	if !u.m.hasUnk {
		return
	}
	if u.pending && !u.m.fuseUnk {
		u.w.add(u.m.unk)
	}
	u.pending = true
}

func (u *unkRun) flush() {
	if u.pending {
		u.w.add(u.m.unk)
		u.pending = false
	}
}
