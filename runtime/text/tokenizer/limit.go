package tokenizer

import (
	"errors"
	"fmt"
)

// A Limit bounds the work of one text that nobody has looked at. The zero value
// bounds nothing.
type Limit struct {
	Bytes  int          // most bytes of the text
	Tokens int          // most tokens; what lies behind is not read
	Tick   func() error // called often; its error ends the work
}

// ErrLong is the error of a text that is longer than its Limit.
var ErrLong = errors.New("the text is too long")

// tickPieces is how many pieces, mostly words, are read between two ticks: some
// ten microseconds.
const tickPieces = 64

// check refuses a text before anything is done with it.
func (l *Limit) check(text string) error {
	if l.Bytes > 0 && len(text) > l.Bytes {
		return fmt.Errorf("%w: %d bytes, of at most %d", ErrLong, len(text), l.Bytes)
	}
	return nil
}

// passed is called with the tokens so far after piece n of a text.
func (l *Limit) passed(n, tokens int) error {
	if l.Tokens > 0 && tokens > l.Tokens {
		return fmt.Errorf("%w: over %d tokens", ErrLong, l.Tokens)
	}
	if l.Tick != nil && n%tickPieces == 0 {
		return l.Tick()
	}
	return nil
}

// EncodeWithin is Encode for a text that may be longer than its limit.
func (t *Tokenizer) EncodeWithin(text string, special bool, l Limit) ([]int32, error) {
	if err := l.check(text); err != nil {
		return nil, err
	}
	ids, err := t.encode(validUTF8(text), l)
	if err != nil {
		return nil, err
	}
	if special {
		ids = t.post.apply(ids)
	}
	return ids, nil
}

// Longest is how many bytes of a text a token stands for at most.
func (t *Tokenizer) Longest() int {
	longest := 1
	for id := range int32(t.vocab.size()) {
		longest = max(longest, len(t.Bytes(id)))
	}
	for _, a := range t.added.tokens {
		longest = max(longest, len(a.Content))
	}
	return longest
}
