package tokenizer

import (
	"errors"
	"fmt"
)

// A Limit bounds the work for an untrusted text. The zero value sets no limit.
type Limit struct {
	Bytes  int          // maximum bytes of the text
	Tokens int          // maximum tokens; encoding stops there
	Cut    bool         // leave out the rest of a text with more tokens, instead of ErrLong
	Tick   func() error // called regularly; an error stops the encoding
}

// ErrLong reports that a text exceeds its Limit.
var ErrLong = errors.New("the text is too long")

// tickPieces is the number of pieces (mostly words) between two calls of Tick: about
// ten microseconds.
const tickPieces = 64

// check returns an error if the text is too long in bytes.
func (l *Limit) check(text string) error {
	if l.Bytes > 0 && len(text) > l.Bytes {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrLong, len(text), l.Bytes)
	}
	return nil
}

// passed is called after piece n of a text, with the number of tokens so far.
func (l *Limit) passed(n, tokens int) error {
	if l.Tokens > 0 && tokens > l.Tokens {
		return fmt.Errorf("%w: more than %d tokens", ErrLong, l.Tokens)
	}
	if l.Tick != nil && n%tickPieces == 0 {
		return l.Tick()
	}
	return nil
}

// EncodeWithin is like Encode, with a limit for the text's own tokens. It returns ErrLong
// for a longer text, unless the limit cuts it.
func (t *Tokenizer) EncodeWithin(text string, special bool, l Limit) ([]int32, error) {
	if err := l.check(text); err != nil {
		return nil, err
	}
	ids, err := t.encode(validUTF8(text), l)
	if l.Cut && errors.Is(err, ErrLong) {
		ids, err = ids[:l.Tokens], nil
	}
	if err != nil {
		return nil, err
	}
	if special {
		ids = t.post.apply(ids)
	}
	return ids, nil
}

// Longest returns the maximum number of text bytes that one token stands for.
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
