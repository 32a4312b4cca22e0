package tokenizer

// EncodeGuarded is EncodeWithin without special tokens around the text, for a text
// that is trusted only in part: where refuse says that bytes [start, end) are
// not, a special token written there stays plain text. Added tokens that are
// not special, and special ones that match only after normalization (no
// published chat model has such), are recognized everywhere, as by Encode. The
// text must be valid UTF-8.
func (t *Tokenizer) EncodeGuarded(text string, refuse func(start, end int) bool, l Limit) ([]int32, error) {
	if err := l.check(text); err != nil {
		return nil, err
	}
	added := *t.added
	added.refuse = refuse
	guarded := *t
	guarded.added = &added
	return guarded.encode(text, l)
}
