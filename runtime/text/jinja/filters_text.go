package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

var htmlEscapes = map[rune]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&#34;", '\'': "&#39;"}

func escape(s *state, a args) Value {
	text := toStr(s, a.bind("escape", "s")[0])
	s.charge(len(text.s) / 8)
	return s.made(text.mapRunes(func(r rune) string {
		if e, ok := htmlEscapes[r]; ok {
			return e
		}
		return string(r)
	}))
}

// titleWords is the filter title. A word starts after white space, a hyphen or an
// opening bracket.
func titleWords(v Str) Str {
	begins := true
	var b builder
	at := 0
	for at < len(v.s) {
		isBreak := func(r rune) bool { return isSpace(r) || strings.ContainsRune("-({[<", r) }
		n := strings.IndexFunc(v.s[at:], isBreak)
		switch {
		case n == 0:
			end := len(v.s) - len(strings.TrimLeftFunc(v.s[at:], isBreak))
			b.add(v.sub(at, end))
			at, begins = end, true
			continue
		case n < 0:
			n = len(v.s) - at
		}
		word := v.sub(at, at+n)
		if begins {
			first := strings.IndexFunc(word.s[1:]+"a", func(r rune) bool { return r != unicode.ReplacementChar }) + 1
			b.add(upper(word.sub(0, first)))
			word = word.sub(first, len(word.s))
		}
		b.add(lower(word))
		at += n
	}
	return b.str()
}

func trimFilter(s *state, a args) Value {
	p := a.bind("trim", "value", "chars=")
	text := toStr(s, p[0])
	chars, given := optionalStr("trim", p[1])
	return text.sub(trimRange(text.s, chars.s, given, true, true))
}

func replaceFilter(s *state, a args) Value {
	p := a.bind("replace", "s", "old", "new", "count=")
	most := -1
	if p[3] != nil {
		if n := toInt(p[3]); n >= 0 {
			most = int(min(n, 1<<40))
		}
	}
	return replace(s, toStr(s, p[0]), toStr(s, p[1]), toStr(s, p[2]), most)
}

func indentFilter(s *state, a args) Value {
	p := a.bind("indent", "s", "width=4", "first=false", "blank=false")
	text := toStr(s, p[0])
	indent, ok := p[1].(Str)
	if !ok {
		indent = repeatStr(s, Text(" "), toInt(p[1]))
	}
	lines := splitlines(s, concat(text, Text("\n")), false)
	var b builder
	for i, line := range lines {
		line := line.(Str)
		if i > 0 {
			b.lit("\n")
		}
		if i == 0 && truth(p[2]) || i > 0 && (line.s != "" || truth(p[3])) {
			s.weigh(indent)
			b.add(indent)
		}
		b.add(line)
		s.charge(1)
		s.checkLen(len(b.b))
	}
	return s.made(b.str())
}

func centerFilter(s *state, a args) Value {
	p := a.bind("center", "value", "width=80")
	return pad(s, toStr(s, p[0]), toInt(p[1]), Text(" "), 2)
}

func truncateFilter(s *state, a args) Value {
	p := a.bind("truncate", "s", "length=255", "killwords=false", "end=...", "leeway=5")
	text, end := toStr(s, p[0]), toStr(s, p[3])
	length, n := toInt(p[1]), int64(text.length())
	leeway := int64(5)
	if p[4] != nil {
		leeway = toInt(p[4])
	}
	if n <= length+leeway {
		return text
	}
	keep := length - int64(end.length())
	if keep < 0 {
		fail("expected length >= %d, got %d", end.length(), length)
	}
	cut := text.sub(0, offsets(text.s)[keep])
	if !truth(p[2]) {
		if at := strings.LastIndexByte(cut.s, ' '); at >= 0 {
			cut = cut.sub(0, at)
		}
	}
	return concat(cut, end)
}

func wordcountFilter(s *state, a args) Value {
	text := toStr(s, a.bind("wordcount", "s")[0])
	s.charge(len(text.s) / 4)
	n := int64(0)
	inWord := false
	for _, r := range text.s {
		is := r == '_' || isAlnum(r)
		if is && !inWord {
			n++
		}
		inWord = is
	}
	return n
}

// wordwrapFilter breaks lines like Python's textwrap with Jinja's arguments.
func wordwrapFilter(s *state, a args) Value {
	p := a.bind("wordwrap", "s", "width=79", "break_long_words=true", "wrapstring=", "break_on_hyphens=true")
	text := toStr(s, p[0])
	width, sep := int(toInt(p[1])), Text("\n")
	if p[3] != nil {
		sep = toStr(s, p[3])
	}
	if width <= 0 {
		fail("ValueError: invalid width %d (must be > 0)", width)
	}
	var b builder
	for i, line := range splitlines(s, text, false) {
		if i > 0 {
			b.add(sep)
		}
		for j, l := range wrapLine(s, line.(Str), width, truth(p[2])) {
			if j > 0 {
				b.add(sep)
			}
			b.add(l)
			s.checkLen(len(b.b))
		}
	}
	return s.made(b.str())
}

// wrapLine breaks one line at spaces; with cut it splits words longer than a line.
func wrapLine(s *state, line Str, width int, cut bool) (out []Str) {
	text := line.s
	skip := func(at int) int { return len(text) - len(strings.TrimLeft(text[at:], " \t")) }
	from, end, count := 0, 0, 0 // bounds of the current line, and its characters
	at, word, next := 0, 0, 0   // spaces before the next word, and its bounds
	for at < len(text) {
		if at >= next {
			word, next = skip(at), len(text)
			if n := strings.IndexAny(text[word:], " \t"); n >= 0 {
				next = word + n
			}
			s.charge(1 + (next-at)/8)
		}
		n, to := prefix(text[at:next], width-count)
		switch {
		case at+to == next:
			end, at, count = next, next, count+n
		case end > from:
			out = append(out, line.sub(from, end))
			from, end, at, count = word, word, word, 0
		case cut:
			to += at
			out = append(out, line.sub(from, to))
			from, end, at = to, to, to
			s.charge(1)
		default:
			out = append(out, line.sub(from, next))
			at = skip(next)
			from, end = at, at
		}
	}
	if end > from {
		out = append(out, line.sub(from, end))
	}
	return out
}

// prefix returns the number of characters of a text, up to most, and their bytes.
func prefix(text string, most int) (n, bytes int) {
	for bytes < len(text) && n < most {
		_, size := utf8.DecodeRuneInString(text[bytes:])
		n, bytes = n+1, bytes+size
	}
	return n, bytes
}

func urlencodeFilter(s *state, a args) Value {
	v := a.bind("urlencode", "value")[0]
	var pairs []Value
	switch v := v.(type) {
	case *Dict:
		pairs = (&view{v, "items"}).items()
	case *List:
		pairs = v.items
	default:
		return s.made(quoteURL(s, toStr(s, v), "/"))
	}
	var b builder
	for i, pair := range pairs {
		kv := items(s, pair)
		if len(kv) != 2 {
			fail("ValueError: urlencode: expected pairs of a key and a value")
		}
		if i > 0 {
			b.lit("&")
		}
		b.add(quoteURL(s, toStr(s, kv[0]), "+"))
		b.lit("=")
		b.add(quoteURL(s, toStr(s, kv[1]), "+"))
	}
	return s.made(b.str())
}

// quoteURL escapes all characters except letters, digits, "_.-~" and those in keep: "/"
// unchanged, or "+" for spaces.
func quoteURL(s *state, v Str, keep string) Str {
	s.charge(len(v.s))
	return v.mapRunes(func(r rune) string {
		switch {
		case r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("_.-~", r), keep == "/" && r == '/':
			return string(r)
		case keep == "+" && r == ' ':
			return "+"
		}
		var out []byte
		for _, c := range []byte(string(r)) {
			const digits = "0123456789ABCDEF"
			out = append(out, '%', digits[c>>4], digits[c&15])
		}
		return string(out)
	})
}
