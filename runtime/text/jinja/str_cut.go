package jinja

import "strings"

// trimRange returns the range of bytes that strip keeps.
func trimRange(s, chars string, given, left, right bool) (from, to int) {
	drop := isSpace
	if given {
		set := make(map[rune]bool, len(chars))
		for _, r := range chars {
			set[r] = true
		}
		drop = func(r rune) bool { return set[r] }
	}
	to = len(s)
	if left {
		from = len(s) - len(strings.TrimLeftFunc(s, drop))
	}
	if right {
		to = max(from, len(strings.TrimRightFunc(s, drop)))
	}
	return from, to
}

// strip returns str.strip or one of its one-sided forms.
func strip(name string, left, right bool) strMethod {
	return func(s *state, v Str, a args) Value {
		p := a.bind(name, "chars=")
		chars, given := optionalStr(name, p[0])
		s.charge(len(v.s) / 16)
		return v.sub(trimRange(v.s, chars.s, given, left, right))
	}
}

// optionalStr returns an argument that is a string or None.
func optionalStr(name string, v Value) (text Str, given bool) {
	if v == nil {
		return Str{}, false
	}
	text, ok := v.(Str)
	if !ok {
		fail("TypeError: %s(): expected a str or None, not %s", name, typeName(v))
	}
	return text, true
}

// needStr returns a string argument.
func needStr(name string, v Value) Str {
	text, ok := v.(Str)
	if !ok {
		if u, ok := v.(*undefined); ok {
			fail("%s", u.message)
		}
		fail("TypeError: %s(): expected a str, not %s", name, typeName(v))
	}
	return text
}

// toInt returns an integer argument.
func toInt(v Value) int64 {
	i, _, isFloat, ok := number(v)
	if !ok || isFloat {
		if u, ok := v.(*undefined); ok {
			fail("%s", u.message)
		}
		fail("TypeError: '%s' object cannot be interpreted as an integer", typeName(v))
	}
	return i
}

func splitMethod(s *state, v Str, a args) Value {
	p := a.bind("split", "sep=", "maxsplit=")
	sep, given, most := splitArgs(p)
	s.charge(len(v.s))
	if !given {
		return &List{items: splitSpace(v, most)}
	}
	items := []Value{}
	at := 0
	for most < 0 || len(items) < most {
		n := strings.Index(v.s[at:], sep.s)
		if n < 0 {
			break
		}
		items = append(items, v.sub(at, at+n))
		at += n + len(sep.s)
	}
	return &List{items: append(items, v.sub(at, len(v.s)))}
}

func splitArgs(p []Value) (sep Str, given bool, most int) {
	sep, given = optionalStr("split", p[0])
	if given && sep.s == "" {
		fail("ValueError: empty separator")
	}
	most = -1
	if p[1] != nil {
		if n := toInt(p[1]); n >= 0 {
			most = int(min(n, 1<<40))
		}
	}
	return sep, given, most
}

// splitSpace splits at white space; after most splits the rest keeps its inner and
// trailing spaces.
func splitSpace(v Str, most int) []Value {
	items := []Value{}
	at := len(v.s) - len(strings.TrimLeftFunc(v.s, isSpace))
	for at < len(v.s) {
		n := strings.IndexFunc(v.s[at:], isSpace)
		if n < 0 || most >= 0 && len(items) >= most {
			return append(items, v.sub(at, len(v.s)))
		}
		items = append(items, v.sub(at, at+n))
		at = len(v.s) - len(strings.TrimLeftFunc(v.s[at+n:], isSpace))
	}
	return items
}

func rsplitMethod(s *state, v Str, a args) Value {
	p := a.bind("rsplit", "sep=", "maxsplit=")
	sep, given, most := splitArgs(p)
	s.charge(len(v.s))
	var back []Value
	end := len(v.s)
	if !given {
		end = len(strings.TrimRightFunc(v.s, isSpace))
	}
	for end > 0 || given {
		from, to := -1, 0
		if given {
			if from = strings.LastIndex(v.s[:end], sep.s); from >= 0 {
				to = from + len(sep.s)
			}
		} else if i := strings.LastIndexFunc(v.s[:end], isSpace); i >= 0 {
			from, to = len(strings.TrimRightFunc(v.s[:end], func(r rune) bool { return !isSpace(r) })), 0
			to = from
			from = len(strings.TrimRightFunc(v.s[:from], isSpace))
		}
		if from < 0 || most >= 0 && len(back) >= most {
			back = append(back, v.sub(0, end))
			break
		}
		back = append(back, v.sub(to, end))
		end = from
	}
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return &List{items: append([]Value{}, back...)}
}

// splitlines splits at line ends.
func splitlines(s *state, v Str, keep bool) []Value {
	s.charge(len(v.s) / 8)
	items := []Value{}
	at := 0
	for at < len(v.s) {
		n := strings.IndexFunc(v.s[at:], isLineEnd)
		if n < 0 {
			return append(items, v.sub(at, len(v.s)))
		}
		end := at + n
		next := end + 1
		for next < len(v.s) && v.s[next]&0xC0 == 0x80 {
			next++
		}
		if strings.HasPrefix(v.s[end:], "\r\n") {
			next = end + 2
		}
		if keep {
			end = next
		}
		items = append(items, v.sub(at, end))
		at = next
	}
	return items
}

func isLineEnd(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}

func partition(name string, last bool) strMethod {
	return func(_ *state, v Str, a args) Value {
		sep := needStr(name, a.bind(name, "sep")[0])
		if sep.s == "" {
			fail("ValueError: empty separator")
		}
		at := strings.Index(v.s, sep.s)
		if last {
			at = strings.LastIndex(v.s, sep.s)
		}
		switch {
		case at >= 0:
			end := at + len(sep.s)
			return newTuple(v.sub(0, at), v.sub(at, end), v.sub(end, len(v.s)))
		case last:
			return newTuple(Str{}, Str{}, v)
		}
		return newTuple(v, Str{}, Str{})
	}
}

func replaceMethod(s *state, v Str, a args) Value {
	p := a.bind("replace", "old", "new", "count=")
	most := -1
	if p[2] != nil {
		if n := toInt(p[2]); n >= 0 {
			most = int(min(n, 1<<40))
		}
	}
	return replace(s, v, needStr("replace", p[0]), needStr("replace", p[1]), most)
}

// replace is str.replace; an empty old matches between all characters.
func replace(s *state, v, old, with Str, most int) Str {
	s.charge(len(v.s) / 8)
	var b builder
	at := 0
	for n := 0; most < 0 || n < most; n++ {
		i := strings.Index(v.s[at:], old.s)
		if i < 0 {
			break
		}
		end := at + i
		if old.s == "" {
			if n > 0 {
				if at == len(v.s) {
					break
				}
				end = at + 1
				for end < len(v.s) && v.s[end]&0xC0 == 0x80 {
					end++
				}
			}
		}
		b.add(v.sub(at, end))
		b.add(with)
		s.checkLen(len(b.b))
		at = end + len(old.s)
	}
	if at == 0 && len(b.b) == 0 {
		return v
	}
	b.add(v.sub(at, len(v.s)))
	return s.made(b.str())
}
