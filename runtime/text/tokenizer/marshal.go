package tokenizer

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
)

// The serialized form: magic, then five parts, each a uvarint count and its elements.
// Parts one to three are the definition as JSON (bytes), the vocabulary and the inner
// vocabulary of a SentencePiece model. A vocabulary stores for each token the
// difference of its id from the expected one (varint) and its length (uvarint), then
// all texts. Part four is the scores (float64), part five the merges: left, right and
// merged id (uvarints).
const magic = "iflowc tokenizer 1\n"

// Marshal encodes the whole tokenizer in a compact form.
func (t *Tokenizer) Marshal() ([]byte, error) {
	head, err := json.Marshal(t.def)
	if err != nil {
		return nil, fmt.Errorf("tokenizer definition: %w", err)
	}
	m := &t.def.Model
	out := append([]byte(magic), binary.AppendUvarint(nil, uint64(len(head)))...)
	out = append(out, head...)
	inner := &vocabulary{}
	if sp, ok := t.model.(*sentencePiece); ok {
		inner = sp.inner
	}
	out = appendVocab(out, t.vocab)
	out = appendVocab(out, inner)
	out = binary.AppendUvarint(out, uint64(len(m.Scores)))
	for _, s := range m.Scores {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(s))
	}
	out = binary.AppendUvarint(out, uint64(len(m.Merges)))
	for _, r := range m.Merges {
		out = binary.AppendUvarint(out, uint64(uint32(r.Left)))
		out = binary.AppendUvarint(out, uint64(uint32(r.Right)))
		out = binary.AppendUvarint(out, uint64(uint32(r.Into)))
	}
	return out, nil
}

func appendVocab(out []byte, v *vocabulary) []byte {
	out = binary.AppendUvarint(out, uint64(len(v.ends)))
	last := int64(-1)
	for e := range v.entries() {
		out = binary.AppendVarint(out, int64(e.ID)-last-1)
		out = binary.AppendUvarint(out, uint64(len(e.Token)))
		last = int64(e.ID)
	}
	return append(out, v.text...)
}

// Unmarshal decodes a tokenizer encoded by Marshal.
func Unmarshal(data string) (*Tokenizer, error) {
	r := &binaryReader{data: data}
	if r.bytes(uint64(len(magic))) != magic {
		return nil, fmt.Errorf("serialized tokenizer: offset 0: expected %q; was it written by another version?", magic)
	}
	d := &Definition{}
	if err := json.Unmarshal([]byte(r.bytes(r.uvarint())), d); err != nil && r.err == nil {
		return nil, wrap("serialized tokenizer", err)
	}
	d.Model.Vocab = r.vocab()
	d.Model.Inner = r.vocab()
	r.scores(&d.Model)
	r.merges(&d.Model)
	if r.err == nil && r.pos != len(data) {
		r.err = fmt.Errorf("serialized tokenizer: offset %d: %d bytes are left over", r.pos, len(data)-r.pos)
	}
	if r.err != nil {
		return nil, r.err
	}
	t, err := New(d)
	if err != nil {
		return nil, wrap("serialized tokenizer", err)
	}
	return t, nil
}

// binaryReader reads with bounds checks; after the first error it returns zeros.
type binaryReader struct {
	data string
	pos  int
	err  error
}

func (r *binaryReader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("serialized tokenizer: offset %d: %s", r.pos, what)
	}
	r.pos = len(r.data)
}

func (r *binaryReader) bytes(n uint64) string {
	if n > uint64(len(r.data)-r.pos) {
		r.fail(fmt.Sprintf("%d bytes expected, %d left", n, len(r.data)-r.pos))
		return ""
	}
	out := r.data[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return out
}

func (r *binaryReader) uvarint() uint64 {
	v := uint64(0)
	for i, b := range []byte(r.data[r.pos:min(r.pos+binary.MaxVarintLen64, len(r.data))]) {
		if v |= uint64(b&0x7f) << (7 * i); b < 0x80 {
			r.pos += i + 1
			return v
		}
	}
	r.fail("number expected")
	return 0
}

func (r *binaryReader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1) // zigzag encoding: the lowest bit is the sign
}

// count reads the number of elements, which have at least size bytes each.
func (r *binaryReader) count(size int) int {
	n := r.uvarint()
	if n > uint64((len(r.data)-r.pos)/size) {
		r.fail(fmt.Sprintf("%d elements do not fit in the %d bytes left", n, len(r.data)-r.pos))
		return 0
	}
	return int(n)
}

func (r *binaryReader) vocab() []Entry {
	out := make([]Entry, r.count(2))
	lengths := make([]uint64, len(out))
	last, total := int64(-1), uint64(0)
	for i := range out {
		last += r.varint() + 1
		lengths[i] = r.uvarint()
		if last < 0 || last > math.MaxInt32 || lengths[i] > uint64(len(r.data)) {
			r.fail(fmt.Sprintf("token %d has id %d and %d bytes", i, last, lengths[i]))
			return nil
		}
		out[i].ID = int32(last)
		total += lengths[i]
	}
	text := r.bytes(total)
	if r.err != nil {
		return nil
	}
	for i, n := range lengths {
		out[i].Token, text = text[:n], text[n:]
	}
	return out
}

func (r *binaryReader) scores(m *Model) {
	m.Scores = make([]float64, r.count(8))
	raw := r.bytes(8 * uint64(len(m.Scores)))
	for i := range m.Scores {
		if r.err == nil {
			m.Scores[i] = math.Float64frombits(binary.LittleEndian.Uint64([]byte(raw[8*i : 8*i+8])))
		}
	}
}

func (r *binaryReader) merges(m *Model) {
	m.Merges = make([]Merge, r.count(3))
	for i := range m.Merges {
		m.Merges[i] = Merge{int32(r.uvarint()), int32(r.uvarint()), int32(r.uvarint())}
	}
}
