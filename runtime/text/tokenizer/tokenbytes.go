package tokenizer

// Bytes gives what a token adds to a text in its middle, which may be a part
// of a character; nil for special tokens and ids outside the vocabulary. Where
// a decoder looks at neighbors (tidied blanks), it is the text without that.
func (t *Tokenizer) Bytes(id int32) []byte {
	token, ok := t.decodeToken(id)
	if !ok || t.added.special[token] {
		return nil
	}
	for _, make := range t.decoder {
		switch make().(type) {
		case *byteLevelStage:
			return []byte(fromByteAlphabet(token))
		case *byteFallbackStage:
			if b, ok := byteToken(token); ok {
				return []byte{b}
			}
		}
	}
	// A token before it makes this one stand in the middle.
	s := t.NewStream(false)
	s.add(id)
	before := s.out.Len()
	s.add(id)
	return []byte(s.out.String()[before:])
}
