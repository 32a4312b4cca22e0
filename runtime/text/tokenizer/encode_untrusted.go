package tokenizer

// EncodeGuarded is like EncodeWithin without added special tokens, for partly untrusted
// text. A special token in bytes [start, end) stays plain text if refuse returns true
// for them. Added tokens that are not special are recognized everywhere, as by Encode,
// and so are special tokens that match only after normalization, which no published
// chat model has. The text must be valid UTF-8.
func (t *Tokenizer) EncodeGuarded(text string, refuse func(start, end int) bool, l Limit) ([]int32, error) {
	if err := l.check(text); err != nil {
		return nil, err
	}
	added := *t.added
	added.refuse = refuse
	guarded := *t
	guarded.added = &added
	ids, err := guarded.encode(text, l)
	if err != nil {
		return nil, err
	}
	return ids, nil
}
