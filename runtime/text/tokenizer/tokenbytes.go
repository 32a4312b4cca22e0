package tokenizer

// Bytes returns the bytes that a token adds in the middle of a text, which may be a
// part of a character. It returns nil for special tokens and ids outside the
// vocabulary. It ignores decoder rules that depend on adjacent tokens, such as space
// cleanup.
func (t *Tokenizer) Bytes(id int32) []byte {
	token, special, ok := t.decodeToken(id)
	if !ok || special {
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
	// Decode it after another token, as in the middle of a text.
	s := t.NewStream(false)
	s.add(id)
	before := s.out.Len()
	s.add(id)
	return []byte(s.out.String()[before:])
}
