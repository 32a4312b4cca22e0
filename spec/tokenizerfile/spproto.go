package tokenizerfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// Values of TrainerSpec.model_type.
const (
	spUnigram = 1
	spBPE     = 2
)

// An spModel is the part of a SentencePiece .model file that affects encoding.
type spModel struct {
	Pieces       []spPiece
	Type         int // TrainerSpec.model_type
	UnkID        int
	UnkPiece     string
	UnkSurface   string
	ByteFallback bool

	Charsmap     []byte
	DummyPrefix  bool
	RemoveSpaces bool // remove_extra_whitespaces
}

type spPiece struct {
	Text  string
	Score float32
	Type  int
}

// A protoField is one field of a protobuf message.
type protoField struct {
	number int
	wire   int
	value  uint64 // wire types 0, 1 and 5
	bytes  []byte // wire type 2
}

// A protoReader reads the fields of a message without copying. It checks every
// length against the remaining bytes.
type protoReader struct {
	data []byte
	base int // offset of data in the file, for errors
	pos  int
}

func (r *protoReader) fail(what string) error {
	return fmt.Errorf("offset %d: %s; is this a SentencePiece model?", r.base+r.pos, what)
}

func (r *protoReader) varint() (uint64, error) {
	v, n := binary.Uvarint(r.data[r.pos:])
	if n <= 0 {
		return 0, r.fail("number expected")
	}
	r.pos += n
	return v, nil
}

// next reads one field; ok is false at the end of the message.
func (r *protoReader) next() (f protoField, ok bool, err error) {
	if r.pos == len(r.data) {
		return f, false, nil
	}
	key, err := r.varint()
	if err != nil {
		return f, false, err
	}
	if key>>3 == 0 || key>>3 > 1<<29 {
		return f, false, r.fail(fmt.Sprintf("field number %d is not valid", key>>3))
	}
	f.number, f.wire = int(key>>3), int(key&7)
	size := uint64(0)
	switch f.wire {
	case 0:
		f.value, err = r.varint()
		return f, err == nil, err
	case 1:
		size = 8
	case 5:
		size = 4
	case 2:
		if size, err = r.varint(); err != nil {
			return f, false, err
		}
	default:
		return f, false, r.fail(fmt.Sprintf("wire type %d is not supported", f.wire))
	}
	if size > uint64(len(r.data)-r.pos) {
		return f, false, r.fail(fmt.Sprintf("field %d has %d bytes, but only %d remain", f.number, size, len(r.data)-r.pos))
	}
	f.bytes = r.data[r.pos : r.pos+int(size)]
	r.pos += int(size)
	if f.wire == 5 {
		f.value = uint64(binary.LittleEndian.Uint32(f.bytes))
	}
	return f, true, nil
}

// eachField calls visit for every field of a message.
func eachField(data []byte, base int, visit func(f protoField, offset int) error) error {
	r := &protoReader{data: data, base: base}
	for {
		f, ok, err := r.next()
		if err != nil || !ok {
			return err
		}
		if err := visit(f, base+r.pos-len(f.bytes)); err != nil {
			return err
		}
	}
}

// parseSentencePiece parses a ModelProto.
func parseSentencePiece(data []byte) (*spModel, error) {
	m := &spModel{Type: spUnigram, UnkPiece: "<unk>", UnkSurface: " \u2047 ", DummyPrefix: true, RemoveSpaces: true}
	err := eachField(data, 0, func(f protoField, offset int) error {
		if f.wire != 2 {
			return nil
		}
		switch f.number {
		case 1:
			return m.piece(f.bytes, offset)
		case 2:
			return m.trainer(f.bytes, offset)
		case 3:
			return m.normalizer(f.bytes, offset)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(m.Pieces) == 0 {
		return nil, fmt.Errorf("no pieces found; is this a SentencePiece model?")
	}
	if m.Type != spUnigram && m.Type != spBPE {
		return nil, fmt.Errorf("model_type %d is not supported; expected 1 (unigram) or 2 (bpe)", m.Type)
	}
	m.UnkID = -1
	for i, p := range m.Pieces {
		if p.Type == tokenizer.PieceUnknown {
			m.UnkID, m.UnkPiece = i, p.Text
			break
		}
	}
	return m, nil
}

func (m *spModel) piece(data []byte, base int) error {
	p := spPiece{Type: tokenizer.PieceNormal}
	err := eachField(data, base, func(f protoField, _ int) error {
		switch {
		case f.number == 1 && f.wire == 2:
			p.Text = string(f.bytes)
		case f.number == 2 && f.wire == 5:
			p.Score = math.Float32frombits(uint32(f.value))
		case f.number == 3 && f.wire == 0:
			p.Type = int(min(f.value, 100))
		}
		return nil
	})
	if err == nil && (!utf8.ValidString(p.Text) || p.Score != p.Score) {
		err = fmt.Errorf("offset %d: piece %d has invalid UTF-8 or a score that is not a number", base, len(m.Pieces))
	}
	m.Pieces = append(m.Pieces, p)
	return err
}

func (m *spModel) trainer(data []byte, base int) error {
	return eachField(data, base, func(f protoField, _ int) error {
		switch {
		case f.number == 3 && f.wire == 0:
			m.Type = int(min(f.value, 100))
		case f.number == 35 && f.wire == 0:
			m.ByteFallback = f.value != 0
		case f.number == 44 && f.wire == 2:
			m.UnkSurface = string(f.bytes)
		}
		return nil
	})
}

func (m *spModel) normalizer(data []byte, base int) error {
	return eachField(data, base, func(f protoField, _ int) error {
		switch {
		case f.number == 2 && f.wire == 2:
			m.Charsmap = f.bytes
		case f.number == 3 && f.wire == 0:
			m.DummyPrefix = f.value != 0
		case f.number == 4 && f.wire == 0:
			m.RemoveSpaces = f.value != 0
		}
		return nil
	})
}
