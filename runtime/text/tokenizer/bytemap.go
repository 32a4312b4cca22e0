package tokenizer

import "unicode/utf8"

// GPT-2's byte alphabet: bytes that are printable in Latin-1 map to themselves, the
// others to code points from 256 on (encoder.py, bytes_to_unicode).
var (
	byteRune   [256]rune
	byteString [256]string
	runeByte   = make(map[rune]byte, 256)
)

var _ = fillByteMap()

func fillByteMap() bool {
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		printable := (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae
		if !printable {
			r = next
			next++
		}
		byteRune[b], byteString[b], runeByte[r] = r, string(r), byte(b)
	}
	return true
}

// ByteAlphabet spells the bytes of s in GPT-2's alphabet, as tokens of byte-level models are.
func ByteAlphabet(s string) string {
	out := make([]byte, 0, 2*len(s))
	for i := range len(s) {
		out = append(out, byteString[s[i]]...)
	}
	return string(out)
}

// fromByteAlphabet is the inverse of ByteAlphabet. A token with a character outside
// the alphabet keeps its UTF-8 bytes.
func fromByteAlphabet(s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		b, ok := runeByte[r]
		if !ok {
			return s
		}
		out = append(out, b)
	}
	return string(out)
}

// lossyUTF8 decodes the complete characters of b. It returns the text, with one U+FFFD
// for every maximal ill-formed subpart (Unicode 3.9, "substitution of maximal
// subparts"), and the incomplete tail, which later bytes may complete.
func lossyUTF8(b []byte) (text []byte, tail []byte) {
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			text = append(text, b[i])
			i++
			continue
		}
		_, n := utf8.DecodeRune(b[i:])
		if n > 1 {
			text = append(text, b[i:i+n]...)
			i += n
			continue
		}
		n = brokenLen(b[i:])
		if i+n == len(b) && !utf8.FullRune(b[i:]) {
			return text, b[i:]
		}
		text = append(text, "\uFFFD"...)
		i += n
	}
	return text, nil
}

// brokenLen returns the length of the maximal subpart of an ill-formed sequence.
func brokenLen(b []byte) int {
	lo, hi, need := byte(0x80), byte(0xbf), 0
	switch c := b[0]; {
	case c >= 0xc2 && c <= 0xdf:
		need = 1
	case c >= 0xe0 && c <= 0xef:
		need = 2
		if c == 0xe0 {
			lo = 0xa0
		} else if c == 0xed {
			hi = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		need = 3
		if c == 0xf0 {
			lo = 0x90
		} else if c == 0xf4 {
			hi = 0x8f
		}
	}
	n := 1
	for n <= need && n < len(b) && b[n] >= lo && b[n] <= hi {
		n++
		lo, hi = 0x80, 0xbf
	}
	return n
}

// validUTF8 replaces the ill-formed parts of s.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	text, tail := lossyUTF8([]byte(s))
	if len(tail) > 0 {
		text = append(text, "\uFFFD"...)
	}
	return string(text)
}
