package jinja

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// A Span is a range of bytes [From, To).
type Span struct{ From, To int }

// A Str is a string that tracks which of its bytes came from outside of the template.
// User returns these ranges, in order and not adjacent.
type Str struct {
	s    string
	user []Span
}

// Text returns a string of the template's author, or one that is as trusted.
func Text(s string) Str { return Str{s: s} }

// UserText returns a string from the template's user.
func UserText(s string) Str {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if s == "" {
		return Str{}
	}
	return Str{s: s, user: []Span{{0, len(s)}}}
}

// String returns the text without its origin.
func (v Str) String() string { return v.s }

// User returns the byte ranges that came from outside of the template.
func (v Str) User() []Span { return v.user }

// sub returns the bytes [from, to).
func (v Str) sub(from, to int) Str {
	out := Str{s: v.s[from:to]}
	if len(v.user) == 0 || from >= to {
		return out
	}
	first := sort.Search(len(v.user), func(i int) bool { return v.user[i].To > from })
	for _, u := range v.user[first:] {
		if u.From >= to {
			break
		}
		out.user = append(out.user, Span{max(u.From, from) - from, min(u.To, to) - from})
	}
	return out
}

// like returns text with the origin of v as a whole: if any byte of v is the user's,
// all of text is.
func (v Str) like(text string) Str {
	if len(v.user) == 0 {
		return Str{s: text}
	}
	return UserText(text)
}

// mapRunes replaces every character; the replacement keeps its origin.
func (v Str) mapRunes(f func(r rune) string) Str {
	var b builder
	at := 0
	for i, r := range v.s {
		text := f(r)
		for at < len(v.user) && v.user[at].To <= i {
			at++
		}
		b.text(text, at < len(v.user) && v.user[at].From <= i)
	}
	return b.str()
}

// length returns the number of characters.
func (v Str) length() int { return utf8.RuneCountInString(v.s) }

// isASCII reports whether s contains only ASCII characters.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// offsets returns the byte offset of each character, and the length.
func offsets(s string) []int {
	out := make([]int, 0, len(s)+1)
	for i := range s {
		out = append(out, i)
	}
	return append(out, len(s))
}

// chars splits a string into characters.
func (v Str) chars() []Value {
	out := make([]Value, 0, len(v.s))
	for i, r := range v.s {
		out = append(out, v.sub(i, i+utf8.RuneLen(r)))
	}
	return out
}

// A builder concatenates strings and keeps their origin.
type builder struct {
	b    []byte
	user []Span
}

func (b *builder) add(v Str) {
	at := len(b.b)
	b.b = append(b.b, v.s...)
	for _, u := range v.user {
		b.mark(at+u.From, at+u.To)
	}
}

// lit appends author text.
func (b *builder) lit(s string) { b.b = append(b.b, s...) }

// text appends text of either origin.
func (b *builder) text(s string, user bool) {
	at := len(b.b)
	b.b = append(b.b, s...)
	if user && s != "" {
		b.mark(at, len(b.b))
	}
}

func (b *builder) mark(from, to int) {
	if n := len(b.user); n > 0 && b.user[n-1].To == from {
		b.user[n-1].To = to
		return
	}
	b.user = append(b.user, Span{from, to})
}

func (b *builder) str() Str { return Str{s: string(b.b), user: b.user} }

// concat concatenates two strings.
func concat(x, y Str) Str {
	if len(x.user) == 0 && len(y.user) == 0 {
		return Str{s: x.s + y.s}
	}
	b := builder{b: make([]byte, 0, len(x.s)+len(y.s))}
	b.add(x)
	b.add(y)
	return b.str()
}

// Cut returns the bytes [from, to).
func (v Str) Cut(from, to int) Str { return v.sub(from, to) }
